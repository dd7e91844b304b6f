"""The composite of axes, and its covariance against a bootstrap that knows nothing of it."""

from __future__ import annotations

import numpy as np
import pytest

from arena.ratings import (
    Axis,
    Cluster,
    Composite,
    VoteTable,
    align,
    collapse,
    compose,
    fit_bradley_terry,
)
from arena.ratings.interval import standard_errors
from arena.ratings.votes import FloatArray
from tests.arena.ratings.worlds import draw, planted


def two_axes(votes: int = 4000, raters: int = 40) -> dict[str, VoteTable]:
    """The same raters, battles and verdicts on both axes for most votes: strongly dependent."""
    quality = draw(planted(5), votes, raters=raters, rater_sd=0.4)
    rng = np.random.default_rng(3)
    outcome = np.where(rng.random(votes) < 0.7, quality.outcome, rng.integers(0, 3, votes))
    personal = VoteTable(
        quality.contestants,
        quality.left,
        quality.right,
        outcome,
        quality.rater,
        quality.context,
        quality.raters,
        quality.contexts,
    )
    return {"quality": quality, "personalization": personal}


def fitted(tables: dict[str, VoteTable]) -> dict[str, Axis]:
    return {a: Axis(t, fit_bradley_terry(collapse(t), t.contestants)) for a, t in tables.items()}


def overall(weights: dict[str, float], cluster: Cluster = Cluster.RATER) -> Composite:
    return compose(fitted(two_axes()), weights, cluster)


def test_the_strength_is_the_weighted_sum() -> None:
    axes = fitted(two_axes())
    got = compose(axes, {"quality": 3.0, "personalization": 1.0})
    quality, personal = (axes[a].fit.strength for a in ("quality", "personalization"))
    assert np.allclose(got.strength, 0.75 * quality + 0.25 * personal)
    assert got.weights == {"quality": 0.75, "personalization": 0.25}


def test_the_covariance_agrees_with_resampling_raters_over_both_axes_at_once() -> None:
    tables = two_axes()
    got = compose(fitted(tables), {"quality": 0.5, "personalization": 0.5}, Cluster.RATER)
    rng = np.random.default_rng(8)
    draws = []
    for _ in range(250):
        picks = rng.integers(0, 40, 40)
        strengths: list[FloatArray] = []
        for table in tables.values():
            where = np.concatenate([np.flatnonzero(table.rater == r) for r in picks])
            strengths.append(fit_bradley_terry(collapse(table.subset(where))).strength)
        draws.append(np.mean(strengths, axis=0))
    assert np.allclose(standard_errors(got.covariance, 5), np.std(draws, axis=0), rtol=0.2)


def test_dependent_axes_are_not_treated_as_independent() -> None:
    tables = two_axes()
    got = compose(fitted(tables), {"quality": 0.5, "personalization": 0.5}, Cluster.BOTH)
    one = [
        compose(fitted(tables), {"quality": q, "personalization": 1 - q}, Cluster.BOTH)
        for q in (1.0, 0.0)
    ]
    apart = 0.25 * sum(np.diag(c.covariance.matrix) for c in one)
    assert (np.diag(got.covariance.matrix) > 1.25 * apart).all()


def test_an_axis_of_weight_nothing_counts_for_nothing() -> None:
    tables = two_axes()
    got = compose(fitted(tables), {"quality": 1.0, "personalization": 0.0})
    alone = compose(fitted({"quality": tables["quality"]}), {"quality": 1.0})
    assert np.array_equal(got.strength, alone.strength)
    assert np.array_equal(got.covariance.matrix, alone.covariance.matrix)


def test_the_same_axis_twice_is_that_axis() -> None:
    table = two_axes()["quality"]
    twice = compose(fitted({"a": table, "b": table}), {"a": 0.5, "b": 0.5})
    once = compose(fitted({"a": table}), {"a": 1.0})
    assert np.allclose(twice.covariance.matrix, once.covariance.matrix, atol=1e-12)


def test_align_gives_shared_codes() -> None:
    one = VoteTable.from_rows([("b", "c", "left", "zoe", "x")])
    two = VoteTable.from_rows([("a", "b", "tie", "amy", "w")])
    first, second = align({"one": one, "two": two}).values()
    assert first.contestants == second.contestants == ("a", "b", "c")
    assert first.raters == second.raters == ("amy", "zoe")
    assert [first.contestants[i] for i in (first.left[0], first.right[0])] == ["b", "c"]
    assert first.rater is not None
    assert first.raters[first.rater[0]] == "zoe"


def test_a_contestant_missing_on_one_axis_has_no_composite() -> None:
    one = VoteTable.from_rows([("a", "b", "tie", "r", "x"), ("b", "c", "tie", "s", "y")])
    two = VoteTable.from_rows([("a", "b", "tie", "r", "x"), ("a", "b", "left", "s", "y")])
    got = compose(fitted(align({"one": one, "two": two})), {"one": 1.0, "two": 1.0})
    assert np.isnan(got.strength[2])
    assert "no_votes" in [n.code for n in got.notes]


@pytest.mark.parametrize(
    "weights",
    [
        {"quality": 1.0},
        {"quality": 0.0, "personalization": 0.0},
        {"quality": -1, "personalization": 2},
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        overall(weights)


def test_unaligned_tables_are_refused() -> None:
    one = VoteTable.from_rows([("a", "b", "tie", "r", "x")])
    two = VoteTable.from_rows([("a", "c", "tie", "r", "x")])
    with pytest.raises(ValueError, match="align"):
        compose(fitted({"one": one, "two": two}), {"one": 1.0, "two": 1.0})
