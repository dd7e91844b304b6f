"""The Elo scale, the side effect, planning before a round and history after several."""

from __future__ import annotations

import math

import evalica
import numpy as np
import pytest

from arena.ratings import ELO_PER_LOG, VoteTable, online_elo, side_effect, to_elo
from arena.ratings.history import RoundStrengths, join_rounds
from arena.ratings.planning import Assumptions, expect, votes_needed
from tests.arena.ratings.worlds import draw, mirrored, planted, shuffled

WINNERS = [evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.Draw]


def test_four_hundred_points_are_ten_to_one() -> None:
    strength = np.array([math.log(10.0), 0.0])
    assert to_elo(strength, anchor=1) == pytest.approx([1400.0, 1000.0])
    assert to_elo(strength).mean() == pytest.approx(1000.0)


def test_an_anchor_without_votes_is_refused() -> None:
    with pytest.raises(ValueError, match="anchor"):
        to_elo(np.array([0.0, np.nan]), anchor=1)


def test_online_elo_agrees_with_evalica_and_depends_on_the_order() -> None:
    votes = draw(planted(5), 500)
    names = votes.contestants
    theirs = evalica.elo(
        [names[i] for i in votes.left],
        [names[i] for i in votes.right],
        [WINNERS[o] for o in votes.outcome],
    ).scores
    assert online_elo(votes) == pytest.approx([theirs[n] for n in names], abs=1e-9)
    assert np.abs(online_elo(votes) - online_elo(shuffled(votes))).max() > 1.0


# The side effect.


@pytest.mark.parametrize("ties", [False, True])
def test_a_planted_side_effect_comes_back(ties: bool) -> None:
    votes = draw(planted(6), 20_000, side=0.3, nu=0.6 if ties else 1e-9)
    effect = side_effect(votes, ties=ties)
    assert effect.log_odds == pytest.approx(0.3, abs=0.06)
    assert effect.lo is not None
    assert effect.hi is not None
    assert 0 < effect.lo < 0.3 < effect.hi
    assert effect.elo == pytest.approx((effect.log_odds or 0.0) * ELO_PER_LOG)
    assert effect.left_share is not None
    assert effect.left_share > 0.5


def test_the_mirror_turns_the_side_effect_round() -> None:
    votes = draw(planted(4), 2000, side=0.4)
    here, there = side_effect(votes), side_effect(mirrored(votes))
    assert here.log_odds is not None
    assert there.log_odds == pytest.approx(-here.log_odds, abs=1e-9)


def test_contestants_that_keep_their_sides_hide_it() -> None:
    rows = [("a", "b", w, f"r{i}", f"x{i}") for i, w in enumerate(["left", "right", "left"])]
    effect = side_effect(VoteTable.from_rows(rows))
    assert effect.log_odds is None
    assert [n.code for n in effect.notes] == ["side_unknown"]


def test_no_votes_no_side_effect() -> None:
    assert side_effect(VoteTable.from_rows([], contestants="ab")).left_share is None


def test_a_side_that_always_wins_has_no_finite_effect() -> None:
    rows = [("a", "b", "left", "r1", "x1"), ("b", "a", "left", "r2", "x2")] * 3
    effect = side_effect(VoteTable.from_rows(rows))
    assert effect.log_odds is None
    assert effect.left_share == 1.0


# Planning.


@pytest.mark.parametrize(("votes", "elo"), [(600, 96), (1500, 60), (6000, 30), (20_000, 16)])
def test_planning_agrees_with_fitted_rounds(votes: int, elo: float) -> None:
    assert expect(24, votes).half_width == pytest.approx(elo, rel=0.05)


def test_ties_narrow_and_tastes_widen() -> None:
    plain = expect(24, 6000)
    assert expect(24, 6000, assuming=Assumptions(tie_rate=0.3)).half_width < plain.half_width
    crowd = [expect(24, 6000, raters=r, contexts=300).half_width for r in (10, 30, 100)]
    assert crowd[0] > crowd[1] > crowd[2] > plain.half_width
    assert expect(24, 6000, raters=10).design_effect > 1.3
    assert expect(24, 6000, raters=10).df == 9


@pytest.mark.parametrize("raters", [None, 30])
def test_votes_needed_is_the_inverse(raters: int | None) -> None:
    votes = votes_needed(24, 35.0, raters=raters)
    assert votes is not None
    assert expect(24, votes, raters=raters).half_width <= 35.0
    assert expect(24, votes - 1, raters=raters).half_width > 35.0


def test_no_number_of_votes_replaces_raters() -> None:
    assert votes_needed(24, 5.0, raters=5) is None


@pytest.mark.parametrize(("contestants", "votes"), [(1, 9), (3, 0)])
def test_plans_that_make_no_sense_are_refused(contestants: int, votes: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        expect(contestants, votes)


# History.


def test_rounds_are_joined_through_shared_contestants() -> None:
    first = RoundStrengths("spring", {"a": 0.5, "b": -0.5})
    second = RoundStrengths("autumn", {"a": 0.1, "b": -0.9, "c": 0.8})
    joined = join_rounds([first, second])
    spring, autumn = joined.rounds
    assert spring.shift == 0.0
    assert autumn.shift == pytest.approx(0.4)
    assert autumn.strengths["c"] == pytest.approx(1.2)
    assert joined.notes == ()


def test_precise_contestants_carry_the_join() -> None:
    first = RoundStrengths("one", {"a": 0.0, "b": 0.0}, {"a": 0.1, "b": 10.0})
    second = RoundStrengths("two", {"a": 1.0, "b": 3.0}, {"a": 0.1, "b": 10.0})
    assert join_rounds([first, second]).rounds[1].shift == pytest.approx(-1.0, abs=0.01)


def test_a_chain_joins_rounds_that_share_nobody_directly() -> None:
    rounds = [
        RoundStrengths("one", {"a": 0.0, "b": 1.0}),
        RoundStrengths("two", {"b": 0.0, "c": 1.0}),
        RoundStrengths("three", {"c": 0.0, "d": 1.0}),
    ]
    joined = join_rounds(rounds)
    assert [r.shift for r in joined.rounds] == pytest.approx([0.0, 1.0, 2.0])
    assert [n.code for n in joined.notes] == ["single_link"]


def test_strangers_stay_apart_and_it_is_said() -> None:
    joined = join_rounds([RoundStrengths("one", {"a": 0.0}), RoundStrengths("two", {"b": 0.0})])
    assert [r.chain for r in joined.rounds] == [0, 1]
    assert [n.code for n in joined.notes] == ["rounds_not_joined"]


def test_no_rounds() -> None:
    assert join_rounds([]).rounds == ()
