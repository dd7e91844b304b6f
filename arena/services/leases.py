"""Handing out battles: a lease per (battle, rater), taken by one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Case, Count, F, IntegerField, Q, Sum, When
from django.utils import timezone

from arena import policies
from arena.enums import LIVE_STATES, AssignmentState, RoundState, SkipReason
from arena.matchmaking import choose_side
from arena.models import Assignment, Battle, Round, RoundRater, Slot
from arena.selectors.ballots import PARTS, assignment_parts
from webapp.catalog.enums import Where
from webapp.catalog.models import Exposure
from webapp.core.errors import Refused

HELD = (AssignmentState.RESERVED, AssignmentState.SHOWN)

# The first open slot in the order of the plan that this rater may judge. A text that he met
# otherwise than in a battle bars the slot for good (V7); one that he met in a battle bars it in
# the first pass only ("fresh"). What withdrawn consent has erased is not served any more.
_CLAIM = """
UPDATE arena_slot SET live = live + 1 WHERE live < target AND id = (
  SELECT s.id FROM arena_slot s
  JOIN arena_entry ex ON ex.id = s.x_id JOIN catalog_answer ax ON ax.id = ex.answer_id
  JOIN arena_entry ey ON ey.id = s.y_id JOIN catalog_answer ay ON ay.id = ey.answer_id
  JOIN catalog_answertext tx ON tx.answer_id = ax.id
  JOIN catalog_answertext ty ON ty.answer_id = ay.id
  JOIN arena_context c ON c.id = s.context_id
  LEFT JOIN catalog_personatext p ON p.version_id = c.persona_version_id
  WHERE s.round_id = %(round)s AND s.live < s.target
    AND (c.persona_version_id IS NULL OR p.version_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM arena_assignment a
                    WHERE a.slot_id = s.id AND a.rater_id = %(rater)s)
    AND NOT EXISTS (SELECT 1 FROM catalog_exposure e
                    JOIN catalog_answer ea ON ea.id = e.answer_id
                    WHERE e.user_id = %(rater)s {met}
                      AND ea.text_sha256 IN (ax.text_sha256, ay.text_sha256))
  ORDER BY s."order" LIMIT 1 {lock}
) RETURNING id
"""
_FRESH, _SEEN = "", f"AND e.\"where\" <> '{Where.VOTED.value}'"


@dataclass(frozen=True)
class Served:
    """What a rater's page shows: his battle (None: nothing is left) and his seat in the round."""

    assignment: Assignment | None
    seat: RoundRater


def current_ballot(*, user: Any, round_: Round) -> Assignment | None:
    """The battle this rater works on now, leasing one if he has none. None: nothing is left."""
    return serve(user=user, round_=round_).assignment


def serve(*, user: Any, round_: Round) -> Served:
    """The same with the rater's seat, so that a page needs no further look at it."""
    policies.check_voter(user)
    policies.check_takes_votes(round_)
    with transaction.atomic():
        seat = _locked_seat(round_, user)
        held = _held(round_, user)
        shown = [row for row in held if row.state == AssignmentState.SHOWN]
        if shown:
            return Served(_renewed(shown[0], round_), seat)
        assignment = held[0] if held else _lease(round_, seat)
        if assignment is None:
            return Served(None, seat)
        return Served(_show(assignment, round_), seat)


def reserve_next(*, user: Any, round_: Round) -> Assignment | None:
    """Reserve the battle after the current one; it counts as not seen until it is shown."""
    policies.check_voter(user)
    policies.check_takes_votes(round_)
    with transaction.atomic():
        seat = _locked_seat(round_, user)
        held = _held(round_, user)
        reserved = [row for row in held if row.state == AssignmentState.RESERVED]
        return reserved[0] if reserved else _lease(round_, seat)


def _locked_seat(round_: Round, user: Any) -> RoundRater:
    """The rater's row, locked: two tabs of one rater take turns."""
    seat = RoundRater.objects.select_for_update().filter(round=round_, user=user).first()
    if seat is None:
        raise policies.not_a_rater()
    return seat


