"""Votes as the ratings need them: the last revisions, sides resolved by the server."""

from __future__ import annotations

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from arena.enums import AssignmentState, Axis
from arena.exclusions import CastVote
from arena.models import Assignment, Round, RoundRater, Slot, Vote
from arena.selectors.rounds import asked_contexts
from webapp.catalog.models import Contestant

_COLUMNS = (
    "quality",
    "personalization",
    "active_ms",
    "late",
    "owner",
    "rater_id",
    "battle__left_is_x",
    "battle__slot__x__contestant_id",
    "battle__slot__y__contestant_id",
    "battle__slot__context_id",
    "battle__slot__context__stratum",
)


def standing_votes(round_: Round) -> QuerySet[Vote]:
    """The last revision of each rater on each battle, unless it is an undo.

    It follows the append-only votes alone: no assignment can take a vote out of the count.
    """
    later = Vote.objects.filter(
        battle=OuterRef("battle"), rater=OuterRef("rater"), revision__gt=OuterRef("revision")
    )
    rows = Vote.objects.filter(~Exists(later), battle__round=round_)
    return rows.exclude(quality="", personalization="")


def receipts_of(round_: Round) -> QuerySet[Vote, str]:
    """The receipts of all revisions of a round: what its vote digest covers."""
    return Vote.objects.filter(battle__round=round_).values_list("receipt", flat=True)


def counted_votes(round_: Round) -> list[CastVote]:
    """The standing votes by id, with sides resolved: for ratings and bundles only."""
    raters = dict(RoundRater.objects.filter(round=round_).values_list("user_id", "pseudonym"))
    names = {
        row.pk: str(row)
        for row in Contestant.objects.filter(pk__in=round_.round_contestants.values("contestant"))
    }
    rows = standing_votes(round_).order_by("pk")
    return [
        _cast(row, raters, names) for row in rows.values_list(*_COLUMNS).iterator(chunk_size=5000)
    ]


def _cast(row: tuple[object, ...], raters: dict[int, str], names: dict[int, str]) -> CastVote:
    quality, personalization, active_ms, late, owner, rater, left_is_x, x, y, context, stratum = row
    left, right = (x, y) if left_is_x else (y, x)
    verdicts = {Axis.QUALITY.value: quality, Axis.PERSONALIZATION.value: personalization}
    return CastVote(
        rater=raters[rater],  # type: ignore[index]
        context=f"c{context}",
        stratum=str(stratum),
        left=names[left],  # type: ignore[index]
        right=names[right],  # type: ignore[index]
        verdicts={axis: str(verdict) for axis, verdict in verdicts.items() if verdict},
        active_ms=int(active_ms),  # type: ignore[call-overload]
        late=bool(late),
        owner=bool(owner),
    )


def round_totals(round_: Round) -> dict[str, int]:
    """Counts that may be shown while sealed: totals only (V2)."""
    counts = Assignment.objects.filter(round=round_).aggregate(
        voted=Count("pk", filter=Q(state=AssignmentState.VOTED)),
        skipped=Count("pk", filter=Q(state=AssignmentState.SKIPPED)),
        expired=Count("pk", filter=Q(state=AssignmentState.EXPIRED)),
        raters=Count("rater", distinct=True, filter=Q(state=AssignmentState.VOTED)),
    )
    counts["revisions"] = Vote.objects.filter(assignment__round=round_).count()
    return counts


def coverage_by_stratum(round_: Round) -> list[dict[str, object]]:
    """Contexts, planned and given votes per stratum; never per contestant or pair (V2)."""
    contexts = asked_contexts(round_).values("stratum").annotate(n=Count("pk"))
    planned = {
        row["context__stratum"]: row["n"] * round_.votes_per_battle
        for row in Slot.objects.filter(round=round_)
        .values("context__stratum")
        .annotate(n=Count("pk"))
    }
    voted = {
        row["slot__context__stratum"]: row["n"]
        for row in Assignment.objects.filter(round=round_, state=AssignmentState.VOTED)
        .values("slot__context__stratum")
        .annotate(n=Count("pk"))
    }
    return [
        {
            "stratum": row["stratum"],
            "contexts": row["n"],
            "planned": planned.get(row["stratum"], 0),
            "voted": voted.get(row["stratum"], 0),
        }
        for row in contexts.order_by("stratum")
    ]
