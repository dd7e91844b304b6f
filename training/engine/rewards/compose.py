"""R = α·Q + (1−α)·P − w·L, with every part kept, and what each branch really weighs.

Q quality, P personalization, L redundancy, each in [0, 1]. An answer of which Q or P is unknown has
no reward: None. Under the floor rule a wrong answer (Q below the floor) earns no more from P than
from Q, so that pleasing never pays for being wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.engine import numbers
from training.engine.numbers import Value


@dataclass(frozen=True)
class Weights:
    alpha: float
    redundancy: float
    floor: float = 0.0


@dataclass(frozen=True)
class Scored:
    """The parts of one answer, as measured."""

    quality: Value
    personalization: Value
    redundancy: float = 0.0


def capped(part: Scored, floor: float) -> Value:
    """Personalization as far as quality lets it count."""
    q, p = part.quality, part.personalization
    if q is None or p is None:
        return None
    return min(p, q) if q < floor else p


def compose(part: Scored, weights: Weights) -> Value:
    """The reward of one answer, or None."""
    p = capped(part, weights.floor)
    if part.quality is None or p is None:
        return None
    a = weights.alpha
    return a * part.quality + (1 - a) * p - weights.redundancy * part.redundancy


def branch_rewards(parts: Sequence[Scored], floor: float) -> dict[str, list[Value]]:
    """Columns for `normalize_then_sum`: a row that lacks a branch is unknown in every column."""
    columns: dict[str, list[Value]] = {"quality": [], "personalization": [], "redundancy": []}
    for part in parts:
        p = capped(part, floor)
        known = part.quality is not None and p is not None
        columns["quality"].append(part.quality if known else None)
        columns["personalization"].append(p if known else None)
        columns["redundancy"].append(-part.redundancy if known else None)
    return columns


def effective_weights(parts: Sequence[Scored], weights: Weights, group: int) -> Mapping[str, Value]:
    """The share of each branch in what moves the policy: weight × spread within the groups.

    GRPO only sees differences within a group. A branch whose answers all score alike weighs
    nothing, whatever α says.
    """
    a = weights.alpha
    factors = {"quality": a, "personalization": 1 - a, "redundancy": weights.redundancy}
    columns = branch_rewards(parts, weights.floor)
    spreads = {name: within(columns[name], group) for name in columns}
    moved = {name: factors[name] * (spreads[name] or 0.0) for name in columns}
    total = sum(moved.values())
    return {name: value / total if total else None for name, value in moved.items()}


def within(values: Sequence[Value], group: int) -> Value:
    """Mean standard deviation within groups of consecutive answers."""
    chunks = [values[i : i + group] for i in range(0, len(values), group)]
    return numbers.mean(numbers.std(chunk) for chunk in chunks)


def advantages(rewards: Sequence[Value], group: int, scale: str = "group") -> list[float]:
    """Reference for GRPO: reward minus the group's mean, over its spread; None moves nothing."""
    found: list[float] = []
    for start in range(0, len(rewards), group):
        chunk = rewards[start : start + group]
        centre, spread = numbers.mean(chunk), numbers.std(chunk) or 0.0
        divisor = spread + 1e-4 if scale == "group" else 1.0
        found += [0.0 if r is None or centre is None else (r - centre) / divisor for r in chunk]
    return found