def _held(round_: Round, user: Any) -> list[Assignment]:
    """Live leases, the one shown last first. What expired or was erased is given back."""
    rows = list(
        Assignment.objects.select_related(*PARTS)
        .defer("round__protocol")
        .filter(round=round_, rater=user, state__in=HELD)
        .order_by(F("shown_at").desc(nulls_last=True), "pk")
    )
    now = timezone.now()
    for row in [row for row in rows if row.expires_at <= now or _is_erased(row)]:
        _expire(row)
        rows.remove(row)
    return rows


def _is_erased(row: Assignment) -> bool:
    """Whether withdrawn consent took an answer or the summary away since this was leased."""
    slot = row.slot
    version = slot.context.persona_version
    whole = hasattr(slot.x.answer, "body") and hasattr(slot.y.answer, "body")
    return not whole or (version is not None and not hasattr(version, "text"))


def _lease(round_: Round, rater: RoundRater) -> Assignment | None:
    slot_id = _claim(round_.pk, rater.user_id, _FRESH) or _claim(round_.pk, rater.user_id, _SEEN)
    if slot_id is None:
        if sweep_expired(round_):
            return _lease(round_, rater)
        return _own_expired(round_, rater)
    battles = {
        battle.left_is_x: battle
        for battle in Battle.objects.select_related("slot__x", "slot__y").filter(slot=slot_id)
    }
    slot = battles[True].slot
    left_is_x = _side(round_, rater, slot)
    if left_is_x:  # `live` was counted by the claim itself
        Slot.objects.filter(pk=slot.pk).update(x_left=F("x_left") + 1)
    created = Assignment.objects.create(
        round=round_,
        slot=slot,
        battle=battles[left_is_x],
        rater_id=rater.user_id,
        expires_at=expiry(round_),
    )
    return assignment_parts(created.pk)


def _claim(round_id: int, rater_id: int, met: str) -> int | None:
    lock = "FOR UPDATE OF s SKIP LOCKED" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM.format(met=met, lock=lock), {"round": round_id, "rater": rater_id})
        row = cursor.fetchone()
    return int(row[0]) if row else None


def _side(round_: Round, rater: RoundRater, slot: Slot) -> bool:
    """Left or right by seed and past allocations, never by verdicts (V4).

    What was given back, skipped or expired, counts for neither side: it brings no vote.
    """
    x, y = slot.x.contestant_id, slot.y.contestant_id
    left, right = _contestant_on(left=True), _contestant_on(left=False)
    counts = (
        Assignment.objects.filter(round=round_, rater_id=rater.user_id, state__in=LIVE_STATES)
        .annotate(left=left, right=right)
        .aggregate(
            x_left=Count("pk", filter=Q(left=x)),
            x_right=Count("pk", filter=Q(right=x)),
            y_left=Count("pk", filter=Q(left=y)),
            y_right=Count("pk", filter=Q(right=y)),
        )
    )
    return choose_side(
        bytes.fromhex(round_.seed),
        str(slot.order),
        rater.pseudonym,
        _pair_sides(slot),
        (counts["x_left"] + counts["y_right"], counts["x_right"] + counts["y_left"]),
    )


def _contestant_on(*, left: bool) -> Case:
    """SQL: the contestant that an assignment showed on this side."""
    return Case(
        When(battle__left_is_x=left, then=F("slot__x__contestant_id")),
        default=F("slot__y__contestant_id"),
        output_field=IntegerField(),
    )


def _pair_sides(slot: Slot) -> tuple[int, int]:
    """How often x's contestant and y's stand left in live battles, over all slots of this pair.

    The slot in hand is claimed already, without a side yet: it must not count as a right.
    """
    x, y = slot.x.contestant_id, slot.y.contestant_id
    forward = Q(x__contestant_id=x, y__contestant_id=y)
    backward = Q(x__contestant_id=y, y__contestant_id=x)
    sums = Slot.objects.filter(forward | backward, round_id=slot.round_id, live__gt=0).aggregate(
        served=Sum("live", filter=forward, default=0),
        left=Sum("x_left", filter=forward, default=0),
        served_back=Sum("live", filter=backward, default=0),
        left_back=Sum("x_left", filter=backward, default=0),
    )
    on_left = sums["left"] + sums["served_back"] - sums["left_back"]
    return on_left, sums["served"] - 1 + sums["served_back"] - on_left


