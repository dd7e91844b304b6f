"""From votes to a finished rating: the one entry point for callers.

    result = rate(votes, RatingSpec(method=Method.DAVIDSON))

The numbers depend on the multiset of votes and on the spec alone, never on the order of the
votes (online Elo, a diagnostic, excepted).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arena.ratings.bootstrap import bootstrap
from arena.ratings.composite import Composite, align, compose
from arena.ratings.contrasts import Ranks, rank_intervals
from arena.ratings.counts import BothBad, Counts, outcome_cube
from arena.ratings.elo import ELO_PER_LOG, online_elo, shift
from arena.ratings.fit import Fit, fit_bradley_terry, fit_davidson
from arena.ratings.graph import Connectivity, Note, connectivity
from arena.ratings.interval import Axis, Covariance, covariance, quantile
from arena.ratings.result import Interval, Method, RatingResult, RatingRow, RatingSpec
from arena.ratings.side import side_effect
from arena.ratings.votes import FloatArray, IntArray, Outcome, VoteTable

DEFAULT = RatingSpec()


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Strengths with their uncertainty, before names and the Elo scale: all arrays (K,)."""

    strength: FloatArray
    low: FloatArray
    high: FloatArray
    graph: Connectivity
    cov: Covariance | None
    ranks: Ranks | None
    notes: tuple[Note, ...]
    nu: float | None = None


def rate(votes: VoteTable, spec: RatingSpec = DEFAULT) -> RatingResult:
    """Rate one axis.

    Never raises on thin or lopsided votes: what they cannot tell is None, and `notes` says why.
    Raises ValueError where `spec.anchor` is not among the contestants.
    """
    if spec.method is Method.ELO:
        return _assemble(votes, spec, _sequential(votes))
    votes = votes.canonical()
    result = _assemble(votes, spec, _estimate(votes, spec))
    if not spec.side:
        return result
    side = side_effect(
        votes,
        ties=spec.method is Method.DAVIDSON,
        cluster=spec.cluster,
        both_bad=spec.both_bad,
        confidence=spec.confidence,
    )
    return replace(result, side=side)


def rate_composite(
    tables: Mapping[str, VoteTable],
    weights: Mapping[str, float],
    spec: RatingSpec = DEFAULT,
) -> RatingResult:
    """The overall rating of several axes, by pre-registered weights.

    Intervals are sandwich intervals with the covariance between axes, whatever `spec.ci` says
    (NONE leaves them out). Counts in the rows add up over the axes. Raises ValueError on weights
    that do not fit the axes, on online Elo, and on an unknown anchor.
    """
    if spec.method is Method.ELO:
        raise ValueError("online Elo has no composite")
    aligned = align(tables)
    aligned = {axis: table.canonical() for axis, table in aligned.items()}
    axes = {a: Axis(t, fit(t, spec), spec.both_bad) for a, t in aligned.items()}
    composite = compose(axes, weights, spec.cluster)
    estimate = _from_composite(composite, spec)
    result = _assemble(_pooled(aligned, composite.weights), spec, estimate)
    return replace(result, weights=composite.weights)


def rate_strata(
    votes: VoteTable, strata: Sequence[str], spec: RatingSpec = DEFAULT
) -> dict[str, RatingResult]:
    """A rating per stratum; `strata` (N,) names the stratum of every vote."""
    if len(strata) != len(votes):
        raise ValueError(f"{len(strata)} strata for {len(votes)} votes")
    column = np.asarray(strata, dtype=object)
    return {name: rate(votes.subset(column == name), spec) for name in sorted(set(strata))}


def fit(votes: VoteTable, spec: RatingSpec = DEFAULT) -> Fit:
    """The point fit alone, without intervals."""
    counts = Counts.of(outcome_cube(votes), spec.both_bad)
    if spec.method is Method.DAVIDSON:
        return fit_davidson(counts, votes.contestants)
    if spec.method is Method.BRADLEY_TERRY:
        return fit_bradley_terry(counts, votes.contestants)
    raise ValueError("online Elo is not a fit")


