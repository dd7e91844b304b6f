"""Alerts and checkpoints of a run, from what it said and from what only the site can see."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from training import storage
from training.engine.config.load import Refused, load
from training.engine.config.schema import RunConfig
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import STEP_TIME, History
from training.engine.monitor.machine_rules import disk, hang
from training.engine.rundir import RunDir, clean, read_json, sha256_json
from training.models import Alert, Checkpoint, MetricLine, TrainingRun
from training.selectors.checkpoints import KEPT

EVIDENCE = ("message", "curves", "window", "numbers", "advice")
QUIET = 60.0  # seconds of silence that are never a hang
RECENT = 200  # metric lines from which the usual time of a step comes


def note_finding(run: TrainingRun, facts: Mapping[str, Any], at: datetime) -> None:
    """One alert a rule and step, however often it is told."""
    evidence = {name: facts[name] for name in EVIDENCE if name in facts}
    changes = facts.get("changes")
    Alert.objects.bulk_create(
        [
            Alert(
                run=run,
                rule=str(facts.get("rule", ""))[:40],
                step=max(0, int(facts.get("step") or 0)),
                severity=str(facts.get("severity", "warning"))[:10],
                evidence=clean(evidence),
                changes=clean(changes) if isinstance(changes, Mapping) else {},
                at=at,
            )
        ],
        ignore_conflicts=True,
    )


def note_checkpoint(
    run: TrainingRun, found: RunDir, facts: Mapping[str, Any], at: datetime
) -> None:
    """Where a run can be resumed from; the trainer keeps the newest ones and deletes others."""
    step, stage = int(facts.get("step") or 0), str(facts.get("stage", ""))
    part = f"{stage.replace('/', '-')}/" if "/" in stage else ""
    path = f"checkpoints/{part}checkpoint-{step}"
    if stage == "kept":  # weights alone, which no newer checkpoint displaces
        path = f"{KEPT}step-{step}"
    if not (found.path / path).exists():
        return
    size = storage.size_of(found.path / path)
    digest = str(facts.get("sha256", ""))[:64]
    _save(run, step=step, path=path, size=size, sha256=digest, at=at)
    note_removed(run, found)


def note_removed(run: TrainingRun, found: RunDir) -> None:
    """Mark what is gone, and what came back after a resume."""
    for row in Checkpoint.objects.filter(run=run):
        there = (found.path / row.path).exists()
        if there == bool(row.removed_at):
            at = None if there else timezone.now()
            Checkpoint.objects.filter(pk=row.pk).update(removed_at=at)


def note_results(run: TrainingRun, found: RunDir, manifest: Mapping[str, Any], step: int) -> None:
    """What a run made at its end: a folder of weights each, named by their hashes."""
    folders: dict[str, dict[str, str]] = {}
    for path, digest in (manifest.get("files") or {}).items():
        folders.setdefault(path.rpartition("/")[0], {})[path] = digest
    for folder, files in folders.items():
        digest = next(iter(files.values())) if len(files) == 1 else sha256_json(files)
        size = storage.size_of(found.path / folder)
        _save(run, step=step, path=folder, size=size, sha256=digest, final=True, at=timezone.now())
    note_removed(run, found)


def _save(run: TrainingRun, **columns: Any) -> None:
    Checkpoint.objects.bulk_create([Checkpoint(run=run, **columns)], ignore_conflicts=True)


def look_from_outside(run: TrainingRun, found: RunDir) -> None:
    """The rules that need the clock and the disk; each speaks once a run."""
    said = set(run.alerts.values_list("rule", flat=True))
    now = timezone.now()
    silence = (now - (run.heartbeat_at or run.started_at or now)).total_seconds()
    findings: list[Finding | None] = []
    try:
        config = load(read_json(found.config))
    except (Refused, OSError, ValueError):
        return
    if silence > QUIET and "hang" not in said:
        findings.append(hang(_times(run), config, silence=silence))
    if "disk" not in said:
        findings.append(_disk(run, config))
    for finding in filter(None, findings):
        note_finding(run, {**finding.__dict__, "step": run.step}, now)


def _times(run: TrainingRun) -> History:
    rows = MetricLine.objects.filter(run=run).order_by("-offset").values_list("step", "values")
    return History({step: {STEP_TIME: v.get(STEP_TIME)} for step, v in rows[:RECENT]})


def _disk(run: TrainingRun, config: RunConfig) -> Finding | None:
    sizes = run.checkpoints.filter(final=False).values_list("size", flat=True)
    largest = max(sizes, default=0) / storage.GB
    free = storage.free_gb()
    return disk(History({}), config, free_gb=free, checkpoint_gb=largest) if largest else None
