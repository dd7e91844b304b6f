"""What everybody may read once a round is unsealed: its ratings, as they were computed at closing.

Nothing here answers for a round in any other state (V2). Simulated rounds carry their mark in
every object, so that no page and no file can forget it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from arena import policies
from arena.enums import COMPOSITE, Axis, RoundState, Variant
from arena.models import Rating, RatingSnapshot, Round
from webapp.core.errors import Forbidden, InvalidInput, Refused

OWNER = "owner"  # personalization, by the personas' owners alone
AXES = (COMPOSITE, *Axis.values, OWNER)


@dataclass(frozen=True)
class BoardRow:
    """One contestant. Numbers are None where the votes cannot tell; `lo`, `hi` bound `rating`."""

    contestant_id: int
    contestant: str
    rank: str
    rank_lo: int | None
    rank_hi: int | None
    strength: float | None
    rating: float | None
    lo: float | None
    hi: float | None
    votes: int
    tie_rate: float | None
    both_bad_rate: float | None
    first: bool


@dataclass(frozen=True)
class Board:
    """The ratings of one round on one axis, for one stratum ("" = all) and one variant.

    `result` is the stored rating without its rows: matrices in the order of `rows`, side effect,
    notes, numbers of votes, raters and contexts. `flow`: votes given and left out, by rule.
    """

    round: Round
    axis: str
    stratum: str
    variant: str
    rows: tuple[BoardRow, ...]
    result: Mapping[str, Any]
    flow: Mapping[str, int]
    snapshot: RatingSnapshot
    axes: tuple[str, ...]
    strata: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        return self.round.simulated

    @property
    def first(self) -> str | None:
        """Who is surely above all others, if anybody is."""
        name: str | None = self.result.get("first")
        return name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(row.contestant for row in self.rows)

    @property
    def pair_votes(self) -> list[list[int]]:
        """How many votes count between two contestants, in the order of `rows`.

        Overall, `result` counts a vote once per axis; here it counts once, however many axes.
        """
        if self.axis != COMPOSITE:
            return [list(row) for row in self.result["battles"]]
        results = self.snapshot.details["results"]
        tables = [results[axis][self.stratum] for axis in self.axes if axis in Axis.values]
        places = [{name: n for n, name in enumerate(table["order"])} for table in tables]
        return [
            [
                max(t["battles"][p[a]][p[b]] for t, p in zip(tables, places, strict=True))
                for b in self.names
            ]
            for a in self.names
        ]


# --- who may read, and what there is ----------------------------------------------------------


def may_read(user: Any) -> bool:
    """Whether this person may read leaderboards at all: the results of any unsealed round."""
    return policies.may_see_results(user, Round(state=RoundState.UNSEALED))


def check_results(user: Any, round_: Round) -> None:
    """Raise unless the results of this round exist for this person."""
    if round_.state != RoundState.UNSEALED:
        raise Refused(
            _("This round is not unsealed: nobody can see its results yet."), code="sealed"
        )
    if not policies.may_see_results(user, round_):
        raise Forbidden(_("Sign in to see the results."), code="role")


def unsealed_rounds() -> QuerySet[Round]:
    """Rounds with public results, the newest first."""
    return Round.objects.filter(state=RoundState.UNSEALED).order_by("-unsealed_at", "-pk")


def readable_rounds(user: Any) -> QuerySet[Round]:
    """Rounds whose record this person may read: all with an account, else the unsealed ones."""
    if user.is_authenticated:
        return Round.objects.order_by("-pk")
    return unsealed_rounds() if may_read(user) else Round.objects.none()


def access_record(user: Any, pk: int) -> Round:
    """A round whose record (commitment, protocol) this person may read; 404 otherwise."""
    round_ = readable_rounds(user).filter(pk=pk).first()
    if round_ is None:
        raise Http404
    return round_


def access_results(user: Any, pk: int) -> Round:
    """An unsealed round by its number: 404 where there is none, Refused where it is sealed."""
    round_ = Round.objects.filter(pk=pk).first()
    if round_ is None:
        raise Http404
    check_results(user, round_)
    return round_


# --- boards -----------------------------------------------------------------------------------


def read_board(
    round_: Round, *, axis: str = "", stratum: str = "", variant: str = Variant.ALL
) -> Board:
    """One board of an unsealed round in two queries; InvalidInput names a choice that fails."""
    check_unsealed(round_)
    found = _snapshots(round_, [variant]) if variant in Variant.values else {}
    snapshot = found.get(variant)
    if snapshot is None:
        raise InvalidInput(_("There are no such ratings of this round."), field="variant")
    results = snapshot.details["results"]
    axis = axis or default_axis(results)
    if axis not in results:
        raise InvalidInput(_("This round was not rated on this axis."), field="axis")
    if stratum not in results[axis]:
        raise InvalidInput(_("This round has no ratings of this stratum."), field="stratum")
    rows = _ratings([snapshot]).filter(axis=axis, stratum=stratum)
    return _board(round_, snapshot, axis, stratum, rows)


def read_boards(
    round_: Round, *, axis: str = "", stratum: str | None = None, variant: str = ""
) -> list[Board]:
    """All boards of an unsealed round that fit, in two queries. Empty choices mean all."""
    check_unsealed(round_)
    snapshots = _snapshots(round_, [variant] if variant else Variant.values)
    rows: dict[tuple[int, str, str], list[Rating]] = {}
    for row in _ratings(snapshots.values()):
        rows.setdefault((row.snapshot_id, row.axis, row.stratum), []).append(row)
    return [
        _board(round_, snapshot, a, s, rows.get((snapshot.pk, a, s), []))
        for snapshot in snapshots.values()
        for a, by_stratum in ordered(snapshot.details["results"])
        for s in sorted(by_stratum)
        if (not axis or a == axis) and (stratum is None or s == stratum)
    ]


def default_axis(results: Mapping[str, Any]) -> str:
    """Overall where there are several axes, else the only one."""
    return next(axis for axis, _by_stratum in ordered(results))


def ordered(results: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The stored results in the order in which people read the axes."""
    return [(axis, results[axis]) for axis in AXES if axis in results]


