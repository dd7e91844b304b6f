"""Intervals of centred strengths: the sandwich covariance, clustered one or two ways.

Two ways (Cameron, Gelbach & Miller 2011): V = V_rater + V_context − V_(rater, context), each
V = B M B with B the inverse information and M the sum of s s′ over clusters. Small numbers of
clusters are the normal case here, so a clustering with few clusters takes the leave-one-cluster-
out jackknife (CV3: Bell & McCaffrey 2002, MacKinnon, Nielsen & Webb 2023), and one with many the
factor G/(G − 1). Quantiles come from Student's t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import hstack
from scipy.special import stdtrit

from arena.ratings.clusters import (
    DENSE_CELLS,
    Cluster,
    Grouping,
    ScoreTable,
    context_grouping,
    group_totals,
    joint_meetings,
    meat,
    meeting_grouping,
    meeting_meat,
    rater_grouping,
    score_table,
)
from arena.ratings.counts import BothBad, collapse
from arena.ratings.fit import Fit
from arena.ratings.graph import Note
from arena.ratings.model import fix_gauge, information, moments
from arena.ratings.votes import FloatArray, VoteTable

JACKKNIFE_CLUSTERS = 60
RUNAWAY = 10.0  # leaving a cluster out may not move the fit this many times its linear share


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of a fit's parameters.

    `matrix` (P, P): of the parameter vector, strengths centred; `df`: degrees of freedom for
    Student's t (infinite: normal). `cluster`: what was really used, after `notes`.
    """

    matrix: FloatArray
    df: float
    cluster: Cluster
    notes: tuple[Note, ...] = ()


def bread(fit: Fit, votes: VoteTable, both_bad: BothBad) -> FloatArray:
    """(P, P) the inverse information on centred strengths."""
    counts = collapse(votes, both_bad).add(fit.virtual)
    info = information(counts.total, moments(fit.params, fit.shape), fit.shape)
    k = fit.shape.contestants
    inverse = _invert(fix_gauge(info, fit.graph.gauge))
    away = np.eye(fit.shape.size)
    away[:k, :k] -= fit.graph.gauge
    centred: FloatArray = away @ inverse @ away
    return centred


