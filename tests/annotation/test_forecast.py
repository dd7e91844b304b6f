"""What is left, when it ends, and what a majority of so many labels is worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.forecast import Unknown, Workload, finish, majority_right, what_if

LOAD = Workload(by_done={"0": 10, "1": 4, "2": 1}, needed=25, settled=20, labels=50, base=2, most=3)


def test_what_is_left_holds_what_disagreement_will_ask_for() -> None:
    assert LOAD.raised == 0.5
    assert LOAD.open_items == 15
    assert LOAD.expected == 25 + 7  # half a label more for each of the 14 that lack base labels


def test_labels_of_an_import_beyond_the_maximum_do_not_raise_the_forecast() -> None:
    load = Workload(by_done={"0": 10}, needed=20, settled=5, labels=50, base=2, most=3)
    assert load.raised == 1
    assert Workload({"0": 1}, 1, 0, 0, 1, 3).raised == 0


def test_the_end_is_where_the_pace_leads() -> None:
    found = finish(100, [10, 10, 10, 10], is_open=True)
    assert (found.days, found.lo, found.hi, found.pace) == (10, 10, 10, 10)
    uneven = finish(100, [0, 20, 5, 15, 0, 20, 10], is_open=True)
    assert uneven.days is not None
    assert uneven.lo is not None
    assert uneven.hi is not None
    assert uneven.lo < uneven.days == 10 < uneven.hi


def test_only_the_last_two_weeks_tell_the_pace() -> None:
    assert finish(100, [1000] * 30 + [10] * 14, is_open=True).days == 10


@pytest.mark.parametrize(
    ("left", "days", "is_open", "why"),
    [
        (0, [5, 5, 5], True, Unknown.NOTHING_LEFT),
        (10, [5, 5, 5], False, Unknown.NOT_OPEN),
        (10, [5, 5], True, Unknown.FEW_DAYS),
        (10, [0] * 14, True, Unknown.NO_WORK),
    ],
)
def test_where_no_date_can_be_told_the_reason_is(
    left: int, days: list[int], is_open: bool, why: Unknown
) -> None:
    assert finish(left, days, is_open=is_open).unknown is why


def test_one_day_of_work_in_two_weeks_leaves_the_end_open() -> None:
    found = finish(100, [0] * 13 + [7], is_open=True)
    assert found.days == 200
    assert found.hi is None


@given(st.integers(1, 5), st.floats(0, 1), st.integers(2, 4))
def test_a_majority_is_right_as_often_as_counting_says(
    labels: int, accuracy: float, choices: int
) -> None:
    right, wrong = majority_right(labels, accuracy, choices)
    assert -1e-9 <= right <= right + wrong <= 1 + 1e-9
    if labels == 1:
        assert right == pytest.approx(accuracy)


def test_a_majority_is_right_as_often_as_in_a_simulation() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.choice(4, size=(200_000, 4), p=[0.7, 0.1, 0.1, 0.1])
    counts = np.stack([(drawn == k).sum(axis=1) for k in range(4)], axis=1)
    clear = counts.max(axis=1) > 2
    top = counts.argmax(axis=1)
    right, wrong = majority_right(4, 0.7, 4)
    assert right == pytest.approx((clear & (top == 0)).mean(), abs=0.004)
    assert wrong == pytest.approx((clear & (top != 0)).mean(), abs=0.004)


def test_what_if_counts_the_labels_that_are_missing() -> None:
    rows = what_if(LOAD, 0.8, 4)
    assert [row.labels for row in rows] == [10, 24, 39, 54, 69]
    three = rows[2]
    assert three.right == pytest.approx(0.8**3 + 3 * 0.8**2 * 0.2)
    assert three.right is not None
    assert three.none is not None
    assert three.wrong is not None
    assert three.right + three.wrong + three.none == pytest.approx(1)
    assert what_if(LOAD, None, 4)[0].right is None