def check_unsealed(round_: Round) -> None:
    """The last door, whoever calls: no result of a sealed round is ever built."""
    if round_.state != RoundState.UNSEALED:
        raise Refused(_("This round is not unsealed."), code="sealed")


def _snapshots(round_: Round, variants: Iterable[str]) -> dict[str, RatingSnapshot]:
    """The newest snapshot of each variant over the round's own votes."""
    rows = RatingSnapshot.objects.filter(
        round=round_, vote_digest=round_.vote_digest, variant__in=list(variants)
    ).order_by("variant", "pk")
    return {row.variant: row for row in rows}


def _ratings(snapshots: Iterable[RatingSnapshot]) -> QuerySet[Rating]:
    return Rating.objects.filter(snapshot__in=list(snapshots)).select_related("contestant")


def _board(
    round_: Round, snapshot: RatingSnapshot, axis: str, stratum: str, ratings: Iterable[Rating]
) -> Board:
    results = snapshot.details["results"]
    result = results[axis][stratum]
    place = {name: number for number, name in enumerate(result["order"])}
    rows = sorted(
        (board_row(row, result.get("first")) for row in ratings), key=lambda r: place[r.contestant]
    )
    return Board(
        round=round_,
        axis=axis,
        stratum=stratum,
        variant=snapshot.variant,
        rows=tuple(rows),
        result=result,
        flow=snapshot.details["flow"],
        snapshot=snapshot,
        axes=tuple(a for a, _by_stratum in ordered(results)),
        strata=tuple(sorted(results[axis])),
    )


def board_row(row: Rating, first: str | None = None) -> BoardRow:
    """A stored rating as people read it."""
    name = str(row.contestant)
    return BoardRow(
        contestant_id=row.contestant_id,
        contestant=name,
        rank=rank_words(row.rank_lo, row.rank_hi),
        rank_lo=row.rank_lo,
        rank_hi=row.rank_hi,
        strength=row.strength,
        rating=row.rating,
        lo=row.lo,
        hi=row.hi,
        votes=row.votes,
        tie_rate=row.tie_rate,
        both_bad_rate=row.both_bad_rate,
        first=name == first,
    )


def rank_words(lo: int | None, hi: int | None) -> str:
    """Like “2” or “2–4”; “–” where the votes do not say."""
    if lo is None or hi is None:
        return "–"
    return str(lo) if lo == hi else f"{lo}–{hi}"
