"""The curves that rules look at: values by step, unknown ones left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from training.engine import numbers

# Names in metrics.jsonl. Monitors watch REFERENCE, whose weights never move, not the scheduled sum.
REWARD = "reward"
REFERENCE = "reward/reference"
QUALITY = "parts/quality"
PERSONALIZATION = "parts/personalization"
REDUNDANCY = "parts/redundancy"
AUDITOR_QUALITY = "auditor/quality"
AUDITOR_PERSONALIZATION = "auditor/personalization"
GAPS = {  # what rewards, and what was held out
    "quality": (QUALITY, AUDITOR_QUALITY),
    "personalization": (PERSONALIZATION, AUDITOR_PERSONALIZATION),
}
AUDIT_RULES = "audit/rules"  # the verifier, where it gives no reward
SPREAD_QUALITY = "spread/quality"
SPREAD_PERSONALIZATION = "spread/personalization"
PARTS_CORRELATION = "parts/correlation"
LENGTH = "length/mean"
PROMPT_LENGTH = "length/prompt"
CLIPPED = "length/clipped"
PROBES = "probe/all"  # share of probes in which the policy would rather give the good answer
PROBE_MARGIN = "probe/margin"  # by how much the good answer is likelier, in nats per token
PROBE_SWAP = "probe/swap"  # … in which two people would get the answers that suit them
SENSITIVITY = "persona/sensitivity"  # bits between what two people are told
PERSONA_TURNS = "persona/turns"  # that a persona summary lives within a dialogue
KL = "kl"
ENTROPY = "entropy"
ZERO_SPREAD = "zero_spread"
GRAD_NORM = "grad_norm"
STEP_TIME = "step_time"
TOKENS_PER_SECOND = "tokens_per_second"
UNSCORED = "unscored"
DISTINCT = "distinct"
SUCCESS = "success"
INVALID = "invalid_actions"
TOOL_RATE = "tools/rate"
EPISODE_STEPS = "tools/steps"


@dataclass(frozen=True)
class Series:
    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.values)

    def last(self, n: int) -> Series:
        return Series(self.name, self.steps[-n:], self.values[-n:])

    def first(self, n: int) -> Series:
        return Series(self.name, self.steps[:n], self.values[:n])

    def upto(self, step: int) -> Series:
        n = sum(s <= step for s in self.steps)
        return self.first(n)

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values) if self.values else 0.0

    def rise(self) -> tuple[float, float]:
        """Fitted change over the series, and its t value."""
        return numbers.slope(self.steps, self.values)

    def relative_rise(self) -> float:
        """Fitted change against the level at the start; 0 where there is no level."""
        change, _ = self.rise()
        start = self.mean - change / 2
        return change / abs(start) if abs(start) > 1e-9 else 0.0

    def noise(self) -> float:
        """Standard deviation from one logged step to the next, without the trend."""
        if len(self) < 3:
            return 0.0
        jumps = [(b - a) ** 2 for a, b in pairwise(self.values)]
        return math.sqrt(sum(jumps) / len(jumps) / 2)

    def smooth(self, n: int = 5) -> Series:
        """Running means over n logged steps; shorter by n − 1."""
        if len(self) < n:
            return Series(self.name, (), ())
        means = tuple(sum(self.values[i : i + n]) / n for i in range(len(self) - n + 1))
        return Series(self.name, self.steps[n - 1 :], means)


@dataclass(frozen=True)
class History:
    """Metrics by step, as `RunDir.history` reads them."""

    rows: Mapping[int, Mapping[str, float | None]]

    def series(self, name: str) -> Series:
        found = [(s, v) for s, row in sorted(self.rows.items()) if (v := row.get(name)) is not None]
        pairs = [(s, v) for s, v in found if numbers.known([v])]
        return Series(name, tuple(s for s, _ in pairs), tuple(v for _, v in pairs))

    def gap(self, name: str, other: str) -> Series:
        """How much one curve lies above another, where both are known."""
        left, right = self.series(name), self.series(other)
        below = dict(zip(right.steps, right.values, strict=True))
        pairs = [(s, v - below[s]) for s, v in zip(left.steps, left.values, strict=True)
                 if s in below]  # fmt: skip
        return Series(f"{name} − {other}", tuple(s for s, _ in pairs), tuple(v for _, v in pairs))

    @property
    def step(self) -> int:
        return max(self.rows, default=0)

    def until(self, step: int) -> History:
        return History({s: row for s, row in self.rows.items() if s <= step})


def history_of(**curves: Sequence[float | None]) -> History:
    """For tests and sketches: one value a step, names with __ for a slash."""
    longest = max(map(len, curves.values()))
    return History(
        {
            step: {n.replace("__", "/"): c[step] for n, c in curves.items() if step < len(c)}
            for step in range(longest)
        }
    )
