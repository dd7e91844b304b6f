"""Ratings over rounds: joined only through contestants that rounds share, never by their names.

Simulated rounds and rounds of people are never put on one scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from arena.enums import Variant
from arena.models import Rating, RatingSnapshot, Round
from arena.ratings.elo import BASE, ELO_PER_LOG
from arena.ratings.graph import connectivity
from arena.ratings.history import RoundStrengths, join_rounds
from arena.ratings.interval import quantile
from arena.selectors.leaderboard import BoardRow, board_row, unsealed_rounds
from webapp.catalog.models import Contestant

LONGEST = 24  # rounds in one history


@dataclass(frozen=True)
class HistoryRow:
    """A contestant in one round: as rated there, and on the common scale of the chain."""

    round_id: int
    chain: int
    row: BoardRow
    joined_rating: float | None
    joined_lo: float | None
    joined_hi: float | None


@dataclass(frozen=True)
class HistoryRound:
    """A round of the history. Rounds compare only within a `chain`."""

    id: int
    name: str
    label: str
    chain: int
    round: Round


@dataclass(frozen=True)
class RatingHistory:
    """Rounds, the oldest first, with the ratings of all their contestants on one axis."""

    axis: str
    simulated: bool
    rounds: tuple[HistoryRound, ...]
    rows: tuple[HistoryRow, ...]
    notes: tuple[dict[str, Any], ...]


def read_history(axis: str, *, simulated: bool = False) -> RatingHistory:
    """The history of one kind of rounds on one axis, all votes, all strata, in three queries."""
    newest = unsealed_rounds().filter(simulated=simulated)[:LONGEST]
    rounds = {round_.pk: round_ for round_ in reversed(newest)}
    results = _results(rounds, axis)
    rounds = {pk: round_ for pk, round_ in rounds.items() if pk in results}
    labels = _labels(rounds.values())
    ratings = _ratings(results, axis)
    joined = join_rounds([_strengths(labels[pk], results[pk][1], ratings[pk]) for pk in rounds])
    places = {row.name: row for row in joined.rounds}
    listed = tuple(
        HistoryRound(pk, row.name, labels[pk], places[labels[pk]].chain, row)
        for pk, row in rounds.items()
    )
    rows = tuple(
        _history_row(rating, results[one.id][1], one, places[one.label].shift)
        for one in listed
        for rating in ratings[one.id]
    )
    notes = tuple(asdict(note) for note in joined.notes)
    return RatingHistory(axis, simulated, listed, rows, notes)


def contestant_history(contestant: Contestant, axis: str) -> list[tuple[HistoryRound, HistoryRow]]:
    """The rows of one contestant, rounds of people first, each kind the oldest round first."""
    found = []
    for simulated in (False, True):
        history = read_history(axis, simulated=simulated)
        rounds = {row.id: row for row in history.rounds}
        found += [
            (rounds[row.round_id], row)
            for row in history.rows
            if row.row.contestant_id == contestant.pk
        ]
    return found


def has_simulated_rounds() -> bool:
    return unsealed_rounds().filter(simulated=True).exists()


def rated_contestant(pk: int) -> Contestant | None:
    """A contestant of an unsealed round; nobody else has a history."""
    rows = Contestant.objects.filter(pk=pk, ratings__snapshot__round__in=unsealed_rounds())
    return rows.distinct().first()


def _results(rounds: Mapping[int, Round], axis: str) -> dict[int, tuple[int, dict[str, Any]]]:
    """Snapshot id and stored result per round that was rated on this axis."""
    rows = RatingSnapshot.objects.filter(round__in=list(rounds), variant=Variant.ALL)
    found: dict[int, tuple[int, dict[str, Any]]] = {}
    for row in rows.order_by("pk"):
        result = row.details["results"].get(axis, {}).get("")
        if result is not None and row.vote_digest == rounds[row.round_id].vote_digest:
            found[row.round_id] = (row.pk, result)
    return found


def _ratings(
    results: Mapping[int, tuple[int, dict[str, Any]]], axis: str
) -> dict[int, list[Rating]]:
    rounds = {snapshot: round_id for round_id, (snapshot, _result) in results.items()}
    found: dict[int, list[Rating]] = {round_id: [] for round_id in results}
    rows = Rating.objects.filter(snapshot__in=list(rounds), axis=axis, stratum="")
    for row in rows.select_related("contestant").order_by("contestant__name", "pk"):
        found[rounds[row.snapshot_id]].append(row)
    return found


def _labels(rounds: Iterable[Round]) -> dict[int, str]:
    """A name for each round that no other round of the list has."""
    rows = list(rounds)
    names = [row.name for row in rows]
    return {
        row.pk: row.name if names.count(row.name) == 1 else f"{row.name} ({row.pk})" for row in rows
    }


def _strengths(label: str, result: Mapping[str, Any], ratings: Sequence[Rating]) -> RoundStrengths:
    """What joins a round to others: its largest connected group, weighted by precision."""
    largest = _largest_group(result)
    usable = [r for r in ratings if r.strength is not None and str(r.contestant) in largest]
    bounded = [r for r in usable if r.lo is not None and r.hi is not None and r.hi > r.lo]
    rows = bounded or usable
    strengths = {str(r.contestant): float(r.strength or 0.0) for r in rows}
    if not bounded:
        return RoundStrengths(label, strengths)
    df, confidence = result.get("df"), float(result["spec"]["confidence"])
    scale = 2.0 * ELO_PER_LOG * float(quantile(np.inf if df is None else df, confidence))
    errors = {str(r.contestant): (float(r.hi or 0) - float(r.lo or 0)) / scale for r in bounded}
    return RoundStrengths(label, strengths, errors)


def _largest_group(result: Mapping[str, Any]) -> set[str]:
    graph = connectivity(np.array(result["battles"], dtype=np.float64))
    groups = zip(result["order"], graph.component, strict=True)
    return {name for name, group in groups if group == 0}


def _history_row(
    rating: Rating, result: Mapping[str, Any], round_: HistoryRound, shift: float
) -> HistoryRow:
    row = board_row(rating, result.get("first"))
    if row.strength is None or row.rating is None:
        return HistoryRow(round_.id, round_.chain, row, None, None, None)
    joined = BASE + ELO_PER_LOG * (row.strength + shift)
    move = joined - row.rating
    return HistoryRow(
        round_id=round_.id,
        chain=round_.chain,
        row=row,
        joined_rating=joined,
        joined_lo=None if row.lo is None else row.lo + move,
        joined_hi=None if row.hi is None else row.hi + move,
    )
