"""Withdrawn consent: the texts of a persona's items go, hashes and labels stay (V14)."""

from __future__ import annotations

from typing import Any

from annotation.enums import ItemState
from annotation.models import Item, ItemOrigin, ItemText, Lease

UNDECIDED = (ItemState.OPEN, ItemState.HELD, ItemState.PARKED, ItemState.DISPUTED, ItemState.GOLD)


def erase_persona(persona: Any) -> int:
    """Erase both texts and what the source said of every item for this persona.

    Runs in the withdrawal's transaction. Items that nobody decided yet leave their queues; drafts
    of labels go, too. Number of items erased.
    """
    items = Item.objects.filter(persona_version__persona=persona)
    erased = ItemText.objects.filter(item__in=items.values("pk")).delete()[0]
    ItemOrigin.objects.filter(item__in=items.values("pk")).update(details={})
    Lease.objects.filter(item__in=items.values("pk")).exclude(draft={}).update(draft={})
    items.filter(state__in=UNDECIDED).update(state=ItemState.DROPPED)
    return erased
