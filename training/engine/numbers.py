"""Small statistics without numpy: means and slopes over values of which some are unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Value = float | None


def known(values: Iterable[Value]) -> list[float]:
    """What is there and finite."""
    return [value for value in values if value is not None and math.isfinite(value)]


def mean(values: Iterable[Value]) -> Value:
    """Mean of what is known; None of nothing."""
    found = known(values)
    return math.fsum(found) / len(found) if found else None


def std(values: Iterable[Value]) -> Value:
    """Sample standard deviation of what is known; None below two values."""
    found = known(values)
    if len(found) < 2:
        return None
    centre = math.fsum(found) / len(found)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in found) / (len(found) - 1))


def error(values: Iterable[Value]) -> Value:
    """Standard error of the mean of what is known."""
    found = known(values)
    spread = std(found)
    return None if spread is None else spread / math.sqrt(len(found))


def median(values: Iterable[Value]) -> Value:
    found = sorted(known(values))
    if not found:
        return None
    middle = len(found) // 2
    return found[middle] if len(found) % 2 else (found[middle - 1] + found[middle]) / 2


def correlation(left: Sequence[Value], right: Sequence[Value]) -> Value:
    """Pearson's r over the pairs of which both are known; None without spread."""
    pairs = [
        (a, b)
        for a, b in zip(left, right, strict=True)
        if a is not None and b is not None and math.isfinite(a) and math.isfinite(b)
    ]
    if len(pairs) < 3:
        return None
    ma = math.fsum(a for a, _ in pairs) / len(pairs)
    mb = math.fsum(b for _, b in pairs) / len(pairs)
    saa = math.fsum((a - ma) ** 2 for a, _ in pairs)
    sbb = math.fsum((b - mb) ** 2 for _, b in pairs)
    if saa <= 1e-18 or sbb <= 1e-18:
        return None
    return math.fsum((a - ma) * (b - mb) for a, b in pairs) / math.sqrt(saa * sbb)


def slope(steps: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Least squares: change over the whole window, and its t value (0 where it means nothing)."""
    n = len(values)
    if n < 4:
        return 0.0, 0.0
    mx, my = math.fsum(steps) / n, math.fsum(values) / n
    sxx = math.fsum((x - mx) ** 2 for x in steps)
    if sxx == 0:
        return 0.0, 0.0
    b = math.fsum((x - mx) * (y - my) for x, y in zip(steps, values, strict=True)) / sxx
    residual = math.fsum((y - my - b * (x - mx)) ** 2 for x, y in zip(steps, values, strict=True))
    error = math.sqrt(residual / (n - 2) / sxx)
    rise = b * (steps[-1] - steps[0])
    if error <= 1e-12:
        return rise, math.copysign(99.0, b) if abs(rise) > 1e-9 else 0.0
    return rise, b / error


def finite(value: object) -> Value:
    """A number that JSON can hold, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
