"""What came of a run, from its manifest or from the lack of one; the device is free afterwards."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import processes
from training.engine.rundir import RunDir, read_json
from training.enums import ON_DEVICE, RunKind, RunState
from training.models import TrainingRun
from training.services.evaluations import note_evaluation
from training.services.findings import note_results
from training.services.ingest import ingest, storable
from training.services.moving import locked, move, release
from training.services.run_erasing import erase_at_end
from training.services.waking import wake_chains
from training.storage import directory
from webapp.core import audit
from webapp.core.jobs import enqueue

log = logging.getLogger("palate.runs")
STATES = {
    "succeeded": RunState.SUCCEEDED,
    "stopped": RunState.CANCELLED,
    "refused": RunState.FAILED,
    "failed": RunState.FAILED,
}
KEPT = 20_000  # characters of a message


def conclude(run: TrainingRun) -> None:
    """The process is gone: what its manifest says, or that it was killed."""
    found = RunDir(directory(run.directory))
    if run.host == processes.host():
        processes.end_orphans(run.pid)
    ingest(run)
    try:
        manifest = storable(read_json(found.manifest))
    except (OSError, ValueError):
        manifest = {}
    if manifest.get("state") in STATES:
        columns: dict[str, Any] = {
            "reason": str(manifest.get("reason", ""))[:40],
            "message": str(manifest.get("message", ""))[:KEPT],
            "changes": manifest.get("changes") or {},
            "manifest": manifest,
        }
        if manifest["state"] == "stopped":
            columns["reason"] = "cancelled" if run.state == RunState.STOPPING else "stopped"
        finish(run, STATES[manifest["state"]], columns)
    else:
        finish(run, RunState.FAILED, {"reason": "killed", "message": _killed()})


def _killed() -> str:
    return _(
        "The process ended without a word: it was killed, perhaps because memory ran out, or the "
        "machine was switched off. It can be resumed."
    )


def fail(run: TrainingRun, reason: str, message: str, changes: Mapping[str, Any] = {}) -> None:
    """End a run that has no process."""
    finish(run, RunState.FAILED, {"reason": reason, "message": message, "changes": dict(changes)})


def finish(run: TrainingRun, state: str, columns: Mapping[str, Any]) -> None:
    """The last move of an attempt: once, whoever sees it first."""
    found = RunDir(directory(run.directory))
    tail = processes.last_lines(found.path)
    with transaction.atomic():
        row = locked(run.pk)
        if row.state not in ON_DEVICE or row.attempts != run.attempts:
            return
        stopped = row.state == RunState.STOPPING
        if stopped and state == RunState.FAILED and columns["reason"] == "killed":
            state = RunState.CANCELLED  # it was asked to end, and did
        if state in (RunState.SUCCEEDED, RunState.CANCELLED) and row.state == RunState.STARTING:
            move(row, RunState.RUNNING)
        if state == RunState.CANCELLED and row.state == RunState.RUNNING:
            move(row, RunState.STOPPING)
        move(row, state, ended_at=timezone.now(), log_tail=tail, pid=None, **columns)
        note_results(row, found, row.manifest if state == RunState.SUCCEEDED else {}, row.step)
        release(row)
        note_evaluation(row)
        audit.record(actor=None, action="run_ended", obj=row, state=row.state, reason=row.reason)
        enqueue("start_runs", row.pk)
        wake_chains()
        if row.kind == RunKind.EVALUATE:
            enqueue("decide_gates", row.pk)
        if row.kind == RunKind.GRPO and (row.config.get("grpo") or {}).get("gate"):
            enqueue("gate_when_done", row.pk)
    erase_at_end(row)
    log.info("run ended", extra={"run": row.pk, "state": row.state, "reason": row.reason})