def _invert(info: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.inv(info))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(info, hermitian=True))


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis ready for its covariance: its votes, its fit, and what the fit counted."""

    votes: VoteTable
    fit: Fit
    both_bad: BothBad = BothBad.AS_TIE


def covariance(axis: Axis, cluster: Cluster = Cluster.BOTH) -> Covariance:
    """The sandwich covariance of one axis.

    Where the votes do not say who voted or on what, the clustering falls back to what is known;
    `cluster` and `notes` of the answer say so.
    """
    return stacked_covariance([axis], cluster)


def stacked_covariance(axes: Sequence[Axis], cluster: Cluster) -> Covariance:
    """Covariance of the parameters of several axes, one after the other (ΣP, ΣP).

    The axes must share their contestants and their rater and context codes
    (`arena.ratings.composite.align`); scores of one cluster are stacked over the axes, so the
    covariance between axes is that of the raters and contexts themselves.
    """
    used, notes = _available(axes, cluster)
    scores = [score_table(a.votes, a.fit, a.both_bad) for a in axes]
    breads = block_diag(*(bread(a.fit, a.votes, a.both_bad) for a in axes))
    by_vote = block_diag(*(meat(s, None) for s in scores))
    single = breads @ by_vote @ breads
    if used is Cluster.NONE:
        return Covariance(single, float("inf"), used, notes)
    ways = [_one_way(axes, scores, breads, c) for c in _ways(used)]
    few = _few(ways)
    notes = (*notes, *few)
    matrix = np.sum([way.matrix for way in ways], axis=0)
    if used is Cluster.BOTH:
        meeting = breads @ _meeting_meat(scores, by_vote) @ breads
        matrix, said = _two_way(matrix, meeting, single) if not few else (matrix, ())
        notes = (*notes, *said)
    return Covariance(matrix, min(way.df for way in ways), used, notes)


def half_widths(cov: Covariance, contestants: int, confidence: float) -> FloatArray:
    """(K,) half-widths of the intervals of centred strengths, in log strength."""
    return standard_errors(cov, contestants) * quantile(cov.df, confidence)


def standard_errors(cov: Covariance, contestants: int) -> FloatArray:
    """(K,) standard errors of the centred strengths."""
    errors: FloatArray = np.sqrt(np.maximum(np.diag(cov.matrix)[:contestants], 0.0))
    return errors


def quantile(df: float, confidence: float) -> float:
    """The two-sided Student t quantile; NaN without degrees of freedom."""
    if df <= 0:
        return float("nan")
    return float(stdtrit(df, 0.5 + 0.5 * confidence))


@dataclass(frozen=True, eq=False)
class _Way:
    matrix: FloatArray
    df: float
    cluster: Cluster


def _one_way(
    axes: Sequence[Axis], scores: Sequence[ScoreTable], breads: FloatArray, cluster: Cluster
) -> _Way:
    """Covariance by one clustering: jackknife with few clusters, G/(G − 1) with many."""
    groups = [_grouping(a.votes, cluster) for a in axes]
    count = _occupied(groups)
    if count < 2:
        return _Way(np.zeros_like(breads), 0.0, cluster)
    if count <= JACKKNIFE_CLUSTERS and (moved := _jackknife(axes, scores, groups)) is not None:
        return _Way((count - 1) / count * (moved.T @ moved), count - 1.0, cluster)
    factor = count / (count - 1)
    return _Way(factor * breads @ _meat(scores, groups) @ breads, count - 1.0, cluster)


def _jackknife(
    axes: Sequence[Axis], scores: Sequence[ScoreTable], groups: Sequence[Grouping]
) -> FloatArray | None:
    """(G, ΣP) how far one Newton step moves the fit when a cluster is left out.

    None where leaving a cluster out would leave something without information.
    """
    columns = []
    for axis, score, group in zip(axes, scores, groups, strict=True):
        fit = axis.fit
        if group.size * fit.shape.contestants**2 * 4 > DENSE_CELLS:
            return None
        without = collapse(axis.votes, axis.both_bad).add(fit.virtual).total - group_totals(
            axis.votes, group, axis.both_bad
        )
        mom = moments(fit.params, fit.shape)
        info = fix_gauge(information(without, mom, fit.shape), fit.graph.gauge)
        summed = score.summed(group)
        try:
            moved = np.linalg.solve(info, summed[..., None])[..., 0]
        except np.linalg.LinAlgError:
            return None
        plain = summed @ bread(fit, axis.votes, axis.both_bad)
        if not np.abs(moved).max() <= RUNAWAY * max(np.abs(plain).max(), 1e-12):
            return None
        columns.append(moved)
    return np.concatenate(columns, axis=1)


def _meat(scores: Sequence[ScoreTable], groups: Sequence[Grouping]) -> FloatArray:
    if len(scores) == 1:
        return meat(scores[0], groups[0])
    rows = hstack([s.sparse(g) for s, g in zip(scores, groups, strict=True)]).tocsr()
    product: FloatArray = np.asarray((rows.T @ rows).todense())
    return product


def _meeting_meat(scores: Sequence[ScoreTable], by_vote: FloatArray) -> FloatArray:
    if len(scores) == 1:
        group = meeting_grouping(scores[0].votes)
        return meeting_meat(scores[0], group, by_vote)
    return _meat(scores, joint_meetings([s.votes for s in scores]))


def _available(axes: Sequence[Axis], cluster: Cluster) -> tuple[Cluster, tuple[Note, ...]]:
    """The clustering that the columns allow, and what to say where it is not the wanted one."""
    raters = all(a.votes.rater is not None for a in axes)
    contexts = all(a.votes.context is not None for a in axes)
    wants = {
        Cluster.BOTH: (True, True),
        Cluster.RATER: (True, False),
        Cluster.CONTEXT: (False, True),
        Cluster.NONE: (False, False),
    }[cluster]
    has = (wants[0] and raters, wants[1] and contexts)
    used = {
        (True, True): Cluster.BOTH,
        (True, False): Cluster.RATER,
        (False, True): Cluster.CONTEXT,
        (False, False): Cluster.NONE,
    }[has]
    if used is cluster:
        return used, ()
    lacking = "raters" if wants[0] and not raters else "contexts"
    text = (
        f"The votes do not name their {lacking}, so intervals clustered by {cluster} are not "
        f"possible; they are clustered by {used} and may be too narrow."
    )
    return used, (Note("cluster_unknown", text),)


def _ways(cluster: Cluster) -> tuple[Cluster, ...]:
    return (Cluster.RATER, Cluster.CONTEXT) if cluster is Cluster.BOTH else (cluster,)


def _grouping(votes: VoteTable, cluster: Cluster) -> Grouping:
    group = rater_grouping(votes) if cluster is Cluster.RATER else context_grouping(votes)
    assert group is not None, "checked by _available"
    return group


def _occupied(groups: Sequence[Grouping]) -> int:
    """How many clusters have a vote on any axis."""
    seen = np.zeros(groups[0].size, dtype=np.bool_)
    for group in groups:
        seen[group.code] = True
    return int(seen.sum())


def _few(ways: Sequence[_Way]) -> tuple[Note, ...]:
    """What to say where a clustering has fewer than two clusters: nothing can be estimated."""
    return tuple(
        Note("one_cluster", f"All votes share one {way.cluster}, so there is no interval.")
        for way in ways
        if way.df <= 0
    )


def _two_way(
    both: FloatArray, meeting: FloatArray, single: FloatArray
) -> tuple[FloatArray, tuple[Note, ...]]:
    """V_rater + V_context − V_meeting, kept a covariance.

    Negative eigenvalues become 0 (Cameron, Gelbach & Miller 2011), which covers best in
    simulation. A standard error still below half of what independent votes would have is raised
    to that half, and a note says so.
    """
    values, vectors = np.linalg.eigh(both - meeting)
    matrix: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    variance, least = np.diag(matrix), 0.25 * np.diag(single)
    if (variance >= least).all():
        return matrix, ()
    stretch = np.sqrt(np.maximum(least / np.maximum(variance, 1e-300), 1.0))
    text = (
        "Too few votes for the two-way covariance of every contestant: where it fell below a "
        "quarter of what independent votes would have, it was raised to that quarter."
    )
    return stretch[:, None] * matrix * stretch[None, :], (Note("variance_raised", text),)
