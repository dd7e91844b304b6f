"""Locking items whose labels are to be scored again: members first, then items, as everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django.db import transaction

from annotation.enums import LeaseState
from annotation.models import Item, Lease, Member
from annotation.services.chunks import chunks


def lock_items(
    items: Iterable[int], *, scored: Callable[[], Iterable[int]], members: Iterable[int] = ()
) -> list[int]:
    """Lock items, in the caller's transaction, after everybody who may have to be scored again.

    Those are `members` and whoever submitted a label of the items that `scored` names when it is
    called. Somebody may submit between the two locks; to lock her then, after an item, could end in
    a circle. So both locks are let go with the savepoint in which they were taken, and taken again
    with her among them. Ids of the items that exist, in order.
    """
    wanted, known = sorted(set(items)), set(members)
    while True:
        point = transaction.savepoint()
        known |= _submitters(scored())
        _lock_members(known)
        found = _lock_rows(wanted)
        if _submitters(scored()) <= known:
            transaction.savepoint_commit(point)
            return found
        transaction.savepoint_rollback(point)


def _submitters(items: Iterable[int]) -> set[int]:
    rows = Lease.objects.filter(state=LeaseState.SUBMITTED)
    found: set[int] = set()
    for chunk in chunks(sorted(items)):
        found |= set(rows.filter(item__in=chunk).values_list("member", flat=True))
    return found


def _lock_members(members: set[int]) -> None:
    for chunk in chunks(sorted(members)):
        rows = Member.objects.select_for_update(no_key=True).filter(pk__in=chunk)
        list(rows.order_by("pk").values_list("pk"))


def _lock_rows(items: list[int]) -> list[int]:
    found: list[int] = []
    for chunk in chunks(items):
        rows = Item.objects.select_for_update(no_key=True).filter(pk__in=chunk)
        found += rows.order_by("pk").values_list("pk", flat=True)
    return found
