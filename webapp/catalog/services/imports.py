"""The life of an import: uploaded, checked, started, committed batch by batch, finished.

The row of the run is the truth. A batch, its counts and `rows_done` are one transaction, so that a
killed import goes on where the last commit left it. `heartbeat_at` is also the fence: every commit
names the heartbeat it saw last, and a process that was taken over finds another one and stops.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import DatabaseError, IntegrityError, OperationalError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.catalog import uploads
from webapp.catalog.enums import ImportState
from webapp.catalog.formats import FORMATS
from webapp.catalog.formats.rows import FormatError
from webapp.catalog.models import ImportRun
from webapp.catalog.policies import check_may_import
from webapp.catalog.refusals import as_error_line, as_record, explain_file
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.batches import Batch, Result, batches, store_batch
from webapp.catalog.services.checks import import_limits
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.jobs import enqueue

STALE = timedelta(seconds=30)  # no commit for so long: the process is gone
UPLOADS_KEPT = timedelta(days=7)  # uploads that nobody starts
SAMPLES, FIRST_REFUSALS, CONTESTANTS = 6, 20, 1000
CHECK = "check:"  # the key of an import says from which check it was started
Progress = Callable[[ImportRun], None]


class TakenOverError(Exception):
    """Another process goes on with this run, or it was cancelled."""


# Making runs


def receive_upload(
    *, actor: Any, name: str, chunks: Iterable[bytes], format: str = "", key: str
) -> ImportRun:
    """Keep an upload and check it in the background. The same `key` gives the same run."""
    check_may_import(actor)
    run, created = _make_once(
        key=key,
        format=format,
        file_name=uploads.clean_name(name),
        dry_run=True,
        created_by=actor,
    )
    if not created:
        return run
    try:
        path, size, digest = uploads.save_upload(run.pk, chunks)
        chosen = uploads.choose_format(path, format)
    except FormatError as error:
        uploads.discard_all(run.pk)
        run.delete()
        raise InvalidInput(explain_file(error), field="file", code=error.code) from error
    with transaction.atomic():
        ImportRun.objects.filter(pk=run.pk).update(
            format=chosen, path=str(path), size=size, sha256=digest, state=ImportState.RUNNING
        )
        audit.record(actor=actor, action="upload", obj=run, format=chosen, sha256=digest)
        enqueue("run_import", run.pk)
    run.refresh_from_db()
    return run


def start_import(*, actor: Any, check: ImportRun) -> ImportRun:
    """Import the file of a finished check. Pressing twice starts once."""
    check_may_import(actor)
    with transaction.atomic():
        check = ImportRun.objects.select_for_update().get(pk=check.pk)
        if not check.dry_run or check.state != ImportState.DONE:
            raise Refused(_("Only a file that was checked can be imported."), code="state")
        run, created = _make_once(
            key=f"{CHECK}{check.pk}",
            format=check.format,
            file_name=check.file_name,
            path=check.path,
            size=check.size,
            sha256=check.sha256,
            state=ImportState.RUNNING,
            report={"check": check.pk},
            created_by=actor,
        )
        if created:
            _audit_start(run)
            enqueue("run_import", run.pk)
    return run


def open_run(*, path: Path, format: str = "", user: Any = None, dry_run: bool = False) -> ImportRun:
    """A run for a file on this machine: an interrupted one of the same file, or a new one."""
    check_may_import(user)
    chosen = uploads.choose_format(path, format)
    said: dict[str, Any] = {
        "format": chosen,
        "path": str(path.resolve()),
        "sha256": uploads.file_sha256(path),
        "dry_run": dry_run,
        "created_by": user,
    }
    for run in ImportRun.objects.filter(state=ImportState.RUNNING, **said):
        with uploads.alive(run.pk) as free:
            if free:
                return run
    with transaction.atomic():
        run = ImportRun.objects.create(
            file_name=uploads.clean_name(path.name),
            size=path.stat().st_size,
            state=ImportState.RUNNING,
            heartbeat_at=timezone.now(),
            **said,
        )
        if not dry_run:
            _audit_start(run)
    return run


def _audit_start(run: ImportRun) -> None:
    audit.record(
        actor=run.created_by, action="import", obj=run, format=run.format, sha256=run.sha256
    )


def _make_once(*, key: str, **values: Any) -> tuple[ImportRun, bool]:
    try:
        with transaction.atomic():
            return ImportRun.objects.create(key=key, **values), True
    except IntegrityError:
        return ImportRun.objects.get(key=key), False


# Doing the work


def run_import(
    *, pk: int, take_over: bool = False, progress: Progress | None = None
) -> ImportRun | None:
    """Work on a run until it is done. None where another process has it; harmless to call twice."""
    with uploads.alive(pk) as free:
        run = _claim(pk, take_over) if free else None
        if run is None:
            return None
        try:
            _process(run, progress)
            _finish(run)
        except TakenOverError:
            pass
        except (FormatError, FileNotFoundError) as error:
            _fail(run, error if isinstance(error, FormatError) else FormatError("gone"))
        except DatabaseError:
            raise  # what is not committed is done again
        except Exception:
            _fail(run, FormatError("unexpected"))
            raise
    run.refresh_from_db()
    return run


def _claim(pk: int, take_over: bool) -> ImportRun | None:
    """Compare and set: one process gets the run, unless the one that had it fell silent."""
    now = timezone.now()
    free = Q() if take_over else Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    mine = ImportRun.objects.filter(free, pk=pk, state=ImportState.RUNNING)
    if not mine.update(heartbeat_at=now):
        return None
    run = ImportRun.objects.select_related("created_by").get(pk=pk)
    if run.dry_run:  # a dry run remembers the rows before, so it begins anew
        run.rows_done = run.bytes_done = run.added = run.known = run.refused = 0
        run.report = {}
    return run


def _process(run: ImportRun, progress: Progress | None) -> None:
    path = Path(run.path)
    if uploads.file_sha256(path) != run.sha256:
        raise FormatError("changed")
    scratch = Scratch(uploads.folder(run.pk) / "scratch") if run.dry_run else nullcontext(None)
    samples: list[tuple[str, dict[str, str]]] = []
    with path.open("rb") as stream, scratch as notes:
        parsed = FORMATS[run.format](stream, limits=import_limits(), skip=run.rows_done)
        for batch in batches(parsed):
            result = _commit(run, batch, notes)
            if run.dry_run:
                samples = _choose_samples(samples + result.samples)
            if progress is not None:
                progress(run)
    if run.dry_run:
        _keep_samples(run, samples)


def _commit(run: ImportRun, batch: Batch, scratch: Scratch | None) -> Result:
    """A batch in one transaction; tried again where the database ended a deadlock."""
    for attempt in range(3):
        try:
            with transaction.atomic():
                result = store_batch(batch=batch, run=run, scratch=scratch)
                values = _advanced(run, batch, result)
                _fenced_update(run, **values)
            break
        except OperationalError:
            if attempt == 2 or scratch is not None:
                raise
    for name, value in values.items():
        setattr(run, name, value)
    return result


def _advanced(run: ImportRun, batch: Batch, result: Result) -> dict[str, Any]:
    """The run after this batch; the error file is written up to the same point."""
    lines = [as_error_line(refusal, run.file_name) for refusal in result.refusals]
    size = uploads.ErrorFile(run.pk).append(lines, run.report.get("error_bytes", 0))
    return {
        "rows_done": run.rows_done + len(batch.parsed),
        "bytes_done": min(batch.offset, run.size),
        "added": run.added + result.added,
        "known": run.known + result.known,
        "refused": run.refused + len(result.refusals),
        "report": _merged_report(run.report, result, size),
        "heartbeat_at": timezone.now(),
    }


def _merged_report(report: dict[str, Any], result: Result, error_bytes: int) -> dict[str, Any]:
    rows = dict(report.get("contestants", {}))
    for label, count in result.contestants.items():
        if label in rows or len(rows) < CONTESTANTS:
            rows[label] = rows.get(label, 0) + count
    codes = dict(report.get("codes", {}))
    for refusal in result.refusals:
        codes[refusal.code] = codes.get(refusal.code, 0) + 1
    refusals = [*report.get("refusals", ()), *map(as_record, result.refusals)]
    return {
        **report,
        "sealed": report.get("sealed", 0) + result.sealed,
        "contestants": rows,
        "codes": codes,
        "refusals": refusals[:FIRST_REFUSALS],
        "error_bytes": error_bytes,
    }


def _fenced_update(run: ImportRun, **values: Any) -> None:
    """Change the run only while it is ours; otherwise undo the transaction."""
    mine = ImportRun.objects.filter(
        pk=run.pk, state=ImportState.RUNNING, heartbeat_at=run.heartbeat_at
    )
    if not mine.update(**values):
        raise TakenOverError


def _choose_samples(
    samples: list[tuple[str, dict[str, str]]],
) -> list[tuple[str, dict[str, str]]]:
    """A few rows by the hash of their text, which tells nothing about their order in the file."""
    return heapq.nsmallest(SAMPLES, samples, key=lambda sample: sample[0])


def _keep_samples(run: ImportRun, samples: list[tuple[str, dict[str, str]]]) -> None:
    """Where the file has one contestant only, an answer beside its name would tell its maker."""
    several = len(run.report.get("contestants", {})) > 1
    shown = [s if several else {**s, "answer": ""} for _digest, s in samples]
    uploads.write_samples(run.pk, shown)


def _finish(run: ImportRun) -> None:
    with transaction.atomic():
        _fenced_update(run, state=ImportState.DONE, bytes_done=run.size)
        if not run.dry_run:
            audit.record(
                actor=run.created_by,
                action="import_done",
                obj=run,
                added=run.added,
                known=run.known,
                sealed=run.report.get("sealed", 0),
                refused=run.refused,
            )
    if not run.dry_run and "check" in run.report:
        uploads.discard(run.report["check"])


def _fail(run: ImportRun, error: FormatError) -> None:
    """Kept with its code, so that the page can say it in the reader's language."""
    report = {**run.report, "failure": {"code": error.code, "params": error.params}}
    ImportRun.objects.filter(pk=run.pk, state=ImportState.RUNNING).update(
        state=ImportState.FAILED, message=explain_file(error)[:300], report=report
    )