def _estimate(votes: VoteTable, spec: RatingSpec) -> _Estimate:
    point = fit(votes, spec)
    blank = np.full(len(point.strength), np.nan)
    if not point.graph.groups or spec.ci is Interval.NONE:
        return _Estimate(
            point.strength, blank, blank, point.graph, None, None, point.notes, point.nu
        )
    cov = covariance(Axis(votes, point, spec.both_bad), spec.cluster)
    low, high = _bounds(point.strength, cov, spec)
    notes = (*point.notes, *cov.notes)
    if spec.ci is Interval.BOOTSTRAP:
        replicates = bootstrap(
            votes,
            point,
            cluster=spec.cluster,
            both_bad=spec.both_bad,
            replicates=spec.replicates,
            seed=spec.seed,
        )
        low, high = replicates.interval(len(blank), spec.confidence)
        notes = (*point.notes, *replicates.notes, *cov.notes)
    low, high = _unbounded(low, high, point.graph)
    ranks = _ranks(point.strength, cov, point.graph, spec)
    return _Estimate(point.strength, low, high, point.graph, cov, ranks, notes, point.nu)


def _from_composite(composite: Composite, spec: RatingSpec) -> _Estimate:
    strength, cov, graph = composite.strength, composite.covariance, composite.graph
    if spec.ci is Interval.NONE or not graph.groups:
        blank = np.full(len(strength), np.nan)
        return _Estimate(strength, blank, blank, graph, None, None, composite.notes)
    low, high = _unbounded(*_bounds(strength, cov, spec), graph)
    ranks = _ranks(strength, cov, graph, spec)
    return _Estimate(strength, low, high, graph, cov, ranks, composite.notes)


def _sequential(votes: VoteTable) -> _Estimate:
    ratings = online_elo(votes)
    strength = (ratings - shift(ratings, None)) / ELO_PER_LOG
    graph = connectivity(Counts.of(outcome_cube(votes)).wins)
    text = (
        "Online Elo is a diagnostic: it depends on the order of the votes, has no interval, and "
        "is not the rating."
    )
    blank = np.full(len(strength), np.nan)
    return _Estimate(strength, blank, blank, graph, None, None, (Note("online_elo", text),))


def _bounds(
    strength: FloatArray, cov: Covariance, spec: RatingSpec
) -> tuple[FloatArray, FloatArray]:
    k = len(strength)
    error = np.sqrt(np.maximum(np.diag(cov.matrix)[:k], 0.0))
    half = error * quantile(cov.df, spec.confidence)
    return strength - half, strength + half


def _unbounded(
    low: FloatArray, high: FloatArray, graph: Connectivity
) -> tuple[FloatArray, FloatArray]:
    """No upper end for who never loses, no lower end for who never wins."""
    return np.where(graph.never_wins, np.nan, low), np.where(graph.never_loses, np.nan, high)


def _ranks(strength: FloatArray, cov: Covariance, graph: Connectivity, spec: RatingSpec) -> Ranks:
    k = len(strength)
    return rank_intervals(
        strength,
        cov.matrix[:k, :k],
        cov.df,
        component=graph.component,
        confidence=spec.confidence,
        seed=spec.seed,
    )


def _assemble(votes: VoteTable, spec: RatingSpec, estimate: _Estimate) -> RatingResult:
    """Names, the Elo scale, counts and order."""
    cube = outcome_cube(votes)
    order = _order(estimate.strength, votes.contestants)
    rows = _rows(votes, spec, estimate, cube)
    fractions, battles = _win_fractions(cube, spec.both_bad, order)
    cov, ranks = estimate.cov, estimate.ranks
    first = None if ranks is None else ranks.first
    return RatingResult(
        spec=spec,
        rows=tuple(rows[i] for i in order),
        win_fraction=fractions,
        battles=battles,
        votes=round(float(cube.sum())),
        raters=_distinct(votes.rater),
        contexts=_distinct(votes.context),
        first=None if first is None else votes.contestants[first],
        nu=estimate.nu,
        cluster=None if cov is None else cov.cluster,
        df=None if cov is None else _number(cov.df),
        critical=None if ranks is None else _number(ranks.critical),
        notes=(*estimate.notes, *_anchor(votes, spec, estimate)[1]),
    )


