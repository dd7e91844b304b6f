"""Accuracy on gold items as a Beta posterior. Pure: no Django, no models."""

from __future__ import annotations

from scipy.special import betaincinv

LEVEL = 0.9  # one-sided


def lower_bound(right: int, seen: int, level: float = LEVEL) -> float:
    """The accuracy that is exceeded with probability `level`, after a uniform prior Beta(1, 1)."""
    return float(betaincinv(1 + right, 1 + seen - right, 1 - level))


def interval(right: float, seen: float, level: float = 0.95) -> tuple[float, float]:
    """The central interval of the same posterior; with none or all right it reaches the end.

    So that it holds the share seen (Brown, Cai and DasGupta 2001, "Interval estimation for a
    binomial proportion").
    """
    tail = (1 - level) / 2
    a, b = 1 + right, 1 + seen - right
    low = float(betaincinv(a, b, tail)) if right > 0 else 0.0
    high = float(betaincinv(a, b, 1 - tail)) if right < seen else 1.0
    return low, high


def falls_short(right: int, seen: int, floor: float, minimum: int) -> bool:
    """Whether enough gold was seen and the accuracy cannot be trusted to reach `floor`."""
    return seen >= max(minimum, 1) and lower_bound(right, seen) < floor


def least_labels(floor: float) -> int:
    """How many gold labels it takes until somebody who is always right is trusted with `floor`."""
    seen = 1
    while lower_bound(seen, seen) < floor:
        seen += 1
    return seen
