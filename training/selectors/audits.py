"""The successes of a gate that somebody must read: drawn by its number, the same for everybody."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from training import snapshots
from training.gating.rules import AXES
from training.models import GateRun
from training.selectors.evaluated import lines, values_of

SUCCESS = 0.5  # of every axis


def sample(gate: GateRun) -> list[dict[str, Any]]:
    """Answers that every scorer liked, as many as the gate demands, with their values; where
    there are fewer, then those that came nearest.
    """
    rows = list(scored(gate))
    found = sorted(filter(liked, rows), key=lambda row: _place(gate.pk, row["id"], row["draw"]))
    rest = [row for row in rows if not liked(row)]
    # With fewer successes than the gate demands, those that came nearest are read as well.
    found += sorted(rest, key=lambda row: (-_least(row), row["id"], row["draw"]))
    once = {row["id"]: row for row in reversed(found)}  # one answer to each item
    return [row for row in found if once[row["id"]] is row][: gate.spec.audit]


def liked(row: dict[str, Any]) -> bool:
    """Whether every axis is a success."""
    return _least(row) >= SUCCESS


def _least(row: dict[str, Any]) -> float:
    return float(min(row["values"][axis] or 0.0 for axis in AXES))


def scored(gate: GateRun) -> Iterator[dict[str, Any]]:
    """The candidate's answers to the gate's own items, with their values."""
    if gate.candidate_evaluation is None:
        return
    others = set(gate.edges)
    if others:  # a gate that somebody failed has made edge cases of its own items
        others -= {row["id"] for row in snapshots.prompts(gate.spec.dataset, gate.spec.split)}
    for row in lines(gate.candidate_evaluation):
        if row["id"] not in others:
            yield {**row, "draw": int(row["draw"]), "values": values_of(row, gate.spec)}


def _place(gate: int, item: str, draw: int) -> bytes:
    return hashlib.sha256(f"{gate}\n{item}\n{draw}".encode()).digest()
