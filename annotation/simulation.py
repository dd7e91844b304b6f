"""Simulated annotators: how somebody with a given accuracy labels. Pure; the same for one seed.

An annotator gives the planted verdict with her accuracy, else one of the others; a side bias moves
some of her preferences to the left, which is what the reports should find.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LONG, SHORT = ("high",), ("low",)


@dataclass(frozen=True)
class SimulatedAnnotator:
    """`accuracy` from 0 to 1; `left_bias` is the share of labels that say A by habit."""

    name: str
    seed: int
    accuracy: float = 0.85
    left_bias: float = 0.0

    def verdict(self, axis: str, truth: str, item: str, verdicts: Sequence[str]) -> str:
        """Her canonical verdict on an item whose planted verdict is `truth`."""
        stream = self._stream(axis, item)
        if stream.random() < self.accuracy:
            return truth
        others = [verdict for verdict in verdicts if verdict != truth]
        return stream.choice(others) if others else truth

    def says_left(self, axis: str, item: str) -> bool:
        """Whether habit decides instead."""
        return self._stream("left", axis, item).random() < self.left_bias

    def active_ms(self, item: str) -> int:
        """A plausible reading time: median 25 s."""
        return int(1000 * self._stream("time", item).lognormvariate(math.log(25), 0.5))

    def _stream(self, *parts: object) -> random.Random:
        key = "\x1f".join(str(part) for part in (self.seed, self.name, *parts))
        return random.Random(key)  # noqa: S311 - not a secret


def planted_truth(
    axis: str, features: Mapping[str, str], first: str, second: str, item: str
) -> str:
    """A taste that can be found again: who wants detail prefers the longer answer, who does not the
    shorter one; in content one of the two is better, by a coin that depends on the item."""
    if axis == "personalization" and len(first) != len(second):
        longer = "first" if len(first) > len(second) else "second"
        shorter = "second" if longer == "first" else "first"
        if features.get("detail") in LONG:
            return longer
        if features.get("detail") in SHORT or features.get("expertise") == "expert":
            return shorter
    return random.Random(f"{axis}\x1f{item}").choice(["first", "second"])  # noqa: S311
