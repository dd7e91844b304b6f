"""The one entry point: what it promises of any votes at all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.ratings import (
    BothBad,
    Cluster,
    Interval,
    Method,
    RatingResult,
    RatingSpec,
    VoteTable,
    rate,
    rate_composite,
    rate_strata,
)
from tests.arena.ratings.worlds import draw, mirrored, planted, shuffled

NAMES = "abcdef"
Row = tuple[str, str, str, str, str]

rows = st.lists(
    st.tuples(
        st.permutations(NAMES).map(lambda p: tuple(p[:2])),
        st.sampled_from(["left", "right", "tie", "both_bad"]),
        st.sampled_from(["alice", "bob", "charlie"]),
        st.sampled_from(["x", "y", "z"]),
    ).map(lambda r: (*r[0], *r[1:])),
    max_size=40,
)
specs = st.builds(
    RatingSpec,
    method=st.sampled_from(Method),
    ci=st.sampled_from(Interval),
    cluster=st.sampled_from(Cluster),
    both_bad=st.sampled_from(BothBad),
    replicates=st.just(20),
)


@given(rows, specs)
@settings(max_examples=60, deadline=None)
def test_any_votes_give_a_result_that_json_holds(given_rows: list[Row], spec: RatingSpec) -> None:
    result = rate(VoteTable.from_rows(given_rows, contestants=NAMES), spec)
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert len(result.rows) == len(NAMES)
    for row in result.rows:
        assert (row.strength is None) == (row.group is None)
        assert row.votes > 0 or row.rating is None
        if row.lo is not None and row.hi is not None and spec.ci is Interval.SANDWICH:
            assert row.rating is not None
            assert row.lo <= row.rating <= row.hi
        if row.rank_lo is not None and row.rank_hi is not None:
            assert 1 <= row.rank_lo <= row.rank_hi <= len(NAMES)
    unrated = [row for row in result.rows if row.rating is None]
    assert not unrated or result.notes
    assert "NaN" not in text


@given(rows, st.sampled_from([Method.BRADLEY_TERRY, Method.DAVIDSON]), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_the_order_of_votes_changes_no_bit(
    given_rows: list[Row], method: Method, seed: int
) -> None:
    votes = VoteTable.from_rows(given_rows, contestants=NAMES)
    spec = RatingSpec(method=method)
    assert rate(shuffled(votes, seed), spec) == rate(votes, spec)


@given(rows)
@settings(max_examples=30, deadline=None)
def test_the_mirror_changes_no_rating(given_rows: list[Row]) -> None:
    votes = VoteTable.from_rows(given_rows, contestants=NAMES)
    spec = RatingSpec(method=Method.DAVIDSON, ci=Interval.NONE, side=False)
    here, there = rate(votes, spec), rate(mirrored(votes), spec)
    for row in here.rows:
        other = there.row(row.contestant).strength
        assert row.strength == (other if other is None else pytest.approx(other, abs=1e-7))


@given(rows)
@settings(max_examples=30, deadline=None)
def test_strengths_are_centred_within_each_group(given_rows: list[Row]) -> None:
    result = rate(VoteTable.from_rows(given_rows, contestants=NAMES), RatingSpec(ci=Interval.NONE))
    sums: dict[int, float] = {}
    for row in result.rows:
        if row.group is not None and row.strength is not None:
            sums[row.group] = sums.get(row.group, 0.0) + row.strength
    assert all(abs(total) < 1e-7 for total in sums.values())


@pytest.mark.parametrize("ci", list(Interval))
def test_recomputing_gives_the_same_numbers(ci: Interval) -> None:
    votes = draw(planted(6), 800, both_bad=0.2)
    spec = RatingSpec(ci=ci, replicates=50)
    assert rate(votes, spec) == rate(shuffled(votes), spec)


def test_a_planted_order_comes_back_with_sharp_ends() -> None:
    result = rate(draw(planted(5, 1.0), 12_000), RatingSpec(method=Method.DAVIDSON))
    assert [row.contestant for row in result.rows] == ["c00", "c01", "c02", "c03", "c04"]
    assert result.first == "c00"
    assert result.rows[0].rank == "1"
    assert result.nu == pytest.approx(0.6, abs=0.05)
    assert (result.raters, result.contexts, result.votes) == (20, 50, 12_000)
    assert result.notes == ()


def test_counts_rates_and_the_win_matrix_add_up() -> None:
    votes = draw(planted(5), 900, both_bad=0.4)
    result = rate(votes)
    assert sum(row.votes for row in result.rows) == 2 * len(votes)
    for row in result.rows:
        assert row.votes == row.wins + row.losses + row.ties + row.both_bad
        assert row.tie_rate == row.ties / row.votes
        assert row.both_bad_rate == row.both_bad / row.votes
    share, battles = result.win_fraction, result.battles
    for i in range(5):
        assert share[i][i] is None
        points = sum((share[i][j] or 0.0) * battles[i][j] for j in range(5))
        row = result.rows[i]
        assert points == pytest.approx(row.wins + 0.5 * (row.ties + row.both_bad))


def test_the_anchor_shifts_ratings_and_leaves_the_intervals() -> None:
    votes = draw(planted(5), 2000)
    free = rate(votes)
    tied = rate(votes, RatingSpec(anchor="c03", base=1200.0))
    assert tied.row("c03").rating == pytest.approx(1200.0)
    shift = 1200.0 - (free.row("c03").rating or 0.0)
    for row in free.rows:
        other = tied.row(row.contestant)
        assert (row.strength, row.se, row.rank) == (other.strength, other.se, other.rank)
        for a, b in ((row.rating, other.rating), (row.lo, other.lo), (row.hi, other.hi)):
            assert a is not None
            assert b == pytest.approx(a + shift)
    assert tied.row("c03").se != 0.0


def test_an_unknown_anchor_is_refused() -> None:
    with pytest.raises(ValueError, match="nobody"):
        rate(draw(planted(3), 50), RatingSpec(anchor="nobody"))


def test_an_anchor_without_votes_gives_way_to_the_mean_and_says_so() -> None:
    votes = VoteTable.from_rows([], contestants="ab")
    result = rate(votes, RatingSpec(anchor="a"))
    assert [note.code for note in result.notes] == ["no_votes_at_all", "anchor_unrated"]


def test_who_never_loses_has_no_upper_end() -> None:
    cast = ["alice", "bob", "charlie"]
    votes = VoteTable.from_rows(
        [("a", "bc"[i % 2], "left", cast[i % 3], f"x{i % 4}") for i in range(12)]
        + [("b", "c", ["left", "right"][i % 2], cast[i % 3], f"x{i % 4}") for i in range(12)]
    )
    result = rate(votes)
    row = result.row("a")
    assert row.hi is None
    assert row.lo is not None
    assert {"never_loses", "regularised"} <= {note.code for note in result.notes}


def test_a_confidence_of_nine_tenths_is_narrower() -> None:
    votes = draw(planted(4), 900)
    wide, narrow = rate(votes), rate(votes, RatingSpec(confidence=0.9))
    for row in wide.rows:
        other = narrow.row(row.contestant)
        assert row.lo is not None
        assert other.lo is not None
        assert row.lo < other.lo


def test_strata_are_ratings_of_their_own_votes() -> None:
    votes = draw(planted(4), 1000)
    strata = ["cook" if i % 3 else "pilot" for i in range(1000)]
    by = rate_strata(votes, strata)
    assert list(by) == ["cook", "pilot"]
    assert by["cook"].votes + by["pilot"].votes == 1000
    cooks = np.array([s == "cook" for s in strata])
    assert by["cook"] == rate(votes.subset(cooks))


def test_the_composite_pools_counts_and_lies_between_its_axes() -> None:
    tables = {"quality": draw(planted(4), 900), "personalization": draw(-planted(4), 900, seed=2)}
    whole = rate_composite(tables, {"quality": 0.5, "personalization": 0.5})
    assert whole.weights == {"quality": 0.5, "personalization": 0.5}
    assert whole.votes == 1800
    for row in whole.rows:
        parts = [rate(t).row(row.contestant).strength or 0.0 for t in tables.values()]
        assert row.strength == pytest.approx(sum(parts) / 2, abs=1e-9)
    json.dumps(whole.to_dict(), allow_nan=False)


def test_the_composite_does_not_depend_on_the_order_of_votes() -> None:
    tables = {"q": draw(planted(4), 400), "p": draw(planted(4), 400, seed=2)}
    weights = {"q": 0.7, "p": 0.3}
    mixed = {axis: shuffled(table) for axis, table in tables.items()}
    assert rate_composite(mixed, weights) == rate_composite(tables, weights)


def test_online_elo_is_labelled_a_diagnostic() -> None:
    result = rate(draw(planted(3), 100), RatingSpec(method=Method.ELO))
    assert [note.code for note in result.notes] == ["online_elo"]
    assert all(row.lo is None and row.rank_lo is None for row in result.rows)


def test_a_spec_survives_its_own_json() -> None:
    spec = RatingSpec(method=Method.DAVIDSON, cluster=Cluster.RATER, anchor="c01", seed=5)
    assert RatingSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    with pytest.raises(ValueError, match="colour"):
        RatingSpec.from_dict({"colour": "red"})


def test_equal_results_are_equal() -> None:
    assert isinstance(rate(draw(planted(3), 50)), RatingResult)
