"""Taking a device for the next run in the queue, and starting its process."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training import processes, storage
from training.engine.config.schema import RunConfig
from training.engine.rundir import RunDir, read_json
from training.enums import ON_DEVICE, RunState
from training.models import Device, TrainingRun
from training.selectors.queue import waiting
from training.services.moving import locked, move
from training.services.outcomes import fail, finish
from training.services.rundirs import prepare
from training.storage import directory
from webapp.core import audit
from webapp.core.errors import PalateError

log = logging.getLogger("palate.runs")


def start_next() -> list[int]:
    """Start queued runs while devices of this machine are free; which ones."""
    started = []
    ensure_devices()
    while (run := lease_next()) is not None:
        begin(run)
        started.append(run.pk)
    return started


def device_names() -> dict[str, str]:
    """Devices of this machine, and the GPUs that a run on each may see ("" : all)."""
    entries = [entry.partition(":") for entry in settings.PALATE_DEVICES if entry.strip()]
    return {name.strip(): gpus.replace("+", ",") for name, _colon, gpus in entries}


def ensure_devices() -> None:
    """A row a device, made once."""
    rows = [Device(name=name) for name in device_names()]
    known = set(Device.objects.values_list("name", flat=True))
    Device.objects.bulk_create([r for r in rows if r.name not in known], ignore_conflicts=True)


def lease_next() -> TrainingRun | None:
    """The next run with a free device, or None: two that ask at once never get the same (G23)."""
    with transaction.atomic():
        free = Device.objects.filter(run=None, name__in=device_names()).order_by("name")
        device = free.select_for_update(skip_locked=True).first()
        if device is None:
            return None
        while (head := waiting().first()) is not None:
            run = locked(head.pk)
            if run.state == RunState.QUEUED:
                break
        else:
            return None
        move(
            run,
            RunState.STARTING,
            host=processes.host(),
            attempts=run.attempts + 1,
            started_at=timezone.now(),
            heartbeat_at=None,
            pid=None,
        )
        Device.objects.filter(pk=device.pk).update(run=run, taken_at=timezone.now())
    return run


def begin(run: TrainingRun) -> None:
    """Write the directory and start the process, once however often it is called.

    Whoever prepares holds a lock that dies with it, so that another may go on after a crash; a
    process that was started without having been noted is found by the lock that it holds.
    """
    path = directory(run.directory)
    with processes.alone(path / "start.lock") as mine:
        run = TrainingRun.objects.get(pk=run.pk)
        if not mine or run.state not in (RunState.STARTING, RunState.STOPPING) or run.pid:
            return
        if processes.is_locked(path):
            note_process(run)
            return
        if run.state == RunState.STOPPING:
            finish(run, RunState.CANCELLED, {"reason": "cancelled"})
            return
        try:
            config = prepare(run)
            need_room(config)
            note_process(run, _start(run, config))
        except DatabaseError:
            raise  # not the run's fault: it is begun again
        except Exception as error:
            reason, message = explain(error)
            log.exception("run not started", extra={"run": run.pk})
            fail(run, reason, message)


def need_room(config: RunConfig) -> None:
    """Refuse to start with less free space than the preset asks for."""
    free, needed = storage.free_gb(), config.hardware.disk_gb
    if free < needed:
        message = _("%(free).1f GB are free where runs are stored, %(needed).1f GB are needed.")
        raise OSError(errno.ENOSPC, message % {"free": free, "needed": needed})


def _start(run: TrainingRun, config: RunConfig) -> int:
    gpus = next((g for n, g in device_names().items() if run.device.name == n), "")
    several = len(device_names()) > 1 and config.hardware.device == "cpu"
    env = processes.environment(threads=1 if several else config.hardware.threads, gpus=gpus)
    processed = config.hardware.processes
    return processes.start(directory(run.directory), processes=processed, env=env)


def note_process(run: TrainingRun, pid: int | None = None) -> None:
    """Write down which process executes a run; without `pid`, what its heartbeat says."""
    pid = pid or _pid_of(directory(run.directory))
    with transaction.atomic():
        row = locked(run.pk)
        if row.attempts == run.attempts and row.state in ON_DEVICE and not row.pid:
            TrainingRun.objects.filter(pk=row.pk).update(pid=pid)
            audit.record(actor=None, action="run_started", obj=row, attempt=row.attempts)


def _pid_of(path: Path) -> int | None:
    try:
        return int(read_json(RunDir(path).heartbeat)["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def explain(error: Exception) -> tuple[str, str]:
    """A reason that the site can name, and a sentence."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk_full", error.strerror or str(error)
    if isinstance(error, PalateError):
        return error.code[:40], str(error)
    return "error", f"{type(error).__name__}: {error}"[:2000]
