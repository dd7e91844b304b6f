"""Reading a project's items for its manager: filters, pages, details. Never for annotators."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef

from annotation.models import Item
from webapp.catalog.models import Seal

CHUNK = 1000  # ids a statement


def sealed_items(item_ids: Iterable[int]) -> set[int]:
    """Those of the items whose producers must not be named (V1).

    A live seal covers an answer with one of their texts, whoever's answer it is: beside a producer
    the text would name the maker.
    """
    ids = list(item_ids)
    live = Seal.objects.filter(released_at=None)
    first = live.filter(answer__text_sha256=OuterRef("first_sha256"))
    second = live.filter(answer__text_sha256=OuterRef("second_sha256"))
    found: set[int] = set()
    for start in range(0, len(ids), CHUNK):
        rows = Item.objects.filter(pk__in=ids[start : start + CHUNK])
        found.update(rows.filter(Exists(first) | Exists(second)).values_list("pk", flat=True))
    return found