# Stopping, going on, repairing


def cancel_import(*, actor: Any, run: ImportRun) -> None:
    """Stop a run after the batch in work, or drop a checked upload. What was imported stays."""
    check_may_import(actor)
    stoppable = Q(state__in=[ImportState.UPLOADED, ImportState.RUNNING]) | Q(
        state__in=[ImportState.DONE, ImportState.FAILED], dry_run=True
    )
    with transaction.atomic():
        run = ImportRun.objects.select_for_update().get(pk=run.pk)
        if str(run.pk) in _checks_in_use():
            raise Refused(
                _("An import of this file is not finished. Cancel the import first."),
                code="in_use",
            )
        changed = ImportRun.objects.filter(stoppable, pk=run.pk).update(state=ImportState.CANCELLED)
        if changed:
            audit.record(actor=actor, action="cancel_import", obj=run)
    if changed and run.dry_run:
        uploads.discard(run.pk)


def _checks_in_use() -> set[str]:
    """Checks whose upload an import still reads or may go on with after a failure."""
    unfinished = [ImportState.UPLOADED, ImportState.RUNNING, ImportState.FAILED]
    runs = ImportRun.objects.filter(key__startswith=CHECK, state__in=unfinished)
    return {str(key).removeprefix(CHECK) for key in runs.values_list("key", flat=True)}