def _own_expired(round_: Round, rater: RoundRater) -> Assignment | None:
    """Nothing else is left: give him back a battle whose lease he let expire."""
    row = (
        Assignment.objects.filter(
            round=round_,
            rater_id=rater.user_id,
            state=AssignmentState.EXPIRED,
            slot__live__lt=F("slot__target"),
            slot__x__answer__body__isnull=False,
            slot__y__answer__body__isnull=False,
        )
        .filter(
            Q(slot__context__persona_version=None)
            | Q(slot__context__persona_version__text__isnull=False)
        )
        .select_related("battle")
        .order_by("pk")
        .first()
    )
    if row is None or not count_live(row, 1, live__lt=F("target")):
        return None
    row.state, row.expires_at = AssignmentState.RESERVED, expiry(round_)
    row.save(update_fields=["state", "expires_at"])
    return assignment_parts(row.pk)


def count_live(row: Assignment, change: int, **only_if: Any) -> bool:
    """Count a battle into its slot (1) or out of it (-1), together with its side."""
    left = change if row.battle.left_is_x else 0
    slots = Slot.objects.filter(pk=row.slot_id, **only_if)
    return bool(slots.update(live=F("live") + change, x_left=F("x_left") + left))


def _show(assignment: Assignment, round_: Round) -> Assignment:
    """Mark as shown: from now on he has met both answers."""
    assignment.state = AssignmentState.SHOWN
    assignment.shown_at = assignment.shown_at or timezone.now()
    assignment.expires_at = expiry(round_)
    assignment.save(update_fields=["state", "shown_at", "expires_at"])
    answers = {assignment.slot.x.answer_id, assignment.slot.y.answer_id}
    Exposure.objects.bulk_create(
        [
            Exposure(user_id=assignment.rater_id, answer_id=answer, where=Where.VOTED)
            for answer in sorted(answers)
        ],
        ignore_conflicts=True,
    )
    return assignment


def _renewed(assignment: Assignment, round_: Round) -> Assignment:
    assignment.expires_at = expiry(round_)
    assignment.save(update_fields=["expires_at"])
    return assignment


def expiry(round_: Round) -> Any:
    return timezone.now() + timedelta(minutes=round_.lease_minutes)


def heartbeat(*, user: Any, token: str) -> int:
    """Renew the lease while the page is looked at. Seconds left."""
    now = timezone.now()
    row = Assignment.objects.select_related("round").filter(token=token, rater=user).first()
    if row is None or row.state not in HELD or row.round.state != RoundState.OPEN:
        raise Refused("", code="lease_gone")
    until = expiry(row.round)
    Assignment.objects.filter(pk=row.pk, state__in=HELD).update(expires_at=until)
    return int((until - now).total_seconds())


def skip(*, user: Any, token: str, reason: str) -> None:
    """Give the battle back with a reason. Twice is the same as once."""
    if reason not in SkipReason.values:
        reason = SkipReason.UNSURE
    with transaction.atomic():
        row = Assignment.objects.select_for_update().filter(token=token, rater=user).first()
        if row is None or row.state not in HELD:
            return
        _release(row, AssignmentState.SKIPPED, skip_reason=reason)


def _expire(row: Assignment) -> None:
    """Free the slot. What was never shown leaves no trace, what was shown may be sent late."""
    if row.state == AssignmentState.RESERVED and row.shown_at is None:
        if Assignment.objects.filter(pk=row.pk, state=row.state).delete()[0]:
            count_live(row, -1)
    else:
        _release(row, AssignmentState.EXPIRED)


def _release(row: Assignment, state: str, **columns: Any) -> None:
    changed = Assignment.objects.filter(pk=row.pk, state__in=HELD).update(state=state, **columns)
    if changed:
        count_live(row, -1)


def sweep_expired(round_: Round) -> int:
    """Give back every lease that ran out. Number of slots freed."""
    with transaction.atomic():
        rows = list(
            Assignment.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("battle")
            .filter(round=round_, state__in=HELD, expires_at__lte=timezone.now())
            .order_by("pk")
        )
        for row in rows:
            _expire(row)
    return len(rows)
