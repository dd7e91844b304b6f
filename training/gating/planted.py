"""Planted models: scores of a candidate and a baseline with known differences. For trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from training.gating.decision import Pair
from training.gating.rules import AXES

STRATA = 4


def planted(
    rng: np.random.Generator,
    prompts: int,
    *,
    shifts: Mapping[str, float] | None = None,
    personas: int = 2,
    noise: float = 0.25,
) -> dict[str, list[Pair]]:
    """Pairs by axis: every prompt under every persona; difficulty is skewed and shared by both.

    The candidate's scores are higher by the shift of the axis before they are cut to [0, 1].
    """
    found = {}
    for axis in AXES:
        level = rng.beta(2, 1.2, prompts)[:, None]
        sides = level + rng.normal(0, noise, (2, prompts, personas))
        sides[0] += (shifts or {}).get(axis, 0.0)
        found[axis] = _pairs(np.clip(sides, 0, 1))
    return found


def _pairs(sides: Any) -> list[Pair]:
    _, prompts, personas = sides.shape
    return [
        Pair(
            f"{i}-{p}", str(i), f"s{(i + p) % STRATA}", float(sides[0, i, p]), float(sides[1, i, p])
        )
        for i in range(prompts)
        for p in range(personas)
    ]
