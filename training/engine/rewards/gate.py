"""The reward-model gate: what must be measured before a model may be used as a reward. No torch.

Takes scores, gives numbers and verdicts. A blind spot that training and held-out pairs share does
not show in accuracy; so every kind of defect is probed on its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from training.engine import numbers
from training.engine.config.schema import Gate
from training.engine.numbers import Value


@dataclass(frozen=True)
class Calibration:
    """From a logit to [0, 1]: σ((logit − center) / temperature)."""

    temperature: float = 1.0
    center: float = 0.0

    def value(self, logit: float) -> float:
        return sigmoid((logit - self.center) / self.temperature)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def fit(chosen: Sequence[float], rejected: Sequence[float]) -> Calibration:
    """The temperature that makes σ(difference / T) the likeliest account of held-out verdicts.

    Golden-section search over log T in [0.02, 50]; the likelihood has one maximum.
    """
    differences = [c - r for c, r in zip(chosen, rejected, strict=True)]

    def loss(log_t: float) -> float:
        t = math.exp(log_t)
        return math.fsum(softplus(-d / t) for d in differences)

    low, high, ratio = math.log(0.02), math.log(50.0), (math.sqrt(5) - 1) / 2
    for _ in range(60):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    center = numbers.median([*chosen, *rejected]) or 0.0
    return Calibration(math.exp((low + high) / 2), center)


def softplus(x: float) -> float:
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def accuracy(chosen: Sequence[float], rejected: Sequence[float]) -> Value:
    """Share of pairs in the right order; equal scores count half."""
    return numbers.mean(
        1.0 if c > r else 0.5 if c == r else 0.0 for c, r in zip(chosen, rejected, strict=True)
    )


def calibration_error(probabilities: Sequence[float], bins: int = 10) -> Value:
    """Expected calibration error of P(chosen is better), each pair told in both orders."""
    told = [(p, 1.0) for p in probabilities] + [(1 - p, 0.0) for p in probabilities]
    buckets: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for p, outcome in told:
        buckets[min(bins - 1, int(p * bins))].append((p, outcome))
    if not told:
        return None
    gaps = (abs(sum(p for p, _ in found) - sum(o for _, o in found)) for found in buckets.values())
    return sum(gaps) / len(told)


@dataclass(frozen=True)
class Check:
    name: str
    value: Value
    limit: float
    at_least: bool
    said: str

    @property
    def passed(self) -> bool:
        """What could not be measured has not passed."""
        if self.value is None:
            return False
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True)
class Report:
    checks: tuple[Check, ...]
    probes: Mapping[str, Value] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def as_dict(self) -> dict[str, object]:
        checks = [{**asdict(check), "passed": check.passed} for check in self.checks]
        return {"passed": self.passed, "checks": checks, "probes": dict(self.probes)}


@dataclass(frozen=True)
class Measured:
    """Scores of the gate's rows by one reward model (values in [0, 1])."""

    chosen: Sequence[float]
    rejected: Sequence[float]
    probabilities: Sequence[float]  # of the chosen answer being better
    lengths: Sequence[float]  # of all scored answers, with `values` beside
    values: Sequence[float]
    jitter: float  # largest change of a value when its batch changes
    probes: Sequence[tuple[str, float, float]] = ()  # defect, good, bad
    swapped: Sequence[bool] | None = None  # both orders right; None: the branch knows no persona


def judge(measured: Measured, limits: Gate) -> Report:
    """All checks; none is left out because another failed."""
    m = measured
    jitter = m.jitter if math.isfinite(m.jitter) else None
    together = numbers.correlation(list(m.lengths), list(m.values))
    checks = [
        Check("accuracy", accuracy(m.chosen, m.rejected), limits.accuracy, True,
              "share of held-out pairs in the right order"),
        Check("calibration", calibration_error(m.probabilities), limits.calibration_error, False,
              "how far its certainty is from how often it is right"),
        Check("length", abs(together or 0.0), limits.length_correlation, False,
              "how much the value follows the length of the answer"),
        Check("jitter", jitter, limits.jitter, False,
              "how much a value changes with the company in its batch"),
    ]  # fmt: skip
    if m.swapped is not None:
        share = numbers.mean(map(float, m.swapped))
        said = "same answers, opposite personas: share with the opposite order"
        checks.append(Check("swap", share, limits.swap, True, said))
    probes = by_defect(m.probes)
    checks += [
        Check(f"probe: {name}", value, limits.probe, True, "share of broken answers it sees")
        for name, value in probes.items()
    ]
    return Report(tuple(checks), probes)


def separation(right: Sequence[float], wrong: Sequence[float]) -> tuple[Value, Value]:
    """How surely values tell right from wrong (AUC), and the worst right minus the best wrong."""
    if not right or not wrong:
        return None, None
    pairs = len(right) * len(wrong)
    wins = math.fsum((r > w) + 0.5 * (r == w) for r in right for w in wrong)
    return wins / pairs, min(right) - max(wrong)


def by_defect(probes: Iterable[tuple[str, float, float]]) -> dict[str, Value]:
    found: dict[str, list[float]] = defaultdict(list)
    for defect, better, worse in probes:
        found[defect].append(1.0 if better > worse else 0.0)
    return {defect: numbers.mean(hits) for defect, hits in found.items()}
