"""How α moves over a run: piecewise linear over progress, flat outside the points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Points = Sequence[tuple[float, float]]
DEFAULT: Points = ((0.0, 0.7), (0.5, 0.5), (1.0, 0.4))


def at(progress: float, points: Points = DEFAULT) -> float:
    """The value at a progress in [0, 1]."""
    if progress <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if progress <= x1:
            return y0 + (y1 - y0) * (progress - x0) / (x1 - x0)
    return points[-1][1]
