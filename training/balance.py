"""Whether pairs teach a person's taste, or only that one style is better (M7, D-24). Pure.

Pairs that prefer the shorter answer throughout teach "short is good": a reward model trained on
them scored 1.00 for the person who wants it short and 0.00 for the one who does not. So for every
style feature both directions must occur about as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

FEATURES = ("characters", "lists", "questions")  # of webapp.catalog.texts.style_features
LEAST = 20  # pairs that differ; below, a natural set proves nothing


@dataclass
class Direction:
    """How often the better answer has more of a feature, less, or as much."""

    feature: str
    more: int = 0
    less: int = 0
    equal: int = 0

    @property
    def differing(self) -> int:
        return self.more + self.less

    @property
    def percent_more(self) -> float | None:
        return round(100 * self.more / self.differing, 1) if self.differing else None


@dataclass(frozen=True)
class Limits:
    """The share of pairs, in percent of those that differ, in which the better one has more."""

    low: int
    high: int
    least: int
    features: tuple[str, ...] = FEATURES


# A counterfactual set is made to be balanced; what people prefer may lean, but not wholly.
COUNTERFACTUAL = Limits(45, 55, 1)
NATURAL = Limits(10, 90, LEAST, ("characters",))


class Balance:
    """Counts directions pair by pair."""

    def __init__(self) -> None:
        self.directions = {name: Direction(name) for name in FEATURES}

    def add(self, chosen: Mapping[str, float], rejected: Mapping[str, float]) -> None:
        for name, direction in self.directions.items():
            if chosen[name] > rejected[name]:
                direction.more += 1
            elif chosen[name] < rejected[name]:
                direction.less += 1
            else:
                direction.equal += 1

    def as_json(self) -> list[dict[str, Any]]:
        rows = self.directions.values()
        return [{**asdict(row), "percent_more": row.percent_more} for row in rows]

    def lopsided(self, limits: Limits) -> list[Direction]:
        """The features that lean beyond the limits."""
        return [row for row in self.directions.values() if leans(row, limits)]


def leans(row: Direction, limits: Limits) -> bool:
    if row.feature not in limits.features or row.differing < limits.least:
        return False
    share = 100 * row.more / row.differing
    return not limits.low <= share <= limits.high


def halves(pairs: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Of (pair, direction) rows: pairs with both directions, and rows whose other half lacks."""
    directions: dict[str, set[str]] = {}
    for pair, direction in pairs:
        directions.setdefault(pair, set()).add(direction)
    whole = sum(1 for found in directions.values() if len(found) > 1)
    return whole, len(directions) - whole
