"""Rank intervals and their simultaneous correction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import studentized_range, t

from arena.ratings import rank_intervals
from arena.ratings.votes import FloatArray

TOGETHER = np.zeros(4, dtype=np.int64)


def centred(k: int, variance: float = 1.0) -> FloatArray:
    return variance * (np.eye(k) - 1.0 / k)


def test_far_apart_contestants_have_sharp_ranks() -> None:
    theta = np.array([3.0, 1.0, -1.0, -3.0])
    ranks = rank_intervals(theta, centred(4, 1e-4), np.inf, component=TOGETHER)
    assert list(ranks.lo) == list(ranks.hi) == [1, 2, 3, 4]
    assert ranks.first == 0


def test_a_close_pair_shares_its_ranks_and_nobody_is_first() -> None:
    theta = np.array([1.0, 0.99, 0.0, -2.0])
    ranks = rank_intervals(theta, centred(4, 1e-3), np.inf, component=TOGETHER)
    assert list(zip(ranks.lo, ranks.hi, strict=True)) == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert ranks.first is None


def test_the_critical_value_is_tukeys_for_equal_variances() -> None:
    theta = np.zeros(6)
    for df in (12.0, np.inf):
        got = rank_intervals(theta, centred(6), df, component=np.zeros(6, dtype=np.int64))
        exact = studentized_range.ppf(0.95, 6, 1e5 if np.isinf(df) else df) / np.sqrt(2)
        assert got.critical == pytest.approx(exact, rel=0.02)


def test_two_contestants_need_no_correction() -> None:
    got = rank_intervals(np.zeros(2), centred(2), 9, component=np.zeros(2, dtype=np.int64))
    assert got.critical == pytest.approx(t.ppf(0.975, 9), rel=0.03)


def test_groups_without_a_common_vote_are_never_separated() -> None:
    theta = np.array([5.0, -5.0, 0.0, np.nan])
    component = np.array([0, 0, 1, -1])
    ranks = rank_intervals(theta, centred(4, 1e-4), np.inf, component=component)
    assert list(zip(ranks.lo, ranks.hi, strict=True)) == [(1, 2), (2, 3), (1, 3), (0, 0)]
    assert ranks.first is None


def test_no_degrees_of_freedom_no_claims() -> None:
    ranks = rank_intervals(np.array([9.0, 0, 0, -9]), centred(4), 0.0, component=TOGETHER)
    assert set(ranks.lo) == {1}
    assert set(ranks.hi) == {4}
    assert np.isnan(ranks.critical)


def test_equal_strengths_are_wrongly_separated_at_most_as_often_as_promised() -> None:
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(300):
        noise = rng.standard_normal(5)
        ranks = rank_intervals(
            noise - noise.mean(), centred(5), np.inf, component=np.zeros(5, dtype=np.int64)
        )
        wrong += bool(ranks.above.any())
    assert wrong / 300 < 0.09
