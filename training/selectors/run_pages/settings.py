"""The settings of runs as flat tables: resolved values, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.engine.config.load import Refused, as_dict, load
from training.models import TrainingRun
from training.words.fields import BY_INPUTS, label_of

PATHS = (*BY_INPUTS, "model.path")
Flat = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A setting before and after, as text."""

    field: str
    label: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in all compared runs."""

    field: str
    label: str
    values: list[str]


def resolved(run: TrainingRun) -> dict[str, Any]:
    """Every setting of a run: from its manifest once it ended, else from what was asked."""
    found: dict[str, Any] | None = (run.manifest or {}).get("config")
    if found:
        return found
    asked = {**run.config, "kind": run.kind, "preset": run.preset, "seed": run.seed}
    try:
        return as_dict(load(asked))
    except Refused:  # written by another version of the engine
        return dict(run.config)


def flat(values: Mapping[str, Any], path: str = "") -> Flat:
    """Nested settings under dotted names; lists stay values."""
    found: Flat = {}
    for key, value in values.items():
        name = f"{path}{key}"
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{name}.")
        else:
            found[name] = value
    return found


def shown(value: Any) -> str:
    """A value as a person would write it."""
    if value is None or value == "" or value == {} or value in ([], ()):
        return "–"
    if isinstance(value, bool):
        return "✓" if value else "✗"
    if isinstance(value, list | tuple):
        if all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value):
            return ", ".join(f"{shown(a)}: {shown(b)}" for a, b in value)
        return ", ".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def changes(before: Flat, proposed: Mapping[str, Any]) -> list[Change]:
    """What a proposal would change, against the settings that a run had."""
    return [
        Change(name, label_of(name), shown(before.get(name)), shown(value))
        for name, value in proposed.items()
        if shown(before.get(name)) != shown(value)
    ]


def difference(before: Flat, after: Flat, sections: Sequence[str]) -> list[Change]:
    """What is not the same in these sections; paths belong to the inputs and are left out."""
    names = [
        n for n in {**before, **after}
        if n.partition(".")[0] in sections and not n.startswith(PATHS)
    ]  # fmt: skip
    return changes({n: before.get(n) for n in names}, {n: after.get(n) for n in names})


def differences(runs: Sequence[Flat]) -> list[Difference]:
    """Settings in which compared runs are not all alike."""
    names = dict.fromkeys(name for run in runs for name in run)
    found = []
    for name in names:
        values = [shown(run.get(name)) for run in runs]
        if len(set(values)) > 1 and not name.startswith(PATHS):
            found.append(Difference(name, label_of(name), values))
    return found
