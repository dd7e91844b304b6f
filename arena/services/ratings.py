"""Computing the ratings of a closed round once, as append-only snapshots (V10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction

from arena.enums import COMPOSITE, Axis, RoundState, Variant
from arena.exclusions import CastVote, excluded_votes, flow
from arena.models import Rating, RatingSnapshot, Round
from arena.protocol import CONFIDENCE_PERCENT, rating_spec
from arena.ratings import (
    BothBad,
    Method,
    RatingResult,
    RatingSpec,
    VoteTable,
    rate,
    rate_composite,
)
from arena.selectors.votes import counted_votes
from arena.services.rounds import contestants_of
from webapp.core.jobs import enqueue

CODE_VERSION = "1"
OWNER_AXIS = "owner"  # personalization, by the personas' owners alone
Results = dict[tuple[str, str], RatingResult]  # (axis, stratum)


def rate_round(pk: int) -> None:
    """Write both snapshots of a closed round. A second run finds them and does nothing."""
    round_ = Round.objects.get(pk=pk)
    if round_.state not in (RoundState.CLOSED, RoundState.UNSEALED):
        return
    votes = counted_votes(round_)
    excluded = excluded_votes(votes, round_.exclusions)
    kept = [vote for number, vote in enumerate(votes) if number not in excluded]
    for variant, rows in ((Variant.ALL, votes), (Variant.EXCLUDED, kept)):
        results = compute(round_, rows)
        details = {"flow": flow(votes, excluded), "results": _details(results)}
        _store(round_, variant, results, details)


def compute(round_: Round, votes: Sequence[CastVote]) -> Results:
    """Every rating of the round: per axis, overall, by owners; for all and per stratum."""
    names = sorted(str(contestant) for contestant in contestants_of(round_))
    spec = spec_of(round_)
    weights = {axis: float(percent) for axis, percent in round_.weights.items()}
    results: Results = {}
    for stratum in ["", *sorted({vote.stratum for vote in votes if vote.stratum})]:
        rows = [vote for vote in votes if not stratum or vote.stratum == stratum]
        tables = {axis: _table(rows, axis, names) for axis in round_.axes}
        for axis, table in tables.items():
            results[axis, stratum] = rate(table, spec)
        if len(tables) > 1:
            results[COMPOSITE, stratum] = rate_composite(tables, weights, spec)
    owners = [vote for vote in votes if vote.owner]
    if owners and Axis.PERSONALIZATION in round_.axes:
        table = _table(owners, Axis.PERSONALIZATION, names)
        results[OWNER_AXIS, ""] = rate(table, replace(spec, anchor=None))
    return results


def spec_of(round_: Round) -> RatingSpec:
    """The pre-registered spec as the rating module takes it."""
    registered = rating_spec(round_)
    return RatingSpec(
        method=Method(registered["method"]),
        both_bad=BothBad.DROP if round_.drop_both_bad else BothBad.AS_TIE,
        anchor=registered["anchor"],
        confidence=CONFIDENCE_PERCENT / 100,
        seed=registered["seed"],
    )


def _table(votes: Sequence[CastVote], axis: str, names: list[str]) -> VoteTable:
    rows = [
        (vote.left, vote.right, vote.verdicts[axis], vote.rater, vote.context)
        for vote in votes
        if vote.verdicts.get(axis)
    ]
    return VoteTable.from_rows(rows, contestants=names)


def _details(results: Results) -> dict[str, dict[str, Any]]:
    details: dict[str, dict[str, Any]] = {}
    for (axis, stratum), result in results.items():
        data = result.to_dict()
        data["order"] = [row.contestant for row in result.rows]
        del data["rows"]
        details.setdefault(axis, {})[stratum] = data
    return details


def _store(round_: Round, variant: str, results: Results, details: dict[str, Any]) -> None:
    by_name = {str(contestant): contestant for contestant in contestants_of(round_)}
    with transaction.atomic():
        snapshot, created = RatingSnapshot.objects.get_or_create(
            round=round_,
            variant=variant,
            vote_digest=round_.vote_digest,
            code_version=CODE_VERSION,
            defaults={"spec": spec_of(round_).to_dict(), "details": details},
        )
        if not created:
            return
        Rating.objects.bulk_create(
            (
                Rating(
                    snapshot=snapshot,
                    contestant=by_name[row.contestant],
                    axis=axis,
                    stratum=stratum,
                    strength=row.strength,
                    rating=row.rating,
                    lo=row.lo,
                    hi=row.hi,
                    rank_lo=row.rank_lo,
                    rank_hi=row.rank_hi,
                    votes=row.votes,
                    tie_rate=row.tie_rate,
                    both_bad_rate=row.both_bad_rate,
                )
                for (axis, stratum), result in results.items()
                for row in result.rows
            ),
            batch_size=500,
        )


def restart_missing() -> int:
    """Send the job again for closed rounds that lack a snapshot."""
    rows = Round.objects.filter(state=RoundState.CLOSED).exclude(
        snapshots__variant=Variant.EXCLUDED
    )
    for pk in rows.values_list("pk", flat=True):
        enqueue("rate_round", pk)
    return rows.count()
