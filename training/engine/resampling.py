"""Intervals by resampling, without numpy: what drawn another set of prompts might have shown.

The unit that is drawn is the prompt: the same question under several personas is not independent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from training.engine import numbers
from training.engine.numbers import Value

DRAWS = 2000
LEVEL = 0.95  # two-sided
Row = tuple[str, Value, Value]  # prompt, before, after
Statistic = Callable[[float, float], Value]  # of the two means


@dataclass(frozen=True)
class Estimate:
    """`value` of the two means with its interval; None where nothing can be told."""

    before: Value
    after: Value
    value: Value
    low: Value
    high: Value
    n: int  # rows of which both sides are known
    prompts: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def ratio(before: float, after: float) -> Value:
    """None where nothing was there of which a share could stay."""
    return after / before if before > 1e-9 else None


def difference(before: float, after: float) -> Value:
    return after - before


def estimate(
    rows: Iterable[Row], statistic: Statistic, *, seed: int = 1, draws: int = DRAWS
) -> Estimate:
    """Percentile bootstrap over prompts (Efron 1979). Rows that lack a side are left out."""
    known = [(p, b, a) for p, b, a in rows if b is not None and a is not None]
    groups: dict[str, list[tuple[float, float]]] = {}
    for prompt, before, after in known:
        groups.setdefault(prompt, []).append((before, after))
    if not groups:
        return Estimate(None, None, None, None, None, 0, 0)
    sums = [(sum(b for b, _ in g), sum(a for _, a in g), len(g)) for g in groups.values()]
    before, after = _means(sums)
    value = statistic(before, after)
    low = high = None
    if value is not None and len(sums) > 1:
        chance = random.Random(seed)  # noqa: S311
        drawn = (statistic(*_means(chance.choices(sums, k=len(sums)))) for _ in range(draws))
        low, high = _ends(numbers.known(drawn))
    return Estimate(before, after, value, low, high, len(known), len(sums))


def _means(sums: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    n = sum(count for _, _, count in sums)
    return sum(b for b, _, _ in sums) / n, sum(a for _, a, _ in sums) / n


def _ends(values: list[float]) -> tuple[Value, Value]:
    if not values:
        return None, None
    values.sort()
    tail = (1 - LEVEL) / 2
    last = len(values) - 1
    return values[round(tail * last)], values[round((1 - tail) * last)]
