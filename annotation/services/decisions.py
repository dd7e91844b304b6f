"""Settling items: what their labels come to, written down as decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from annotation.enums import (
    IN_HAND,
    Axis,
    DecisionSource,
    ItemFlag,
    ItemState,
    LeaseState,
    WebhookEvent,
)
from annotation.models import Decision, Item, Lease, Project
from annotation.overlap import Action, Outcome, Step, next_step
from annotation.policies import allowed_outcomes
from annotation.posterior import Voter, item_posterior
from annotation.services.queue import ready_items
from annotation.services.webhooks import announce

HELD_DECISIONS = ("quality_decision", "personalization_decision")
SETTLED_BY_LABELS = (ItemState.OPEN, ItemState.DONE, ItemState.DISPUTED)


def settle_item(pk: int) -> None:
    """Look at the counted labels of an item anew: wait, ask for one more, settle or dispute.

    What an adjudicator decided stays, and so does an item that he has in hand or that an appeal
    has given to him: labels that change meanwhile are kept, but move nothing.
    """
    with transaction.atomic():
        Item.objects.select_for_update(no_key=True).only("pk").get(pk=pk)
        settle_locked(Item.objects.select_related("project", *HELD_DECISIONS).get(pk=pk))


def settle_locked(item: Item, newest_n: int | None = None) -> None:
    """The same for an item that is locked and was read after the lock, with its project.

    `newest_n`: the highest number of its decisions, where it is known.
    """
    if is_closed_to_labels(item):
        return
    leases = counted_labels(item)
    step = step_of(item, leases)
    if step.action in (Action.WAIT, Action.RAISE):
        _reopen(item, more=step.action == Action.RAISE)
        return
    made = _decisions(item, step.outcomes, leases, newest_n)
    state = ItemState.DONE if step.action == Action.SETTLE else ItemState.DISPUTED
    _move(item, state, **_pointers(made))
    if state != item.state or any(getattr(item, n) != d for n, d in _pointers(made).items()):
        announce_outcome(item, state, made, len(leases))


def announce_outcome(item: Item, state: str, made: Mapping[str, Decision], labels: int) -> None:
    """How an item was settled, without saying for which answer."""
    payload: dict[str, Any] = {"item": item.public_id, "labels": labels}
    if state == ItemState.DONE:
        sources = {axis: row.source for axis, row in made.items()}
        announce(item.project, WebhookEvent.ITEM_SETTLED, {**payload, "sources": sources})
    else:
        announce(item.project, WebhookEvent.ITEM_DISPUTED, payload)


def is_closed_to_labels(item: Item) -> bool:
    """Whether labels decide nothing about an item any more, or not now."""
    return item.state not in SETTLED_BY_LABELS or is_adjudicated(item) or in_adjudication(item)


def step_of(item: Item, leases: Sequence[Lease]) -> Step:
    """What comes next for an item with these counted labels."""
    project = item.project
    return next_step(
        [verdicts_of(lease) for lease in leases],
        project.axes,
        item.target,
        max(project.max_overlap, item.target),
    )


def settle_ready(*, pk: int, limit: int = 2000) -> int:
    """Settle items of a project that have all labels since it asks for fewer. Number of items."""
    ready = ready_items(Project.objects.get(pk=pk), limit)
    for item in ready:
        settle_item(item)
    return len(ready)


def counted_labels(item: Item) -> list[Lease]:
    """The submitted leases of an item that hold a place, with their labels."""
    rows = Lease.objects.filter(item=item, counted=True, state=LeaseState.SUBMITTED)
    return list(rows.select_related("head", "member").order_by("pk"))


def verdicts_of(lease: Lease) -> dict[str, str]:
    return {axis: getattr(lease.head, axis) for axis in Axis.values}


def is_adjudicated(item: Item) -> bool:
    """Whether a person decided an axis, be it that he left it unresolved.

    Who decided in another project is not said by an import.
    """
    held = (item.quality_decision, item.personalization_decision)
    return any(
        d is not None and (d.decided_by_id is not None or d.source == DecisionSource.ADJUDICATED)
        for d in held
    )


def is_decided_anyway(item: Item) -> bool:
    """Whether the outcome comes from elsewhere than labels: a person, or how the item was made."""
    held = (item.quality_decision, item.personalization_decision)
    return is_adjudicated(item) or any(
        d is not None and d.source == DecisionSource.SYNTHETIC for d in held
    )


def in_adjudication(item: Item) -> bool:
    """Whether an adjudicator has the item in hand, or an appeal waits for one."""
    if item.state != ItemState.DISPUTED:
        return False
    live = item.adjudications.filter(state__in=IN_HAND, expires_at__gt=timezone.now())
    return ItemFlag.CONTESTED in item.flags or live.exists()


def axes_to_decide(item: Item) -> list[str]:
    """The axes that an adjudicator is asked about: those without a verdict; all of them where the
    item was contested.
    """
    if ItemFlag.CONTESTED in item.flags:
        return list(item.project.axes)
    missing = [
        axis
        for axis in item.project.axes
        if (held := getattr(item, f"{axis}_decision")) is None or not held.verdict
    ]
    return missing or list(item.project.axes)


def _reopen(item: Item, *, more: bool) -> None:
    """Back into the queue; a disagreement goes before the others."""
    columns: dict[str, Any] = dict.fromkeys(HELD_DECISIONS)
    decided = any(getattr(item, name) is not None for name in HELD_DECISIONS)
    if more:
        columns |= {"target": item.target + 1, "priority": 1}
    if more or decided or item.state != ItemState.OPEN:
        _move(item, ItemState.OPEN, **columns)


def _move(item: Item, state: str, **columns: Any) -> None:
    Item.objects.filter(pk=item.pk).update(state=state, **columns)


def decide(
    item: Item,
    outcomes: Mapping[str, Outcome],
    leases: Sequence[Lease],
    **columns: Any,
) -> dict[str, Decision]:
    """Append a decision per axis and point the item at them. The same outcome is written once."""
    made = _decisions(item, outcomes, leases, None, **columns)
    Item.objects.filter(pk=item.pk).update(**_pointers(made))
    return made


def _pointers(made: Mapping[str, Decision]) -> dict[str, Decision]:
    return {f"{axis}_decision": decision for axis, decision in made.items()}


def _decisions(
    item: Item,
    outcomes: Mapping[str, Outcome],
    leases: Sequence[Lease],
    newest_n: int | None,
    **columns: Any,
) -> dict[str, Decision]:
    """A decision per axis: the one that holds where it says the same, else a new row."""
    made = drafted_decisions(item, outcomes, leases, newest_n, **columns)
    Decision.objects.bulk_create([row for row in made.values() if row.pk is None])
    return made


def drafted_decisions(
    item: Item,
    outcomes: Mapping[str, Outcome],
    leases: Sequence[Lease],
    newest_n: int | None,
    **columns: Any,
) -> dict[str, Decision]:
    """The same; new rows are not written yet."""
    made: dict[str, Decision] = {}
    for axis, found in outcomes.items():
        held = getattr(item, f"{axis}_decision")
        posterior = posterior_of(item.project, axis, leases)
        said = (found.verdict, found.source, len(leases), posterior)
        if held is not None and not columns and said == _said(held):
            made[axis] = held
            continue
        if newest_n is None:
            newest_n = item.decisions.aggregate(n=Max("n"))["n"] or 0
        made[axis] = Decision(
            item=item,
            axis=axis,
            n=newest_n + 1,
            verdict=found.verdict,
            source=found.source,
            posterior=posterior,
            labels=len(leases),
            **columns,
        )
    return made


def _said(row: Decision) -> tuple[str, str, int, dict[str, float]]:
    return (row.verdict, row.source, row.labels, row.posterior)


def posterior_of(project: Project, axis: str, leases: Sequence[Lease]) -> dict[str, float]:
    """The soft label from the labels at hand and what gold says about their authors."""
    labels = [
        (verdict, Voter(lease.member.gold_right, lease.member.gold_seen))
        for lease in leases
        if (verdict := getattr(lease.head, axis))
    ]
    return item_posterior(labels, allowed_outcomes(project))