def _rows(
    votes: VoteTable, spec: RatingSpec, estimate: _Estimate, cube: FloatArray
) -> list[RatingRow]:
    k = len(votes.contestants)
    anchor, _ = _anchor(votes, spec, estimate)
    offset = spec.base - ELO_PER_LOG * shift(estimate.strength, anchor)
    tally = _tally(cube)
    cov, ranks, component = estimate.cov, estimate.ranks, estimate.graph.component
    error = np.full(k, np.nan) if cov is None else np.sqrt(np.maximum(_diagonal(cov, k), 0.0))
    if cov is not None and cov.df <= 0:
        error = np.full(k, np.nan)
    return [
        RatingRow(
            contestant=name,
            strength=_number(estimate.strength[i]),
            rating=_number(offset + ELO_PER_LOG * estimate.strength[i]),
            lo=_number(offset + ELO_PER_LOG * estimate.low[i]),
            hi=_number(offset + ELO_PER_LOG * estimate.high[i]),
            se=_number(ELO_PER_LOG * error[i]) if component[i] >= 0 else None,
            rank_lo=int(ranks.lo[i]) if ranks is not None and ranks.lo[i] else None,
            rank_hi=int(ranks.hi[i]) if ranks is not None and ranks.hi[i] else None,
            votes=int(tally[i].sum()),
            wins=int(tally[i, 0]),
            losses=int(tally[i, 1]),
            ties=int(tally[i, 2]),
            both_bad=int(tally[i, 3]),
            group=int(component[i]) if component[i] >= 0 else None,
        )
        for i, name in enumerate(votes.contestants)
    ]


def _tally(cube: FloatArray) -> FloatArray:
    """(K, 4) wins, losses, ties and both-bads from either side."""
    left, right = cube.sum(1), cube.sum(0)
    wins = left[:, Outcome.LEFT] + right[:, Outcome.RIGHT]
    losses = left[:, Outcome.RIGHT] + right[:, Outcome.LEFT]
    rest = (left + right)[:, [Outcome.TIE, Outcome.BOTH_BAD]]
    tally: FloatArray = np.rint(np.column_stack([wins, losses, rest]))
    return tally


def _win_fractions(
    cube: FloatArray, both_bad: BothBad, order: Sequence[int]
) -> tuple[tuple[tuple[float | None, ...], ...], tuple[tuple[int, ...], ...]]:
    wins = Counts.of(cube, both_bad).wins[np.ix_(order, order)]
    met = wins + wins.T
    share = np.divide(wins, met, out=np.full_like(wins, np.nan), where=met > 0)
    fractions = tuple(tuple(_number(x) for x in row) for row in share)
    return fractions, tuple(tuple(int(x) for x in row) for row in np.rint(met))


def _pooled(tables: Mapping[str, VoteTable], weights: Mapping[str, float]) -> VoteTable:
    """The verdicts of all axes that count, in one table."""
    used = [table for axis, table in tables.items() if weights[axis] > 0]
    first = used[0]
    raters = [t.rater for t in used if t.rater is not None]
    contexts = [t.context for t in used if t.context is not None]
    weighted = any(t.weight is not None for t in used)
    return VoteTable(
        contestants=first.contestants,
        left=np.concatenate([t.left for t in used]),
        right=np.concatenate([t.right for t in used]),
        outcome=np.concatenate([t.outcome for t in used]),
        rater=np.concatenate(raters) if len(raters) == len(used) else None,
        context=np.concatenate(contexts) if len(contexts) == len(used) else None,
        raters=first.raters,
        contexts=first.contexts,
        weight=np.concatenate([t.weights for t in used]) if weighted else None,
    )


def _anchor(
    votes: VoteTable, spec: RatingSpec, estimate: _Estimate
) -> tuple[int | None, tuple[Note, ...]]:
    """The index of the anchor; None for the mean, with a note where the anchor is unrated."""
    if spec.anchor is None:
        return None, ()
    if spec.anchor not in votes.contestants:
        raise ValueError(f"the anchor {spec.anchor!r} is not among the contestants")
    index = votes.contestants.index(spec.anchor)
    if np.isfinite(estimate.strength[index]):
        return index, ()
    text = f"The anchor {spec.anchor} has no rating here, so the mean took its place."
    return None, (Note("anchor_unrated", text, (spec.anchor,)),)


def _order(strength: FloatArray, names: Sequence[str]) -> list[int]:
    def key(i: int) -> tuple[bool, float, str]:
        missing = bool(np.isnan(strength[i]))
        return missing, 0.0 if missing else -round(float(strength[i]), 12), names[i]

    return sorted(range(len(names)), key=key)


def _diagonal(cov: Covariance, k: int) -> FloatArray:
    diagonal: FloatArray = np.diag(cov.matrix)[:k]
    return diagonal


def _distinct(codes: IntArray | None) -> int | None:
    return None if codes is None else len(np.unique(codes))


def _number(value: float) -> float | None:
    """A plain float, or None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None
