"""Looking after runs: reading what they wrote, stopping, noticing their end, starting the next.

Asked every few seconds by beat, from any machine that shares the folder of runs. A process is seen
only from its own machine; of others the age of the last sign of life must do.
"""

from __future__ import annotations

import json
import logging
import subprocess
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import processes, storage
from training.engine.rundir import STOP_FILE, RunDir
from training.enums import RunState
from training.models import Device, TrainingRun
from training.selectors.queue import running
from training.services.findings import look_from_outside
from training.services.ingest import ingest
from training.services.moving import locked, move
from training.services.outcomes import conclude, fail
from training.services.running import (
    begin,
    device_names,
    ensure_devices,
    note_process,
    start_next,
)
from training.storage import directory

log = logging.getLogger("palate.runs")
ANNOUNCE = timedelta(seconds=60)
BEGIN_AGAIN = timedelta(seconds=10)  # after a start that left no process
TERM_AFTER = timedelta(seconds=20)  # a step that ends sooner ends the run by itself
LINGER = timedelta(seconds=60)  # a process that wrote its manifest and does not end


def watch_runs() -> None:
    """All runs on devices, then the queue. Two at once on one machine: the second does nothing."""
    with processes.alone(storage.folder() / f".watch-{processes.host()}.lock") as mine:
        if not mine:
            return
        announce()
        for run in list(running()):
            try:
                watch(run)
            except Exception:
                log.exception("run not watched", extra={"run": run.pk})
        start_next()


def watch(run: TrainingRun) -> None:
    """One run, once."""
    run = ingest(run)
    found = RunDir(directory(run.directory))
    if run.state == RunState.STOPPING and found.path.exists():
        (found.path / STOP_FILE).touch()
    if run.host != processes.host():
        _from_afar(run, found)
        return
    # Asked before the manifest is looked for: a process writes it and ends.
    alive = processes.is_locked(found.path) or processes.is_alive(run.pid, found.path)
    if alive:
        _alive(run, found)
    elif run.pid or _has_ended(run, found):
        conclude(run)
    elif timezone.now() - (run.started_at or run.queued_at) > BEGIN_AGAIN:
        begin(run)


def _has_ended(run: TrainingRun, found: RunDir) -> bool:
    """Whether there is a manifest, and not that of the attempt before."""
    return found.manifest.exists() and storage.is_of(run.attempts, found.path)


def _alive(run: TrainingRun, found: RunDir) -> None:
    now = timezone.now()
    if run.state == RunState.STARTING and run.heartbeat_at:
        run = note_running(run) or run
    if run.pid is None:
        note_process(run)  # whoever started it died before
    if run.state == RunState.STOPPING and run.stop_at:
        kill = now - run.stop_at > timedelta(seconds=settings.RUN_STOP_SECONDS)
        if kill or now - run.stop_at > TERM_AFTER:
            processes.end(run.pid, found.path, kill=kill)
    elif found.manifest.exists():
        written = found.manifest.stat().st_mtime
        if now.timestamp() - written > LINGER.total_seconds():
            processes.end(run.pid, found.path, kill=True)
    else:
        look_from_outside(run, found)


def note_running(run: TrainingRun) -> TrainingRun | None:
    """From starting to running; None where somebody else moved it."""
    with transaction.atomic():
        row = locked(run.pk)
        if row.state != RunState.STARTING:
            return None
        move(row, RunState.RUNNING)
    return row


def _from_afar(run: TrainingRun, found: RunDir) -> None:
    """A run of another machine: its manifest, or a silence that was too long."""
    if _has_ended(run, found):
        conclude(run)
        return
    if run.state == RunState.STARTING and run.heartbeat_at:
        note_running(run)
    last = run.heartbeat_at or run.started_at or run.queued_at
    if timezone.now() - last > timedelta(seconds=settings.RUN_LOST_SECONDS):
        message = _("Nothing was heard of this run on %(host)s since %(at)s.")
        fail(run, "lost", message % {"host": run.host, "at": f"{last:%Y-%m-%d %H:%M} UTC"})


def announce() -> None:
    """Write down that this machine is there, and what it offers."""
    ensure_devices()
    mine = Device.objects.filter(name__in=device_names())
    if not mine.exclude(seen_at__gt=timezone.now() - ANNOUNCE).exists():
        return
    facts = {**machine_facts(), "free_disk_gb": round(storage.free_gb(), 2)}
    mine.update(host=processes.host(), facts=facts, seen_at=timezone.now())


def machine_facts() -> dict[str, Any]:
    """Packages and GPUs as the Python of the trainer sees them; nothing where it does not run."""
    asked = [settings.PALATE_TRAINER[0], "-m", "training.engine.machine"]
    try:
        done = subprocess.run(
            asked, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=60, check=True
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        log.exception("the trainer's Python does not answer")
        return {"packages": []}
    return found
