"""What an annotator alone is told: only where there is enough to say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from annotation.pace import (
    LONG_RUN_S,
    PAUSE_S,
    consistency,
    leans,
    left_preference,
    needs_rest,
    pace,
    run_began,
    share,
)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_middle_of_the_posterior(counts: tuple[int, int]) -> None:
    k, n = counts
    found = share(k, n, 1)
    assert found is not None
    held = beta.cdf(found.hi, 1 + k, 1 + n - k) - beta.cdf(found.lo, 1 + k, 1 + n - k)
    # With none or all of them the interval reaches the end, and holds one tail more.
    assert held == pytest.approx(0.975 if k in (0, n) else 0.95, abs=1e-6)
    assert found.lo <= k / n <= found.hi
    assert 0 <= found.bounds[0] <= found.percent + 1
    assert found.percent - 1 <= found.bounds[1] <= 100


def test_too_few_judgements_say_nothing() -> None:
    assert consistency([True] * 9) is None
    assert left_preference(["left"] * 29 + ["tie"] * 50) is None
    assert pace([1000] * 29) is None
    assert run_began([], 100.0) is None


def test_a_lean_is_named_only_beyond_chance() -> None:
    assert leans(left_preference(["left"] * 30 + ["right"] * 10)) == "left"
    assert leans(left_preference(["left"] * 5 + ["right"] * 35)) == "right"
    assert leans(left_preference(["left"] * 18 + ["right"] * 14)) == ""


def test_pace_compares_the_last_ten_with_those_before() -> None:
    found = pace([60_000] * 10 + [20_000] * 20)
    assert found is not None
    assert (found.recent_s, found.usual_s, found.change) == (60.0, 20.0, "slower")
    faster = pace([9_000] * 10 + [20_000] * 40)
    assert faster is not None
    assert faster.change == "faster"
    same = pace([21_000] * 10 + [20_000] * 40)
    assert same is not None
    assert same.change == ""


def test_a_long_pause_begins_the_run_anew() -> None:
    now = 1_000_000.0
    times = [now - 60, now - 600, now - 600 - PAUSE_S - 1, now - 9000]
    assert run_began(times, now) == now - 600
    assert run_began([now - PAUSE_S - 1], now) is None


def test_a_break_needs_a_long_run_and_another_pace() -> None:
    changed, same = pace([60_000] * 10 + [20_000] * 20), pace([20_000] * 40)
    now = 1_000_000.0
    assert needs_rest(now - LONG_RUN_S, now, changed)
    assert not needs_rest(now - LONG_RUN_S, now, same)
    assert not needs_rest(now - 600, now, changed)
    assert not needs_rest(None, now, changed)
    assert not needs_rest(now - LONG_RUN_S, now, None)
