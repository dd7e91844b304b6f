"""What a rater may see of a battle: a blind object that has no identity field (V1–V3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, Subquery
from django.utils import timezone

from arena.enums import AssignmentState, RoundState
from arena.models import Assignment, Round, RoundRater, Vote
from arena.protocol import round_key
from arena.selectors.texts import check_unaltered, shown_hashes, shown_text
from webapp.catalog.blind import BlindPair, difference_pair, rendered_pair
from webapp.catalog.models import PersonaVersion, Prompt


@dataclass(frozen=True)
class Progress:
    """Votes given by this rater, how many he can expect to give, and his last battle's token."""

    done: int
    target: int
    last: str = ""
    complete: bool = False  # all planned votes of the round are in


PARTS = (
    "round",
    "battle",
    "head",
    "slot__x__answer__body",
    "slot__y__answer__body",
    "slot__context__prompt",
    "slot__context__persona_version__text",
    "slot__context__persona_version__persona",
)


def assignment_parts(pk: int) -> Assignment:
    """The assignment with everything its page needs, in one query."""
    return Assignment.objects.select_related(*PARTS).defer("round__protocol").get(pk=pk)


def own_assignment(user: Any, token: str) -> Assignment | None:
    """A rater's own battle by its token; nobody else's."""
    return Assignment.objects.select_related(*PARTS).filter(rater=user, token=token).first()


def blind_pair(row: Assignment) -> BlindPair:
    """The blind object of an assignment loaded by `assignment_parts`."""
    return rendered_pair(row.token, *_context(row), *sides(row))


def blind_difference(row: Assignment) -> BlindPair:
    """The same with the word-level difference in place of the rendered answers."""
    return difference_pair(row.token, *_context(row), *sides(row))


def _context(row: Assignment) -> tuple[Prompt, PersonaVersion | None]:
    context = row.slot.context
    return context.prompt, context.persona_version


def sides(row: Assignment) -> tuple[str, str]:
    """The two texts as shown, left first. Refused unless all that is shown is as it was sealed."""
    check_unaltered(row)
    slot = row.slot
    x, y = shown_text(slot.x), shown_text(slot.y)
    return (x, y) if row.battle.left_is_x else (y, x)


def open_rounds_for(user: Any) -> QuerySet[Round]:
    """Rounds in which this user may vote now, the oldest first."""
    return (
        Round.objects.filter(state=RoundState.OPEN, round_raters__user=user)
        .filter(Q(closes_at=None) | Q(closes_at__gt=timezone.now()))
        .order_by("opened_at", "pk")
    )


def progress_of(user: Any, round_: Round) -> Progress:
    """His votes, and his share of what is planned."""
    raters = RoundRater.objects.filter(round=round_).values("round").annotate(n=Count("pk"))
    counts = Assignment.objects.filter(round=round_, state=AssignmentState.VOTED).aggregate(
        own=Count("pk", filter=Q(rater=user)),
        all=Count("pk"),
        raters=Max(Subquery(raters.values("n"))),
        last=Max(Subquery(_voted(user, round_).values("token")[:1])),
    )
    seats = counts["raters"] or RoundRater.objects.filter(round=round_).count()
    left = max(round_.planned_votes - counts["all"], 0)
    to_go = _to_go(planned=round_.planned_votes, own=counts["own"], left=left, seats=seats or 1)
    target = counts["own"] + min(left, to_go)
    last = counts["last"] or ""
    return Progress(done=counts["own"], target=target, last=last, complete=left == 0)


def _to_go(*, planned: int, own: int, left: int, seats: int) -> int:
    """His share stays where it is until he has given it; then what the others left is shared."""
    share = -(-planned // seats)
    return share - own if own < share else -(-left // seats)


def _voted(user: Any, round_: Round) -> QuerySet[Assignment]:
    """His battles with a vote, the last one first."""
    rows = Assignment.objects.filter(round=round_, rater=user, state=AssignmentState.VOTED)
    return rows.order_by("-head__at", "-head")


def axes_of(user: Any, round_: Round) -> list[str]:
    """The order in which this rater is asked."""
    row = RoundRater.objects.filter(round=round_, user=user).first()
    return axes_of_seat(row, round_)


def axes_of_seat(seat: RoundRater | None, round_: Round) -> list[str]:
    return list(seat.axes) if seat and seat.axes else list(round_.axes)


def seconds_left(row: Assignment) -> int:
    return max(int((row.expires_at - timezone.now()).total_seconds()), 0)


def own_votes(user: Any, round_: Round | None = None) -> QuerySet[Vote]:
    """The rater's votes with what a receipt names, the newest first."""
    rows = Vote.objects.filter(rater=user).select_related(
        "assignment__round", "assignment__battle", "assignment__slot__x", "assignment__slot__y"
    )
    if round_ is not None:
        rows = rows.filter(assignment__round=round_)
    return rows.order_by("-pk")


def receipt_record(vote: Vote, pseudonym: str) -> dict[str, Any]:
    """What the receipt hashes; with it anyone can recompute the code."""
    row = vote.assignment
    round_ = row.round
    verdicts = {axis: getattr(vote, axis) for axis in round_.axes if getattr(vote, axis)}
    left, right = shown_hashes(row.slot, row.battle.left_is_x)
    return {
        "round": round_key(round_),
        "battle": row.battle.public_id,
        "rater": pseudonym,
        "revision": vote.revision,
        "verdicts": verdicts,
        "left_sha256": left,
        "right_sha256": right,
        "nonce": vote.nonce,
    }


def pseudonym_of(user: Any, round_: Round) -> str:
    row = RoundRater.objects.filter(round=round_, user=user).first()
    return row.pseudonym if row else ""


def round_to_undo(user: Any, token: str) -> Round | None:
    """The round of the battle whose vote is to be taken back."""
    rows = Assignment.objects.select_related("round").filter(rater=user, head__isnull=False)
    row = rows.filter(token=token).first()
    return row.round if row else None
