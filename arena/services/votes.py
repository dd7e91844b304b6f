"""Casting, correcting and taking back votes: append-only revisions, the assignment has the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import OuterRef, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from arena import policies
from arena.blinding import VoteRecord, vote_nonce, vote_receipt
from arena.enums import AssignmentState, Tag, Verdict
from arena.models import Assignment, Round, RoundRater, Vote
from arena.protocol import round_key
from arena.selectors.texts import shown_hashes
from arena.services.leases import count_live, expiry
from webapp.core.errors import Forbidden, InvalidInput

COMMENT_LIMIT = 2000
ACTIVE_LIMIT_MS = 4 * 3600 * 1000


@dataclass(frozen=True)
class Ballot:
    """What a rater sends: one verdict per axis, optional reason tags and a comment."""

    verdicts: Mapping[str, str]
    tags: Sequence[str] = ()
    comment: str = ""
    active_ms: int = 0


def cast_vote(*, user: Any, token: str, ballot: Ballot) -> Vote:
    """Record a vote. The same ballot sent again returns the same vote; another one is a revision.

    A vote after the lease ran out is kept and marked late. Raises InvalidInput naming the axis
    that lacks a verdict, Refused when the round takes no votes or the battle was given back.
    """
    with transaction.atomic():
        row = _locked_assignment(user, token)
        policies.check_votable(row)
        _check_ballot(row, ballot)
        head = row.head
        if head is not None and not head.is_undo and _same(head, ballot):
            return head
        late = _take_slot(row)
        return _append(row, ballot, late=late or bool(head and head.late))


def undo_vote(*, user: Any, round_: Round, token: str) -> Assignment | None:
    """Take back the vote on the battle with this token; the rater gets that battle again.

    Sent twice it takes back one vote. None: there is nothing to take back.
    """
    policies.check_vote(user, round_)
    if not token:
        return None
    with transaction.atomic():
        row = _locked_assignment(user, token)
        if row.round_id != round_.pk:
            raise not_yours()
        if row.state == AssignmentState.VOTED and row.head is not None:
            _append(row, Ballot({}), late=row.head.late)  # a late vote stays late when given anew
            row.state, row.expires_at = AssignmentState.SHOWN, expiry(round_)
            row.shown_at = timezone.now()
            row.save(update_fields=["state", "expires_at", "shown_at"])
    return row if row.state == AssignmentState.SHOWN else None


def save_draft(*, user: Any, token: str, draft: Mapping[str, Any]) -> None:
    """Keep an unsent choice, so that another browser can go on with it."""
    names = (*_AXES, "comment")
    clean: dict[str, Any] = {key: str(draft[key])[:COMMENT_LIMIT] for key in names if key in draft}
    if str(draft.get("active_ms", "")).isdecimal():
        clean["active_ms"] = int(draft["active_ms"])
    if draft.get("tags"):
        clean["tags"] = [tag for tag in draft["tags"] if tag in Tag.values]
    Assignment.objects.filter(
        token=token, rater=user, state__in=[AssignmentState.SHOWN, AssignmentState.EXPIRED]
    ).update(draft=clean)


_AXES = ("quality", "personalization")
_PSEUDONYM = Subquery(
    RoundRater.objects.filter(round=OuterRef("round"), user=OuterRef("rater")).values("pseudonym")
)


# The assignment is locked against other tabs, the round against closing meanwhile. Everything else
# is read afterwards: a join in the same statement would still show the state before the wait.
_LOCK = """
SELECT a.id FROM arena_assignment a JOIN arena_round r ON r.id = a.round_id
WHERE a.token = %s AND a.rater_id = %s {lock}
"""


def _locked_assignment(user: Any, token: str) -> Assignment:
    lock = "FOR UPDATE OF a FOR SHARE OF r" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK.format(lock=lock), [token, user.pk])
        found = cursor.fetchone()
    if found is None:
        raise not_yours()
    row = (
        Assignment.objects.select_related(
            "head",
            "battle",
            "round",
            "slot__x",
            "slot__y",
            "slot__context__persona_version__persona",
        )
        .defer("round__protocol")  # a long text that no vote needs
        .annotate(pseudonym=_PSEUDONYM)
        .get(pk=found[0])
    )
    policies.check_takes_votes(row.round)
    return row


def not_yours() -> Forbidden:
    return Forbidden(_("This battle was not given to you."), code="not_yours")


def _check_ballot(row: Assignment, ballot: Ballot) -> None:
    for axis in row.round.axes:
        if ballot.verdicts.get(axis) not in Verdict.values:
            raise InvalidInput(_("Choose one of the four."), field=axis, code="missing_verdict")
    unknown = sorted(set(ballot.tags) - set(Tag.values))
    if unknown:
        raise InvalidInput(_("Unknown tag: %(tag)s.") % {"tag": unknown[0][:40]}, field="tags")
    if len(ballot.comment) > COMMENT_LIMIT:
        raise InvalidInput(
            _("The comment has %(have)s characters, at most %(most)s are kept.")
            % {"have": len(ballot.comment), "most": COMMENT_LIMIT},
            field="comment",
        )
    if "\x00" in ballot.comment:
        raise InvalidInput(_("The comment holds a NUL character."), field="comment")


def _same(head: Vote, ballot: Ballot) -> bool:
    return (
        all(getattr(head, axis) == ballot.verdicts.get(axis, "") for axis in _AXES)
        and head.tags == sorted(set(ballot.tags))
        and head.comment == ballot.comment
    )


def _take_slot(row: Assignment) -> bool:
    """Make sure that the vote stands on a counted slot. True: the lease had run out (late)."""
    if row.state in (AssignmentState.VOTED, AssignmentState.SHOWN):
        return row.state == AssignmentState.SHOWN and row.expires_at <= timezone.now()
    count_live(row, 1)
    return True


def _append(row: Assignment, ballot: Ballot, *, late: bool) -> Vote:
    """Write the next revision and point the assignment at it."""
    revision = (row.head.revision if row.head else 0) + 1
    record = _record(row, ballot, revision)
    vote = Vote.objects.create(
        assignment=row,
        battle_id=row.battle_id,
        rater_id=row.rater_id,
        revision=revision,
        **{axis: record.verdicts.get(axis, "") for axis in _AXES},
        tags=sorted(set(ballot.tags)),
        comment=ballot.comment,
        active_ms=min(max(ballot.active_ms, 0), ACTIVE_LIMIT_MS),
        owner=_is_owner(row),
        late=late,
        nonce=record.nonce,
        receipt=vote_receipt(record),
    )
    row.head, row.state, row.draft = vote, AssignmentState.VOTED, {}
    row.save(update_fields=["head", "state", "draft"])
    return vote


def _record(row: Assignment, ballot: Ballot, revision: int) -> VoteRecord:
    pseudonym: str = row.pseudonym  # type: ignore[attr-defined]
    verdicts = {axis: ballot.verdicts[axis] for axis in row.round.axes if axis in ballot.verdicts}
    battle = row.battle
    left, right = shown_hashes(row.slot, battle.left_is_x)
    nonce = vote_nonce(bytes.fromhex(row.round.seed), battle.public_id, pseudonym, revision)
    return VoteRecord(
        round_key(row.round), battle.public_id, pseudonym, revision, verdicts, left, right, nonce
    )


def _is_owner(row: Assignment) -> bool:
    version = row.slot.context.persona_version
    return bool(version and version.persona.owner_id == row.rater_id)
