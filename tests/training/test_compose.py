"""The reward: α over time, the sum, what is unknown, and what each branch really weighs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.contracts import Parts, Rollout, score_all
from training.engine.rewards import schedule
from training.engine.rewards.compose import (
    Scored,
    Weights,
    advantages,
    branch_rewards,
    capped,
    compose,
    effective_weights,
)

unit = st.floats(0, 1)


@pytest.mark.parametrize(
    ("progress", "alpha"), [(0, 0.7), (0.25, 0.6), (0.5, 0.5), (0.75, 0.45), (1, 0.4), (2, 0.4)]
)
def test_alpha_moves_from_quality_to_personalization(progress: float, alpha: float) -> None:
    assert schedule.at(progress) == pytest.approx(alpha)


def test_alpha_never_rises() -> None:
    values = [schedule.at(i / 1000) for i in range(1001)]
    assert all(a >= b for a, b in itertools.pairwise(values))


def test_the_sum_is_exact() -> None:
    part = Scored(0.8, 0.5, 0.25)
    assert compose(part, Weights(0.7, 0.2)) == pytest.approx(0.7 * 0.8 + 0.3 * 0.5 - 0.2 * 0.25)


def test_each_branch_alone_can_turn_the_order() -> None:
    w = Weights(0.5, 0.0)
    assert compose(Scored(0.6, 0.5), w) > compose(Scored(0.5, 0.5), w)  # type: ignore[operator]
    assert compose(Scored(0.5, 0.6), w) > compose(Scored(0.5, 0.5), w)  # type: ignore[operator]


@given(unit, unit, st.floats(0, 1))
def test_what_is_unknown_never_counts_as_zero(q: float, p: float, alpha: float) -> None:
    w = Weights(alpha, 0.2, 0.3)
    assert compose(Scored(None, p), w) is None
    assert compose(Scored(q, None), w) is None
    columns = branch_rewards([Scored(q, p), Scored(None, p)], 0.3)
    assert [column[1] for column in columns.values()] == [None, None, None]


def test_an_unknown_reward_moves_neither_itself_nor_its_group() -> None:
    assert advantages([1.0, 0.0, None, None], 4)[2:] == [0.0, 0.0]
    alone, beside = advantages([1.0, 0.0], 2), advantages([1.0, 0.0, None, None], 4)
    assert beside[:2] == pytest.approx(alone)


@given(unit)
def test_pleasing_never_pays_for_being_wrong(p: float) -> None:
    w = Weights(0.7, 0.2, 0.3)
    wrong, dry = compose(Scored(0.29, p), w), compose(Scored(0.9, 0.0), w)
    assert wrong is not None
    assert dry is not None
    assert wrong < dry
    assert capped(Scored(0.1, 0.9), 0.3) == 0.1
    assert capped(Scored(0.3, 0.9), 0.3) == 0.9


def test_a_branch_without_spread_within_groups_weighs_nothing() -> None:
    parts = [Scored(0.5, p) for p in (0.1, 0.9, 0.1, 0.9)]
    shares = effective_weights(parts, Weights(0.7, 0.2), 4)
    assert shares["quality"] == 0
    assert shares["personalization"] == pytest.approx(1)


def test_effective_weights_follow_spread_not_level() -> None:
    parts = [Scored(0.5 + d, 0.9 + d / 2) for d in (-0.1, 0.1, -0.1, 0.1)]
    shares = effective_weights(parts, Weights(0.5, 0.0), 2)
    assert shares["quality"] == pytest.approx(2 / 3)
    groups_apart = [Scored(q, 0.5 + d) for q, d in ((0.1, 0), (0.1, 0.2), (0.9, 0), (0.9, 0.2))]
    assert effective_weights(groups_apart, Weights(0.5, 0.0), 2)["quality"] == 0


def test_scorers_of_every_kind_compose() -> None:
    class Fixed:
        def __init__(self, name: str, value: float | None) -> None:
            self.name, self.version, self.value = name, "1", value

        def score(self, rollout: Rollout) -> Parts | None:
            return None if self.value is None else Parts({self.name: self.value})

    rollouts = [Rollout(({"role": "user", "content": "?"},), "x")] * 3
    rule, model, env = Fixed("rule", 1.0), Fixed("model", 0.5), Fixed("env", None)
    found = [score_all(scorer, rollouts) for scorer in (rule, model, env)]
    assert [len(column) for column in found] == [3, 3, 3]
    assert found[2] == [None, None, None]
    merged = Parts({"rule": 1.0, "model": 0.5, "env": None})
    assert merged.total({"rule": 1, "model": 1, "env": 5}) == 0.75
    assert merged.total({"env": 1}) is None
