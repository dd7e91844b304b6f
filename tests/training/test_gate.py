"""The reward-model gate: what it measures, and that nothing unmeasured passes."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from training.engine import numbers
from training.engine.config.schema import Gate
from training.engine.rewards.gate import (
    Calibration,
    Measured,
    accuracy,
    calibration_error,
    fit,
    judge,
    separation,
    sigmoid,
)

RNG = random.Random(4)
GOOD = Measured(
    chosen=[0.9] * 98 + [0.1] * 2,
    rejected=[0.1] * 98 + [0.9] * 2,
    probabilities=[0.97] * 98 + [0.03] * 2,
    lengths=[float(i % 7) for i in range(200)],
    values=[0.1 + 0.8 * (i % 2) for i in range(200)],
    jitter=1e-6,
    probes=[("vague", 0.9, 0.1)] * 10 + [("wrong object", 0.8, 0.2)] * 10,
    swapped=[True] * 20,
)


def failed(measured: Measured) -> list[str]:
    return [check.name for check in judge(measured, Gate()).checks if not check.passed]


def test_a_sound_model_passes() -> None:
    report = judge(GOOD, Gate())
    assert report.passed
    assert report.probes == {"vague": 1.0, "wrong object": 1.0}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("accuracy", {"chosen": [0.9] * 80 + [0.1] * 20, "rejected": [0.1] * 80 + [0.9] * 20}),
        ("calibration", {"probabilities": [0.6] * 100}),
        ("length", {"values": [float(i % 7) for i in range(200)]}),
        ("jitter", {"jitter": 1e-3}),
        ("jitter", {"jitter": math.nan}),
        ("swap", {"swapped": [True] * 15 + [False] * 5}),
        ("swap", {"swapped": []}),
        ("probe: wrong object", {"probes": [("wrong object", 0.5, 0.5)] * 10}),
    ],
)
def test_each_weakness_fails_alone(name: str, changes: dict[str, object]) -> None:
    assert failed(dataclasses.replace(GOOD, **changes)) == [name]  # type: ignore[arg-type]


def test_quality_needs_no_swap() -> None:
    names = [c.name for c in judge(dataclasses.replace(GOOD, swapped=None), Gate()).checks]
    assert "swap" not in names


def test_equal_scores_are_half_right() -> None:
    assert accuracy([1.0, 0.5], [0.0, 0.5]) == 0.75
    assert accuracy([], []) is None


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_the_fitted_temperature_finds_the_planted_one(scale: float) -> None:
    """Verdicts drawn with σ(difference); the model's logits are `scale` times too large."""
    rng = random.Random(7)
    chosen, rejected = [], []
    for _ in range(4000):
        d = rng.gauss(0, 2)
        if rng.random() > sigmoid(d):
            d = -d
        chosen.append(scale * d)
        rejected.append(0.0)
    assert fit(chosen, rejected).temperature == pytest.approx(scale, rel=0.1)


def test_calibrated_certainty_has_no_error_and_boasting_has() -> None:
    rng = random.Random(3)
    said = [rng.random() for _ in range(5000)]
    told = [p if rng.random() < p else 1 - p for p in said]
    error, boasting = calibration_error(told), calibration_error([0.99] * 700 + [0.01] * 300)
    assert error is not None
    assert boasting is not None
    assert error < 0.03
    assert boasting == pytest.approx(0.29, abs=0.01)


def test_rules_are_proved_on_answers_of_known_worth() -> None:
    right, wrong = [0.9, 0.8, 1.0], [0.1, 0.2, 0.15]
    auc, margin = separation(right, wrong)
    assert auc == 1.0
    assert margin == pytest.approx(0.6)
    mixed = [RNG.random() for _ in range(600)]
    shuffled, _ = separation(mixed[:300], mixed[300:])
    assert shuffled == pytest.approx(0.5, abs=0.06)
    assert separation([], wrong) == (None, None)


def test_values_lie_between_0_and_1_whatever_the_logit() -> None:
    found = [Calibration(0.02, 1.0).value(x) for x in (-1e6, -3.0, 1.0, 3.0, 1e6)]
    assert found == sorted(found)
    assert found[0] == 0.0
    assert found[2] == 0.5
    assert found[-1] == 1.0


def test_the_mean_of_three_cuts_noise_and_not_a_shared_bias() -> None:
    """Noise shrinks with √k; what all members believe wrongly stays."""
    truth = [RNG.random() for _ in range(3000)]
    bias = 0.2
    members = [[t + bias + RNG.gauss(0, 0.3) for t in truth] for _ in range(3)]
    one = [m - t for m, t in zip(members[0], truth, strict=True)]
    mean = [sum(v) / 3 - t for *v, t in zip(*members, truth, strict=True)]
    assert numbers.std(mean) == pytest.approx((numbers.std(one) or 0) / math.sqrt(3), rel=0.1)
    assert numbers.mean(mean) == pytest.approx(bias, abs=0.02)
