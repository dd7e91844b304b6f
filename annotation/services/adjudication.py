"""Adjudication: an item in one person's hands, decided blind first, then with the labels in sight.

Every step locks the item first and reads afterwards, so that two adjudicators, two tabs and the
labels that come in meanwhile take turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.assignment import draw
from annotation.enums import (
    IN_HAND,
    AdjudicationReason,
    AdjudicationState,
    DecisionSource,
    ItemFlag,
    ItemState,
)
from annotation.models import Adjudication, Decision, Item, Project
from annotation.overlap import Outcome
from annotation.selectors.review import disputed_queue, has_labelled, in_hand_of, seat
from annotation.selectors.tasks import as_canonical
from annotation.services.decisions import (
    announce_outcome,
    axes_to_decide,
    counted_labels,
    decide,
    settle_item,
)
from annotation.services.exposures import note_met
from annotation.services.items import add_flag, remove_flag
from annotation.services.texts import checked_text
from webapp.core import audit
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.locking import retry_deadlocks

CLAIM_MINUTES = 30
TRIES = 20  # items of the queue that others may take meanwhile
UNRESOLVED = "unresolved"
CONTESTABLE = (
    ItemState.OPEN, ItemState.PARKED, ItemState.HELD, ItemState.DONE, ItemState.DISPUTED,
)  # fmt: skip


@retry_deadlocks
def claim_item(*, user: Any, item: Item) -> Adjudication:
    """Take a disputed item in hand for half an hour. Claiming again renews the claim.

    Refused to who labelled it, and while somebody else has it.
    """
    try:
        with transaction.atomic():
            return _claim(user, item.pk)
    except IntegrityError as error:
        raise _taken() from error


def claim_next(*, user: Any, project: Project, show: str = "") -> Adjudication | None:
    """The item in hand, or else the one with the least agreement that is free. None: none is."""
    policies.check_adjudicates(user, seat(project, user))
    mine = in_hand_of(user, project)
    if mine is not None:
        return claim_item(user=user, item=mine.item)
    for entry in disputed_queue(project, user, show=show, limit=TRIES).entries:
        try:
            return claim_item(user=user, item=entry.item)
        except Refused:
            continue
    return None


def _claim(user: Any, pk: int) -> Adjudication:
    item = _locked_item(pk)
    policies.check_adjudicates(user, seat(item.project, user))
    policies.check_never_labelled(has_labelled(user, item))
    now = timezone.now()
    held = item.adjudications.filter(state__in=IN_HAND).first()
    if held is not None and held.adjudicator_id == user.pk:
        return _renewed(held)
    if held is not None:
        if held.expires_at > now:
            raise _taken()
        _release(held)
        settle_item(pk)
        item.refresh_from_db()
    if item.state != ItemState.DISPUTED:
        raise _not_disputed()
    note_met(user=user, item=item)
    first_left = draw(item.project.seed, "adjudication", item.public_id, user.pk) % 2 == 0
    row = Adjudication.objects.create(
        item=item, adjudicator=user, first_left=first_left, expires_at=_expiry()
    )
    audit.record(actor=user, action="claim_item", obj=item)
    return row


def _locked_item(pk: int) -> Item:
    """The item with its row locked; everything is read after the lock."""
    Item.objects.select_for_update(no_key=True).only("pk").get(pk=pk)
    parts = ("project", "quality_decision", "personalization_decision")
    return Item.objects.select_related(*parts).get(pk=pk)


def _renewed(row: Adjudication) -> Adjudication:
    row.expires_at = _expiry()
    row.save(update_fields=["expires_at"])
    return row


def _expiry() -> Any:
    return timezone.now() + timedelta(minutes=CLAIM_MINUTES)


def _release(row: Adjudication) -> None:
    row.state = AdjudicationState.RELEASED
    row.save(update_fields=["state"])


def _taken() -> Refused:
    return Refused(_("Somebody else is deciding this item."), code="claimed")


def _not_disputed() -> Refused:
    return Refused(_("This item is not disputed any more."), code="not_disputed")


def _own(user: Any, token: str) -> tuple[Adjudication, Item]:
    """An adjudicator's claim by its token, with the item locked.

    A claim that ran out is taken up again where nobody else has the item by now.
    """
    rows = Adjudication.objects.filter(token=token, adjudicator=user)
    pk = rows.values_list("item", flat=True).first()
    if pk is None:
        raise Forbidden(_("This item was not given to you."), code="not_yours")
    item = _locked_item(pk)
    policies.check_adjudicates(user, seat(item.project, user))
    row = rows.get()
    if row.state == AdjudicationState.RELEASED:
        if item.adjudications.filter(state__in=IN_HAND).exists():
            raise _taken()
        if item.state != ItemState.DISPUTED:
            raise _not_disputed()
        row.state = AdjudicationState.REVEALED if row.blind else AdjudicationState.BLIND
        row.save(update_fields=["state"])
    return row, item


@retry_deadlocks
def decide_blind(*, user: Any, token: str, verdicts: Mapping[str, str]) -> Adjudication:
    """Store what the adjudicator thinks before he sees the labels; shows them from then on.

    `verdicts` are as shown (left, tie, right, both_bad), one per axis in question. What was stored
    first stays: sent again, nothing changes.
    """
    with transaction.atomic():
        row, item = _own(user, token)
        if row.state != AdjudicationState.BLIND:
            return row
        row.blind = _canonical(item, row, verdicts, axes_to_decide(item))
        row.state, row.revealed_at = AdjudicationState.REVEALED, timezone.now()
        row.expires_at = _expiry()
        row.save(update_fields=["blind", "state", "revealed_at", "expires_at"])
        audit.record(actor=user, action="decide_blind", obj=item)
    return row


def _canonical(
    item: Item, row: Adjudication, verdicts: Mapping[str, str], axes: list[str]
) -> dict[str, str]:
    allowed = policies.allowed_outcomes(item.project)
    found = {axis: as_canonical(verdicts.get(axis, ""), row.first_left) for axis in axes}
    for axis, verdict in found.items():
        if verdict not in allowed:
            raise InvalidInput(_("Choose one of them."), field=axis, code="missing_verdict")
    return found


@retry_deadlocks
def decide_item(
    *, user: Any, token: str, verdicts: Mapping[str, str], reason: str, note: str = ""
) -> Adjudication:
    """The decision, with the labels in sight: a verdict as shown per axis, or `UNRESOLVED`.

    The item is done; axes that were not in question keep what the labels say. Twice is once.
    """
    note = _checked_words(reason, note)
    with transaction.atomic():
        row, item = _own(user, token)
        if row.state == AdjudicationState.DONE:
            return row
        if row.state == AdjudicationState.BLIND:
            raise Refused(_("Decide blind first."), code="not_revealed")
        if item.state != ItemState.DISPUTED:
            raise _not_disputed()
        open_axes = [axis for axis in row.blind if verdicts.get(axis) == UNRESOLVED]
        found = _canonical(item, row, verdicts, [a for a in row.blind if a not in open_axes])
        outcomes = {axis: Outcome(v, DecisionSource.ADJUDICATED) for axis, v in found.items()}
        outcomes |= {axis: Outcome("", DecisionSource.UNRESOLVED) for axis in open_axes}
        _write(user, row, item, outcomes, reason=reason, note=note)
    return row


def _checked_words(reason: str, note: str) -> str:
    """The note as it is kept. Raises InvalidInput naming the field."""
    if reason not in AdjudicationReason.values:
        raise InvalidInput(_("Say why the labels differ."), field="reason")
    return checked_text(note, field="note")


def _write(
    user: Any, row: Adjudication, item: Item, outcomes: Mapping[str, Outcome], **words: str
) -> None:
    leases = counted_labels(item)
    made: dict[str, Decision] = {}
    for axis, outcome in outcomes.items():
        blind = row.blind.get(axis, "")
        made |= decide(item, {axis: outcome}, leases, decided_by=user, blind_verdict=blind, **words)
    Item.objects.filter(pk=item.pk).update(state=ItemState.DONE)
    announce_outcome(item, ItemState.DONE, made, len(leases))
    remove_flag([item.pk], ItemFlag.CONTESTED)
    row.state, row.done_at = AdjudicationState.DONE, timezone.now()
    row.save(update_fields=["state", "done_at"])
    audit.record(
        actor=user,
        action="adjudicate_item",
        obj=item,
        reason=words["reason"],
        outcomes={axis: outcome.verdict or outcome.source for axis, outcome in outcomes.items()},
    )


@retry_deadlocks
def give_back(*, user: Any, token: str) -> None:
    """Let somebody else decide. What was decided blind is kept; twice is once."""
    with transaction.atomic():
        row, item = _own_or_gone(user, token)
        if row is not None and row.state in IN_HAND:
            _release(row)
            audit.record(actor=user, action="give_back_item", obj=item)
            settle_item(item.pk)


def _own_or_gone(user: Any, token: str) -> tuple[Adjudication | None, Item]:
    row = Adjudication.objects.filter(token=token, adjudicator=user).first()
    if row is None:
        raise Forbidden(_("This item was not given to you."), code="not_yours")
    item = _locked_item(row.item_id)
    row.refresh_from_db()
    return row, item


def contest_item(*, actor: Any, item: Item, reason: str) -> bool:
    """Give an item to the adjudicators whatever its labels say. False: its state forbids it.

    What was dropped waits for them as soon as it is released.
    """
    policies.check_manage(actor)
    with transaction.atomic():
        row = _locked_item(item.pk)
        if row.state not in (*CONTESTABLE, ItemState.DROPPED):
            return False
        Item.objects.filter(pk=row.pk, state__in=CONTESTABLE).update(state=ItemState.DISPUTED)
        add_flag([row.pk], ItemFlag.CONTESTED)
        audit.record(actor=actor, action="contest_item", obj=row, reason=reason)
    return True


def release_expired() -> int:
    """Give back what ran out, so that its labels count again. Number of items."""
    late = Adjudication.objects.filter(state__in=IN_HAND, expires_at__lte=timezone.now())
    found = list(late.order_by("pk").values_list("pk", "item_id"))
    for pk, item in found:
        with transaction.atomic():
            _locked_item(item)
            if late.filter(pk=pk).update(state=AdjudicationState.RELEASED):
                settle_item(item)
    return len(found)
