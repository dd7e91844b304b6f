"""Computing the ratings of a closed round once, as append-only snapshots (V10)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.db.models import Count, F, Q
from django.utils.translation import gettext as _

from arena.blinding import vote_digest
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
from arena.selectors.votes import counted_votes, receipts_of
from arena.services.rounds import contestants_of, locked
from webapp.core.errors import Refused
from webapp.core.jobs import enqueue

log = logging.getLogger(__name__)

CODE_VERSION = "1"
ALIVE_SECONDS = 300  # how long repair waits for a job that began
OWNER_AXIS = "owner"  # personalization, by the personas' owners alone
RATED_STATES = (RoundState.CLOSED, RoundState.UNSEALED)
Results = dict[tuple[str, str], RatingResult]  # (axis, stratum)


def rate_round(pk: int) -> None:
    """Write both snapshots of a closed round. A second run finds them and computes nothing.

    Raises Refused when the votes are not those that were closed; nothing is stored then.
    """
    round_ = Round.objects.get(pk=pk)
    if round_.state not in RATED_STATES or not missing_variants(round_):
        return
    cache.set(f"rating:{pk}", 1, ALIVE_SECONDS)  # a sign of life: repair leaves it alone
    _check_votes(round_)
    votes = counted_votes(round_)
    excluded = excluded_votes(votes, round_.exclusions)
    kept = [vote for number, vote in enumerate(votes) if number not in excluded]
    computed = {Variant.ALL: compute(round_, votes), Variant.EXCLUDED: compute(round_, kept)}
    with transaction.atomic():
        round_ = locked(pk)
        for variant in missing_variants(round_):
            _store(round_, variant, computed[Variant(variant)], flow(votes, excluded))


def missing_variants(round_: Round) -> list[str]:
    """The variants that were not rated yet from the votes of the closing."""
    rows = round_.snapshots.filter(vote_digest=round_.vote_digest)
    have = set(rows.values_list("variant", flat=True))
    return [variant for variant in Variant.values if variant not in have]


def _check_votes(round_: Round) -> None:
    """Ratings follow the very votes whose digest was fixed, and shown, at closing."""
    if vote_digest(receipts_of(round_).iterator()) == round_.vote_digest:
        return
    log.error("the votes do not lead to the digest of the closing", extra={"round": round_.pk})
    raise Refused(
        _("The votes of this round are not those that it was closed with; it cannot be rated."),
        code="votes_changed",
    )


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


def _store(round_: Round, variant: str, results: Results, counts: Mapping[str, int]) -> None:
    by_name = {str(contestant): contestant for contestant in contestants_of(round_)}
    snapshot = RatingSnapshot.objects.create(
        round=round_,
        variant=variant,
        vote_digest=round_.vote_digest,
        code_version=CODE_VERSION,
        spec=spec_of(round_).to_dict(),
        details={"flow": counts, "results": _details(results)},
    )
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
    """Send the job again for rounds that lack a snapshot and where no job is alive."""
    rated = Q(snapshots__vote_digest=F("vote_digest"))
    rows = (
        Round.objects.filter(state__in=RATED_STATES)
        .annotate(rated=Count("snapshots__variant", distinct=True, filter=rated))
        .filter(rated__lt=len(Variant.values))
        .order_by("pk")
    )
    waiting = list(rows.values_list("pk", flat=True))
    pks = [pk for pk in waiting if cache.add(f"rating:{pk}", 1, ALIVE_SECONDS)]
    for pk in pks:
        enqueue("rate_round", pk)
    return len(pks)
