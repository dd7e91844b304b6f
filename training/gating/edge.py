"""Edge cases: a seeded draw for each gate, and what became of each by name. Pure (H10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DRAW = 50


@dataclass(frozen=True)
class EdgeReport:
    """Names of the cases. `unknown`: one side could not be scored."""

    fixed: tuple[str, ...] = ()
    regressed: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    solved: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def draw(names: Iterable[str], seed: int | str, n: int = DRAW) -> list[str]:
    """n names at random, the same for the same seed whatever the order, and as cases are added
    mostly the same: each name has its own random place."""

    def place(name: str) -> bytes:
        return hashlib.sha256(f"{seed}\n{name}".encode()).digest()

    return sorted(sorted(set(names), key=place)[:n])


def report(
    names: Iterable[str],
    candidate: Mapping[str, float | None],
    baseline: Mapping[str, float | None],
    *,
    solved_from: float = 0.5,
) -> EdgeReport:
    """What the candidate does with cases on which somebody failed, against the baseline."""
    groups: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        new, old = candidate.get(name), baseline.get(name)
        if new is None or old is None:
            groups.setdefault("unknown", []).append(name)
            continue
        good, was_good = new >= solved_from, old >= solved_from
        if good:
            kind = "solved" if was_good else "fixed"
        else:
            kind = "regressed" if was_good else "still_failing"
        groups.setdefault(kind, []).append(name)
    return EdgeReport(**{kind: tuple(found) for kind, found in groups.items()})
