"""Intervals: brute force, coverage, clusters, and the bootstrap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from arena.ratings import (
    Axis,
    BothBad,
    Cluster,
    Counts,
    Fit,
    VoteTable,
    bootstrap,
    collapse,
    covariance,
    fit_bradley_terry,
    fit_davidson,
    fit_with_side,
    half_widths,
)
from arena.ratings.clusters import (
    meat,
    meeting_grouping,
    meeting_meat,
    rater_grouping,
    score_table,
)
from arena.ratings.interval import JACKKNIFE_CLUSTERS, bread, standard_errors
from arena.ratings.votes import FloatArray, IntArray
from bench.coverage import World, measure
from tests.arena.ratings.worlds import as_rows, draw, planted


def brute_scores(votes: VoteTable, fit: Fit) -> FloatArray:
    """(N, K) the score of every Bradley–Terry vote, one by one."""
    rows = np.zeros((len(votes), len(votes.contestants)))
    points = [1.0, 0.0, 0.5, 0.5]
    for n, (a, b, o) in enumerate(zip(votes.left, votes.right, votes.outcome, strict=True)):
        residual = points[o] - 1.0 / (1.0 + np.exp(fit.strength[b] - fit.strength[a]))
        rows[n, a], rows[n, b] = residual, -residual
    return rows


def brute_meat(rows: FloatArray, code: IntArray) -> FloatArray:
    sums = [rows[code == c].sum(0) for c in np.unique(code)]
    return np.asarray(sum(np.outer(s, s) for s in sums))


@pytest.mark.parametrize(("raters", "contexts"), [(5, 4), (20, 50), (40, 2000)])
def test_the_three_meats_are_the_sums_they_claim_to_be(raters: int, contexts: int) -> None:
    votes = draw(planted(5), 700, raters=raters, contexts=contexts, both_bad=0.3)
    fit = fit_bradley_terry(collapse(votes))
    rows, scores = brute_scores(votes, fit), score_table(votes, fit, BothBad.AS_TIE)
    assert votes.rater is not None
    assert votes.context is not None
    single = meat(scores, None)
    assert np.allclose(single, rows.T @ rows)
    assert np.allclose(meat(scores, rater_grouping(votes)), brute_meat(rows, votes.rater))
    cell = votes.rater * contexts + votes.context
    meeting = meeting_meat(scores, meeting_grouping(votes), single)
    assert np.allclose(meeting, brute_meat(rows, cell))


def test_sparse_and_dense_sums_agree() -> None:
    votes = draw(planted(5), 500)
    fit = fit_with_side(collapse(votes), ties=True)
    scores, group = score_table(votes, fit, BothBad.AS_TIE), rater_grouping(votes)
    assert group is not None
    assert np.allclose(scores.sparse(group).toarray(), scores.summed(group))


@pytest.mark.parametrize("fit", [fit_bradley_terry, fit_davidson])
def test_scores_add_up_to_nothing_at_the_maximum(fit: object) -> None:
    votes = draw(planted(5), 900)
    scores = score_table(votes, fit(collapse(votes)), BothBad.AS_TIE)  # type: ignore[operator]
    group = rater_grouping(votes)
    assert group is not None
    assert np.abs(scores.summed(group).sum(0)).max() < 1e-7


def test_the_jackknife_is_what_refitting_without_each_rater_gives() -> None:
    votes = draw(planted(5), 3000, raters=8, rater_sd=0.3)
    assert votes.rater is not None
    whole = fit_bradley_terry(collapse(votes))
    moves = [
        fit_bradley_terry(collapse(votes.subset(votes.rater != r))).strength - whole.strength
        for r in range(8)
    ]
    refitted = 7 / 8 * sum(np.outer(m, m) for m in moves)
    one_step = covariance(Axis(votes, whole), Cluster.RATER).matrix
    assert np.abs(one_step - refitted).max() < 0.05 * np.abs(refitted).max()


def test_many_clusters_take_the_plain_factor() -> None:
    raters = JACKKNIFE_CLUSTERS + 40
    votes = draw(planted(4), 4000, raters=raters)
    fit = fit_bradley_terry(collapse(votes))
    cov = covariance(Axis(votes, fit), Cluster.RATER)
    wins = collapse(votes).wins
    share = 1.0 / (1.0 + np.exp(fit.strength[None, :] - fit.strength[:, None]))
    weight = (wins + wins.T) * share * (1.0 - share)
    inverse = np.linalg.pinv(np.diag(weight.sum(1)) - weight)
    middle = brute_meat(brute_scores(votes, fit), np.asarray(votes.rater))
    assert np.allclose(cov.matrix, raters / (raters - 1) * inverse @ middle @ inverse, rtol=1e-6)
    assert cov.df == raters - 1


def test_two_ways_add_up_less_what_they_share() -> None:
    many = JACKKNIFE_CLUSTERS + 20
    votes = draw(planted(4), 8000, raters=many, contexts=many, rater_sd=0.8, context_sd=0.8)
    axis = Axis(votes, fit_bradley_terry(collapse(votes)))
    both, rater, context = (
        covariance(axis, c).matrix for c in (Cluster.BOTH, Cluster.RATER, Cluster.CONTEXT)
    )
    assert votes.rater is not None
    assert votes.context is not None
    rows = brute_scores(votes, axis.fit)
    inverse = bread(axis.fit, votes, BothBad.AS_TIE)
    shared = inverse @ brute_meat(rows, votes.rater * many + votes.context) @ inverse
    assert np.abs(shared).max() > 0.02 * np.abs(both).max()
    assert np.allclose(both, rater + context - shared, atol=1e-3 * np.abs(shared).max())


def test_intervals_are_those_of_centred_strengths() -> None:
    votes = draw(planted(6), 2000)
    for cluster in Cluster:
        matrix = covariance(Axis(votes, fit_davidson(collapse(votes))), cluster).matrix[:6, :6]
        assert np.abs(matrix.sum(0)).max() < 1e-10
        assert np.linalg.eigvalsh(matrix).min() > -1e-12


def test_the_smaller_number_of_clusters_sets_the_degrees_of_freedom() -> None:
    votes = draw(planted(4), 900, raters=12, contexts=30)
    cov = covariance(Axis(votes, fit_bradley_terry(collapse(votes))))
    assert (cov.df, cov.cluster, cov.notes) == (11, Cluster.BOTH, ())


def test_shared_tastes_widen_clustered_intervals_only() -> None:
    votes = draw(planted(6), 6000, raters=12, contexts=20, rater_sd=0.5, context_sd=0.5)
    axis = Axis(votes, fit_bradley_terry(collapse(votes)))
    width = {c: half_widths(covariance(axis, c), 6, 0.95).mean() for c in Cluster}
    assert width[Cluster.BOTH] > width[Cluster.RATER] > 1.5 * width[Cluster.NONE]
    assert width[Cluster.BOTH] > width[Cluster.CONTEXT] > 1.5 * width[Cluster.NONE]


def test_votes_without_raters_fall_back_and_say_so() -> None:
    votes = draw(planted(4), 500)
    bare = VoteTable(votes.contestants, votes.left, votes.right, votes.outcome)
    cov = covariance(Axis(bare, fit_bradley_terry(collapse(bare))), Cluster.BOTH)
    assert cov.cluster is Cluster.NONE
    assert [n.code for n in cov.notes] == ["cluster_unknown"]


def test_one_rater_gives_no_interval_and_says_so() -> None:
    votes = draw(planted(4), 500, raters=1)
    cov = covariance(Axis(votes, fit_bradley_terry(collapse(votes))), Cluster.RATER)
    assert np.isnan(half_widths(cov, 4, 0.95)).all()
    assert [n.code for n in cov.notes] == ["one_cluster"]


def test_a_rater_who_alone_knows_a_contestant_does_not_break_the_jackknife() -> None:
    extra = [
        (a, b, o, "rater-00", "context-001")
        for a, b, o in [("c00", "solo", 0), ("solo", "c01", 0), ("c02", "solo", 2)]
    ]
    base = as_rows(draw(planted(4), 400, raters=6))
    joined = VoteTable.from_rows([*base, *extra])
    cov = covariance(Axis(joined, fit_bradley_terry(collapse(joined))), Cluster.BOTH)
    errors = standard_errors(cov, 5)
    assert np.isfinite(errors).all()
    assert errors[-1] == errors.max()


def test_two_way_intervals_cover_where_one_way_intervals_do_not() -> None:
    world = World(raters=15, contestants=8, votes=1500, contexts=15, rater_sd=80, context_sd=110)
    both, rater, none = measure(world, 120, 5, [Cluster.BOTH, Cluster.RATER, Cluster.NONE])
    assert 0.92 <= both.mean <= 0.985
    assert none.mean < rater.mean < both.mean
    assert none.mean < 0.80


# The bootstrap.


def test_the_bootstrap_agrees_with_the_sandwich_over_raters() -> None:
    votes = draw(planted(6), 8000, raters=50, rater_sd=0.3)
    fit = fit_davidson(collapse(votes))
    replicates = bootstrap(votes, fit, cluster=Cluster.RATER, replicates=800, seed=3)
    errors = standard_errors(covariance(Axis(votes, fit), Cluster.RATER), 6)
    assert np.allclose(replicates.params[:, :6].std(0), errors, rtol=0.12)


@pytest.mark.parametrize("model", [fit_bradley_terry, fit_davidson])
def test_a_replicate_is_the_fit_of_its_raters(model: Callable[[Counts], Fit]) -> None:
    votes = draw(planted(4), 1200, raters=3)
    fit = model(collapse(votes))
    replicates = bootstrap(votes, fit, replicates=30, seed=1).params
    assert votes.rater is not None
    possible = []
    for picks in np.ndindex(3, 3, 3):
        where = np.concatenate([np.flatnonzero(votes.rater == r) for r in picks])
        possible.append(model(collapse(votes.subset(where))).params)
    distance = np.abs(replicates[:, None] - np.array(possible)[None]).max(-1).min(-1)
    assert distance.max() < 1e-5


def test_the_bootstrap_depends_on_its_seed_alone() -> None:
    votes = draw(planted(4), 600)
    fit = fit_bradley_terry(collapse(votes))
    one, two, other = (bootstrap(votes, fit, replicates=20, seed=s).params for s in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_replicates_without_a_finite_fit_are_counted() -> None:
    rows = [("a", "b", "left", f"r{i}", "x") for i in range(4)] + [("a", "b", "right", "r9", "x")]
    votes = VoteTable.from_rows(rows)
    replicates = bootstrap(votes, fit_bradley_terry(collapse(votes)), replicates=200, seed=0)
    assert [n.code for n in replicates.notes] == ["bootstrap_regularised"]
    assert np.isfinite(replicates.params).all()
    assert np.abs(replicates.params).max() < 5
