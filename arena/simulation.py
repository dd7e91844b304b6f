"""Simulated raters: how somebody with given tastes votes. Pure; the same for the same seed.

The verdict on an axis follows Davidson's model on planted strengths (natural log scale), blurred
by the rater's own taste, with a share of "both bad" that grows the worse both answers are:

    left : tie : right = exp(d/2) : nu : exp(-d/2),   d = left - right + side bias

(Davidson 1970, "On extending the Bradley-Terry model to accommodate ties".)
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr

Strengths = Mapping[str, Mapping[str, float]]  # axis → contestant → natural log strength


@dataclass(frozen=True)
class Temperament:
    """How simulated raters vote. `side_bias` is added in favour of the left, on the log scale."""

    taste_sd: float = 0.35  # spread of a rater's own taste per contestant
    tie: float = 0.5  # Davidson's nu
    both_bad: float = 0.03  # share among answers of average strength
    side_bias: float = 0.0


@dataclass(frozen=True)
class SimulatedRater:
    """One rater; `seed` and `name` fix his taste and each of his verdicts."""

    name: str
    seed: int
    temperament: Temperament

    def taste(self, axis: str, contestant: str) -> float:
        """What this rater sees in the contestant beyond its planted strength."""
        stream = _stream(self.seed, self.name, axis, contestant)
        return stream.gauss(0.0, self.temperament.taste_sd)

    def verdicts(self, strengths: Strengths, left: str, right: str, battle: str) -> dict[str, str]:
        """One verdict per axis, as the rater sees the sides."""
        return {
            axis: self._verdict(axis, values[left], values[right], (left, right), battle)
            for axis, values in strengths.items()
        }

    def _verdict(
        self, axis: str, left: float, right: float, names: tuple[str, str], battle: str
    ) -> str:
        stream = _stream(self.seed, self.name, axis, battle)
        mood = self.temperament
        if stream.random() < min(mood.both_bad * math.exp(-(left + right) / 2), 0.5):
            return "both_bad"
        left += self.taste(axis, names[0])
        right += self.taste(axis, names[1])
        odds = (left - right + mood.side_bias) / 2
        weights = [math.exp(odds), mood.tie, math.exp(-odds)]
        return stream.choices(["left", "tie", "right"], weights)[0]

    def active_ms(self, battle: str) -> int:
        """A plausible reading time: median 20 s, seldom below 5 s."""
        stream = _stream(self.seed, self.name, "time", battle)
        return int(1000 * stream.lognormvariate(math.log(20), 0.6))


def _stream(*parts: object) -> random.Random:
    return random.Random("\x1f".join(str(part) for part in parts))  # noqa: S311 - not a secret


def planted_strengths(
    contestants: Sequence[str], axes: Sequence[str], seed: int, spread: float = 3.0
) -> dict[str, dict[str, float]]:
    """Evenly spaced strengths, centred at 0 and `spread` wide, dealt out anew on each axis."""
    n = len(contestants)
    steps = [spread * (k / max(n - 1, 1) - 0.5) for k in range(n)]
    planted = {}
    for axis in axes:
        order = sorted(contestants)
        _stream(seed, "planted", axis).shuffle(order)
        planted[axis] = dict(zip(order, steps, strict=True))
    return planted


def rank_correlation(planted: Mapping[str, float], found: Mapping[str, float]) -> float:
    """Spearman's rank correlation over the contestants that have a rating; nan below two."""
    names = [name for name in sorted(planted) if name in found]
    if len(names) < 2:
        return math.nan
    return float(spearmanr([planted[name] for name in names], [found[name] for name in names])[0])
