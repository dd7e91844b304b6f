"""What an evaluation measured: answers by item and draw, with the value of each axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from training.engine.rundir import read_lines
from training.gating.rules import AXES
from training.models import GateSpec, TrainingRun
from training.storage import directory

FILE = "evaluation.jsonl"
Key = tuple[str, int]  # item, draw


def lines(run: TrainingRun) -> Iterator[dict[str, Any]]:
    """What was answered; a line that was made blank since consent was withdrawn is none (V14)."""
    return (row for row in read_lines(directory(run.directory) / FILE) if "id" in row)


def answers(run: TrainingRun, spec: GateSpec) -> dict[Key, dict[str, Any]]:
    """Every line of the evaluation; `values` holds the value of each axis."""
    found = {}
    for row in lines(run):
        found[row["id"], int(row["draw"])] = {**row, "values": values_of(row, spec)}
    return found


def values_of(row: Mapping[str, Any], spec: GateSpec) -> dict[str, float | None]:
    return {axis: value_of(row["parts"], spec.scorers[axis], axis) for axis in AXES}


def key_of(scorer: str, axis: str) -> str:
    """Under which name a scorer says its value of an axis: the total of the rules is quality."""
    own = scorer.startswith(axis) or (scorer, axis) == ("rules", "personalization")
    return axis if own else scorer


def value_of(parts: Mapping[str, Any], names: Iterable[str], axis: str) -> float | None:
    """The mean over the scorers of an axis; None where one of them could not score (V12)."""
    values = []
    for name in names:
        value = (parts.get(name) or {}).get(key_of(name, axis))
        if value is None:
            return None
        values.append(float(value))
    return sum(values) / len(values) if values else None
