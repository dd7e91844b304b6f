"""The column container and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from arena.ratings import Outcome, VoteTable
from arena.ratings.frames import votes_from_frame
from arena.ratings.votes import sorted_order
from tests.arena.ratings.worlds import as_rows, draw, planted

ROWS = [
    ("zoe", "amy", "left", "bob", "x"),
    ("amy", "zoe", "tie", "alice", "y"),
    ("mia", "zoe", "both_bad", "bob", "y"),
]


def test_labels_are_sorted_and_rows_keep_their_order() -> None:
    votes = VoteTable.from_rows(ROWS)
    assert votes.contestants == ("amy", "mia", "zoe")
    assert votes.raters == ("alice", "bob")
    assert [votes.contestants[i] for i in votes.left] == ["zoe", "amy", "mia"]
    assert list(votes.outcome) == [Outcome.LEFT, Outcome.TIE, Outcome.BOTH_BAD]


@pytest.mark.parametrize("shared", [True, False])
def test_a_frame_reads_like_the_rows(shared: bool) -> None:
    votes = draw(planted(5), 400, both_bad=0.3)
    words = [o.name.lower() for o in Outcome]
    rows = [(a, b, words[o], r, x) for a, b, o, r, x in as_rows(votes)]
    if not shared:  # every string an object of its own
        rows = [tuple("".join(list(text)) for text in row) for row in rows]  # type: ignore[misc]
    frame = pd.DataFrame(rows, columns=["left", "right", "outcome", "who", "what"], dtype=object)
    read = votes_from_frame(frame, rater="who", context="what")
    assert as_rows(read) == as_rows(votes)


def test_an_empty_frame_is_an_empty_table() -> None:
    frame = pd.DataFrame({"left": [], "right": [], "outcome": []}, dtype=object)
    assert len(votes_from_frame(frame)) == 0


def test_a_missing_name_in_a_frame_is_refused() -> None:
    frame = pd.DataFrame({"left": ["a", None], "right": ["b", "b"], "outcome": ["left", "tie"]})
    with pytest.raises(ValueError, match="left"):
        votes_from_frame(frame)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("a", "a", "left", "r", "x")], "meets itself"),
        ([("a", "b", "draw", "r", "x")], "expected left, right, tie or both_bad"),
        ([("a", "q", "left", "r", "x")], "unknown contestants: 'q'"),
    ],
)
def test_what_is_refused(rows: list[tuple[str, str, str, str, str]], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        VoteTable.from_rows(rows, contestants="ab")


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="left 1, right 2"):
        VoteTable.from_columns(["a"], ["b", "c"], ["tie"])


def test_codes_outside_the_labels_are_refused() -> None:
    zero, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="outcome"):
        VoteTable(("a", "b"), zero, one, one * 9)


def test_canonical_order_does_not_depend_on_the_given_one() -> None:
    votes = draw(planted(4), 200)
    mixed = votes.subset(np.random.default_rng(0).permutation(200))
    assert as_rows(mixed) != as_rows(votes)
    assert as_rows(mixed.canonical()) == as_rows(votes.canonical())


@pytest.mark.parametrize("high", [1, 9, 2**16, 2**33, 2**62])
def test_the_order_sorts_and_is_stable(high: int) -> None:
    keys = np.random.default_rng(1).integers(0, high, 3000)
    assert np.array_equal(sorted_order(keys), np.argsort(keys, kind="stable"))
    assert len(sorted_order(keys[:0])) == 0