def resume_import(*, actor: Any, run: ImportRun) -> None:
    """Go on with a failed or cancelled import where it stopped; its failure is forgotten."""
    check_may_import(actor)
    with transaction.atomic():
        run = ImportRun.objects.select_for_update().get(pk=run.pk)
        if run.state in (ImportState.FAILED, ImportState.CANCELLED):
            run.state, run.heartbeat_at, run.message = ImportState.RUNNING, None, ""
            run.report = {name: said for name, said in run.report.items() if name != "failure"}
            run.save(update_fields=["state", "heartbeat_at", "message", "report"])
            audit.record(actor=actor, action="resume_import", obj=run)
            enqueue("run_import", run.pk)


def repair_imports() -> int:
    """Send runs again whose process is gone; drop uploads that nobody started (beat)."""
    now = timezone.now()
    silent = Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    runs = ImportRun.objects.filter(silent, state=ImportState.RUNNING)
    waiting = list(runs.order_by("pk").values_list("pk", flat=True)[:100])
    for pk in waiting:
        enqueue("run_import", pk)
    old = ImportRun.objects.filter(created_at__lt=now - UPLOADS_KEPT, dry_run=True).exclude(
        state__in=[ImportState.RUNNING, ImportState.CANCELLED]
    )
    for run in old.exclude(pk__in=_checks_in_use())[:100]:
        uploads.discard(run.pk)
        ImportRun.objects.filter(pk=run.pk).update(state=ImportState.CANCELLED)
    return len(waiting)
