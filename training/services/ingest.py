"""Reading what a run wrote since the last time: metrics, events, samples, heartbeat.

A line is known by its place in its file, so reading again adds nothing. Only whole lines are read;
what a killed process left half stays until its successor has closed it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.engine.rundir import RunDir, read_json
from training.models import MetricLine, RunEvent, SampleLine, TrainingRun
from training.services.findings import note_checkpoint, note_finding
from training.services.moving import locked
from training.storage import directory, is_of

BYTES = 8_000_000  # a file and transaction
BATCH = 1000
Line = tuple[int, dict[str, Any]]


def ingest(run: TrainingRun) -> TrainingRun:
    """Everything that is there now, in transactions of a few megabytes."""
    found = RunDir(directory(run.directory))
    while True:
        with transaction.atomic():
            row = locked(run.pk)
            before = dict(row.offsets)
            columns = _read(row, found)
            if columns:
                TrainingRun.objects.filter(pk=row.pk).update(**columns)
        if columns.get("offsets", before) == before:
            return TrainingRun.objects.get(pk=run.pk)


def _read(run: TrainingRun, found: RunDir) -> dict[str, Any]:
    """Store the next lines; the columns of the run that change with them."""
    offsets, columns = dict(run.offsets), _heartbeat(run, found)
    lines, offsets["metrics"] = read_from(found.metrics, offsets.get("metrics", 0))
    metrics = list(_metrics(run, lines))
    MetricLine.objects.bulk_create(metrics, batch_size=BATCH, ignore_conflicts=True)
    if metrics and run.first_metric_at is None:
        columns["first_metric_at"] = metrics[0].at
    lines, offsets["samples"] = read_from(found.samples, offsets.get("samples", 0))
    samples = [
        SampleLine(run=run, offset=offset, step=number(row), evaluation=bool(row.get("eval")))
        for offset, row in lines
    ]
    SampleLine.objects.bulk_create(samples, batch_size=BATCH, ignore_conflicts=True)
    lines, offsets["events"] = read_from(found.events, offsets.get("events", 0))
    _events(run, found, lines)
    return columns if offsets == run.offsets else {**columns, "offsets": offsets}


def _metrics(run: TrainingRun, lines: list[Line]) -> Iterator[MetricLine]:
    for offset, row in lines:
        if isinstance(row.get("metrics"), dict):
            stage, at = str(row.get("stage", ""))[:40], moment(row.get("at"))
            yield MetricLine(
                run=run, offset=offset, step=number(row), stage=stage, at=at, values=row["metrics"]
            )


def _events(run: TrainingRun, found: RunDir, lines: list[Line]) -> None:
    events = []
    for offset, row in lines:
        facts = {name: value for name, value in row.items() if name not in ("at", "kind")}
        kind, at = str(row.get("kind", ""))[:40], moment(row.get("at"))
        events.append(RunEvent(run=run, offset=offset, kind=kind, at=at, facts=facts))
        if kind == "alert":
            note_finding(run, facts, at)
        elif kind == "checkpoint":
            note_checkpoint(run, found, facts, at)
    RunEvent.objects.bulk_create(events, batch_size=BATCH, ignore_conflicts=True)


def _heartbeat(run: TrainingRun, found: RunDir) -> dict[str, Any]:
    """What the process said last; nothing where it said nothing new."""
    if not is_of(run.attempts, found.path):
        return {}
    try:
        beat = read_json(found.heartbeat)
        at = moment(beat["at"])
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    if run.heartbeat_at and at <= run.heartbeat_at:
        return {}
    return {"heartbeat_at": at, "stage": str(beat.get("stage", ""))[:40], "step": number(beat)}


def read_from(path: Path, offset: int) -> tuple[list[Line], int]:
    """Whole lines from a place on, each with its own place; and where to go on."""
    if not path.exists():
        return [], offset
    found: list[Line] = []
    with path.open("rb") as file:
        file.seek(offset)
        start = offset
        for line in file:
            if not line.endswith(b"\n") or offset - start > BYTES:
                break
            row = parsed(line)
            if row is not None:
                found.append((offset, row))
            offset += len(line)
    return found, offset


def parsed(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None for half a line that was closed later."""
    try:
        row = json.loads(line, parse_constant=lambda _name: None)
    except ValueError:
        return None
    return storable(row) if isinstance(row, dict) else None


def storable(value: Any) -> Any:
    """Without what PostgreSQL does not keep: NUL, and halves of surrogates."""
    if isinstance(value, str):
        text = value.replace("\x00", "")
        return text.encode("utf-8", "replace").decode() if not text.isprintable() else text
    if isinstance(value, dict):
        return {storable(name): storable(inner) for name, inner in value.items()}
    return list(map(storable, value)) if isinstance(value, list) else value


def number(row: dict[str, Any]) -> int:
    step = row.get("step")
    return step if isinstance(step, int) and step >= 0 else 0


def moment(seconds: Any) -> datetime:
    """Seconds since 1970 as a time; now, where a line does not say."""
    if not isinstance(seconds, int | float):
        return timezone.now()
    return datetime.fromtimestamp(seconds, UTC)
