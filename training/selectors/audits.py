"""The successes of a gate that somebody must read: drawn by its number, the same for everybody."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from training.gating.rules import AXES
from training.models import GateRun
from training.selectors.evaluated import lines, values_of

SUCCESS = 0.5  # of every axis


def sample(gate: GateRun) -> list[dict[str, Any]]:
    """Answers that every scorer liked, as many as the gate demands, with their values."""
    found = sorted(successes(gate), key=lambda row: _place(gate.pk, row["id"], row["draw"]))
    once = {row["id"]: row for row in reversed(found)}  # one answer to each item
    return [row for row in found if once[row["id"]] is row][: gate.spec.audit]


def successes(gate: GateRun) -> Iterator[dict[str, Any]]:
    if gate.candidate_evaluation is None:
        return
    edges = set(gate.edges)
    for row in lines(gate.candidate_evaluation):
        values = values_of(row, gate.spec)
        liked = all((values[axis] or 0.0) >= SUCCESS for axis in AXES)
        if liked and row["id"] not in edges:
            yield {**row, "draw": int(row["draw"]), "values": values}


def _place(gate: int, item: str, draw: int) -> bytes:
    return hashlib.sha256(f"{gate}\n{item}\n{draw}".encode()).digest()
