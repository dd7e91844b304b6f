"""Settling many items at once: the rules of `decisions`, a few statements per batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import F, Max, OuterRef, Subquery

from annotation.enums import Axis, ItemState, LeaseState
from annotation.models import Decision, Item, Lease, Project
from annotation.overlap import Action, Step
from annotation.services.chunks import chunks
from annotation.services.decisions import (
    HELD_DECISIONS,
    drafted_decisions,
    is_closed_to_labels,
    step_of,
)


@dataclass
class _Moves:
    """What becomes of the items of a chunk."""

    waiting: list[int] = field(default_factory=list)
    raised: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    disputed: list[int] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def settle_items(pks: Iterable[int]) -> None:
    """Look at the counted labels of these items anew, like `settle_item`.

    Call in the transaction that wrote the labels, with the items locked.
    """
    for chunk in chunks(sorted(set(pks))):
        _settle_chunk(chunk)


def _settle_chunk(pks: Sequence[int]) -> None:
    items = list(Item.objects.select_related(*HELD_DECISIONS).filter(pk__in=pks))
    projects = Project.objects.in_bulk({item.project_id for item in items})
    for item in items:
        item.project = projects[item.project_id]
    rows = Lease.objects.filter(item__in=pks, counted=True, state=LeaseState.SUBMITTED)
    leases: dict[int, list[Lease]] = defaultdict(list)
    for lease in rows.select_related("head", "member").order_by("pk"):
        leases[lease.item_id].append(lease)
    numbers = Decision.objects.filter(item__in=pks).order_by().values_list("item")
    newest = dict(numbers.annotate(n=Max("n")))
    moves = _Moves()
    for item in items:
        if not is_closed_to_labels(item):
            step = step_of(item, leases[item.pk])
            _note(moves, item, step, leases[item.pk], newest.get(item.pk, 0))
    _write(moves)


def _note(moves: _Moves, item: Item, step: Step, leases: Sequence[Lease], newest: int) -> None:
    if step.action == Action.RAISE:
        moves.raised.append(item.pk)
    elif step.action == Action.WAIT:
        moves.waiting.append(item.pk)
    else:
        settled = step.action == Action.SETTLE
        (moves.done if settled else moves.disputed).append(item.pk)
        made = drafted_decisions(item, step.outcomes, leases, newest)
        moves.decisions += [row for row in made.values() if row.pk is None]


def _write(moves: _Moves) -> None:
    none = dict.fromkeys(HELD_DECISIONS)
    Item.objects.filter(pk__in=moves.waiting).update(state=ItemState.OPEN, **none)
    Item.objects.filter(pk__in=moves.raised).update(
        state=ItemState.OPEN, target=F("target") + 1, priority=1, **none
    )
    Decision.objects.bulk_create(moves.decisions)
    point_at_newest(moves.done, ItemState.DONE)
    point_at_newest(moves.disputed, ItemState.DISPUTED)


def point_at_newest(pks: Sequence[int], state: str) -> None:
    """Let items hold the newest decision of each axis, and move them."""
    if pks:
        newest = Decision.objects.filter(item=OuterRef("pk")).order_by("-n").values("pk")
        held = {f"{axis}_decision": Subquery(newest.filter(axis=axis)[:1]) for axis in Axis.values}
        Item.objects.filter(pk__in=pks).update(state=state, **held)
