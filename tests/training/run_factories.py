"""Runs for tests: inputs, launches, and waiting for what a process does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.training.factories import admin, draft, freeze
from training.enums import ENDED, Role
from training.launching import InputSpec
from training.models import Dataset, TrainingRun
from training.services import watching
from training.services.running import start_next
from training.services.runs import launch
from webapp.catalog.services.imports import open_run, run_import

PATIENCE = 240.0  # seconds for a process to do something


def instructions(tmp_path: Any, rows: int = 12, name: str = "Instructions") -> Dataset:
    """A frozen dataset with a training and a gate split, whose rows say what rules check."""
    known = Dataset.objects.filter(name=name).first()
    if known:
        return known
    file = tmp_path / f"{name}.jsonl"
    lines = (
        f'{{"prompt": "How do I do {name} {n}?", "completion": "Like this {n}.", '
        f'"task": {{"entities": ["{n}"], "words": [0, 20]}}}}\n'
        for n in range(rows)
    )
    file.write_text("".join(lines), encoding="utf-8")
    opened = open_run(path=file, format="instructions", kind="records", user=admin(), dry_run=False)
    imported = run_import(pk=opened.pk, take_over=True)
    assert imported is not None
    assert imported.added == rows, imported.message
    made = freeze(draft("instructions", name=name, train=75, gate=25))
    assert made.state == "frozen", made.report
    return made


def sft(tmp_path: Any, does: str = "steps=5", **options: Any) -> TrainingRun:
    """A run in the queue; the note tells the fake trainer what to do."""
    dataset = instructions(tmp_path)
    inputs = {Role.TRAIN: InputSpec(dataset=dataset, split="train")}
    name = options.pop("name", f"Run {TrainingRun.objects.count()}")
    config: Mapping[str, Any] = {"note": does, **options.pop("config", {})}
    return launch(
        actor=admin(), name=name, kind="sft", preset="tiny", config=config, inputs=inputs, **options
    )


def started(run: TrainingRun) -> TrainingRun:
    """Start what is queued, and see this run's process begin."""
    start_next()
    return until(run, lambda row: row.state != "starting")


def until(
    run: TrainingRun, holds: Callable[[TrainingRun], bool], patience: float = PATIENCE
) -> TrainingRun:
    """Watch until something holds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        watching.watch_runs()
        row = TrainingRun.objects.get(pk=run.pk)
        if holds(row):
            return row
        time.sleep(0.05)
    raise AssertionError(f"{row.state} {row.reason} {row.message} {row.log_tail}")


def ended(run: TrainingRun, patience: float = PATIENCE) -> TrainingRun:
    return until(run, lambda row: row.state in ENDED, patience)
