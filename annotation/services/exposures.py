"""Who reads an item's answers has met them, and every answer with the same texts (V7)."""

from __future__ import annotations

from typing import Any

from annotation.models import Item
from webapp.catalog.enums import Where
from webapp.catalog.models import Answer
from webapp.catalog.services.answers import note_exposure


def note_met(*, user: Any, item: Item, where: Where = Where.LABELLED) -> None:
    """Note that the user read both answers of the item. Saying it twice is harmless."""
    met = Answer.objects.filter(text_sha256__in=[item.first_sha256, item.second_sha256])
    ids = list(met.order_by("pk").values_list("pk", flat=True))
    if ids:
        note_exposure(user=user, answers=ids, where=where)
