"""What a gate demands: margins, error limit and least numbers, fixed before anything is measured.

Values are scores in [0, 1]; differences are candidate − baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

AXES = ("quality", "personalization")


class RuleError(Exception):
    """One setting of a gate that cannot be used."""

    def __init__(self, field: str, code: str, **params: object) -> None:
        super().__init__(code)
        self.field, self.code, self.params = field, code, params


@dataclass(frozen=True)
class Rules:
    """`level` is one-sided. Strata with fewer prompts than `stratum_minimum` are shown, not judged.

    `regressions` limits edge cases that the baseline solved and the candidate does not; None only
    reports them.
    """

    quality_margin: float = 0.05  # quality may not be lower by more than this
    gain: float = 0.0  # personalization must be higher by more than this
    stratum_margin: float = 0.1  # no stratum may be lower by more than this, on either axis
    stratum_minimum: int = 10
    error_limit: float = 0.05  # share of answers without a score, of either side
    minimum: int = 30  # prompts
    level: float = 0.975
    resamples: int = 4000
    sameness: float = 0.25  # the commonest answer may go to so many more prompts; 1: not judged
    regressions: int | None = None
    seed: int = 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


RANGES: dict[str, tuple[float, float]] = {
    "quality_margin": (0.0, 0.5),
    "gain": (0.0, 0.5),
    "stratum_margin": (0.0, 1.0),
    "stratum_minimum": (2, 10_000),
    "error_limit": (0.0, 0.5),
    "minimum": (10, 100_000),
    "level": (0.9, 0.999),
    "resamples": (1000, 100_000),
    "sameness": (0.0, 1.0),
    "regressions": (0, 1000),
    "seed": (0, 2**31 - 1),
}


def parse(values: Mapping[str, Any]) -> Rules:
    """Rules from JSON or a form. Raises RuleError for the first setting that does not fit."""
    known = {field.name: field for field in fields(Rules)}
    for name, value in values.items():
        if name not in known:
            raise RuleError(name, "unknown")
        if name == "regressions" and value is None:
            continue
        whole = "int" in str(known[name].type)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise RuleError(name, "number")
        low, high = RANGES[name]
        if not low <= value <= high:
            raise RuleError(name, "range", low=low, high=high)
    return Rules(**values)
