"""Runs as rows, for pages: made without a process, with curves, alerts and answers as wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from tests.training.factories import admin
from training.models import (
    Alert,
    Checkpoint,
    MetricLine,
    RunEvent,
    SampleLine,
    TrainingRun,
)
from training.storage import directory

START = datetime(2030, 5, 6, 9, 0, tzinfo=UTC)
GATE = {
    "passed": False,
    "checks": [
        {"name": "accuracy", "value": 0.97, "limit": 0.95, "at_least": True, "passed": True},
        {"name": "jitter", "value": 1e-7, "limit": 1e-4, "at_least": False, "passed": True},
        {"name": "probe: vague", "value": 0.5, "limit": 0.9, "at_least": True, "passed": False},
    ],
    "probes": {"vague": 0.5, "truncated": 1.0},
}


def make_run(kind: str = "grpo", state: str = "running", **values: Any) -> TrainingRun:
    """One row. `config` is what differs from the preset."""
    n = TrainingRun.objects.count() + 1
    values = {
        "name": f"Run {n}", "preset": "tiny", "config_sha256": "c" * 64, "directory": f"run-{n}",
        "created_by": admin(), "queued_at": START, "started_at": START, "steps": 100, **values,
    }  # fmt: skip
    return TrainingRun.objects.create(kind=kind, state=state, **values)


def log(run: TrainingRun, steps: Sequence[int], stage: Any = "grpo", **curves: Any) -> None:
    """Metric lines; a curve is a function of the step, and __ in its name stands for a slash."""
    first = MetricLine.objects.filter(run=run).count()
    MetricLine.objects.bulk_create(
        MetricLine(
            run=run,
            offset=first + n,
            step=step,
            stage=stage,
            at=START + timedelta(seconds=step),
            values={name.replace("__", "/"): curve(step) for name, curve in curves.items()},
        )
        for n, step in enumerate(steps)
    )


def grpo_curves(run: TrainingRun, steps: int = 100) -> None:
    """Curves as a healthy run has them."""
    log(
        run,
        range(1, steps + 1),
        reward=lambda s: 0.4 + 0.3 * s / steps,
        reward__reference=lambda s: 0.4 + 0.25 * s / steps,
        kl=lambda s: 0.001 * s,
        length__mean=lambda s: 12 + s % 3,
        parts__quality=lambda s: 0.5 + 0.1 * s / steps,
        parts__personalization=lambda s: 0.4 + 0.4 * s / steps,
        alpha=lambda s: 0.7 - 0.3 * s / steps,
        entropy=lambda _s: 0.25,
        grad_norm=lambda _s: 0.5,
        my_own_metric=lambda s: s,
    )


def say(run: TrainingRun, step: int = 60, **values: Any) -> Alert:
    """An alert with a proposal."""
    evidence = {
        "message": "Answers jumped from 12 to 40 tokens.", "curves": ["length/mean", "reward"],
        "window": [step - 20, step], "numbers": {"before": 12.0, "after": 40.0}, "advice": "",
    }  # fmt: skip
    values = {
        "rule": "length_spike", "severity": "warning", "evidence": evidence,
        "changes": {"grpo.beta": 0.06}, "at": timezone.now(), **values,
    }  # fmt: skip
    return Alert.objects.create(run=run, step=step, **values)


def tell(run: TrainingRun, kind: str, **facts: Any) -> RunEvent:
    """A line of events.jsonl."""
    offset = RunEvent.objects.filter(run=run).count()
    return RunEvent.objects.create(run=run, offset=offset, kind=kind, at=START, facts=facts)


def write_answers(run: TrainingRun, rows: Sequence[Mapping[str, Any]]) -> None:
    """samples.jsonl, and where each line stands."""
    folder = directory(run.directory)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "samples.jsonl").open("ab") as file:
        for row in rows:
            offset = file.tell()
            file.write(json.dumps(row).encode() + b"\n")
            evaluation = bool(row.get("eval"))
            SampleLine.objects.create(
                run=run, offset=offset, step=row["step"], evaluation=evaluation
            )


def checkpoint(run: TrainingRun, step: int, size: int = 1000, **values: Any) -> Checkpoint:
    path = values.pop("path", f"checkpoints/checkpoint-{step}")
    folder = directory(run.directory) / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_bytes(b"x")
    return Checkpoint.objects.create(run=run, step=step, path=path, size=size, at=START, **values)
