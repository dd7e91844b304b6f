"""The work of an import: batch by batch until the end of the file.

The row of the run is the truth. A batch, its counts and `rows_done` are one transaction, so that a
killed import goes on where the last commit left it. `heartbeat_at` is also the fence: every commit
names the heartbeat it saw last, and a process that was taken over finds another one and stops.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import DatabaseError, OperationalError, transaction
from django.db.models import Q
from django.utils import timezone

from webapp.catalog import uploads
from webapp.catalog.enums import ImportState
from webapp.catalog.formats.rows import FormatError
from webapp.catalog.models import ImportRun
from webapp.catalog.refusals import as_record, explain_file
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.importers import AnyBatch, Importer, Sample, Stored, importer_of
from webapp.core import audit

STALE = timedelta(seconds=30)  # no commit for so long: the process is gone
LOST_LIMIT = 3  # processes lost after the same row: the next would be, too
SAMPLES, FIRST_REFUSALS, TALLY_LIMIT = 6, 20, 1000
Progress = Callable[[ImportRun], None]


class TakenOverError(Exception):
    """Another process goes on with this run, or it was cancelled."""


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
    found = mine.first()
    if found is None:
        return None
    lost = 0 if take_over else _count_lost(found)
    mine = mine.filter(heartbeat_at=found.heartbeat_at)
    if not mine.update(heartbeat_at=now, lost=lost, lost_at=found.rows_done):
        return None
    run = ImportRun.objects.select_related("created_by").get(pk=pk)
    if lost >= LOST_LIMIT:
        _fail(run, FormatError("lost", times=lost, row=found.rows_done))
        return None
    if run.dry_run:  # a dry run remembers the rows before, so it begins anew
        run.rows_done = run.bytes_done = run.added = run.known = run.refused = 0
        run.report = {}
    return run


def _count_lost(found: ImportRun) -> int:
    """How many processes in a row never came beyond the row where this one is."""
    if found.heartbeat_at is None:  # new, or a person let it go on
        return 0
    return found.lost + 1 if found.lost_at == found.rows_done else 1


def _process(run: ImportRun, progress: Progress | None) -> None:
    path, importer = Path(run.path), importer_of(run.kind)
    if uploads.file_sha256(path) != run.sha256:
        raise FormatError("changed")
    keeps = run.dry_run or importer.remembers
    scratch = Scratch(uploads.folder(run.pk) / "scratch") if keeps else nullcontext(None)
    samples: list[Sample] = []
    with path.open("rb") as stream, scratch as notes:
        for batch in importer.batches(run, stream, notes):
            result = _commit(importer, run, batch, notes)
            if run.dry_run:
                samples = _choose_samples(samples + result.samples)
            if progress is not None:
                progress(run)
    if run.dry_run:
        uploads.write_samples(run.pk, importer.shown_samples(run, samples))


def _commit(importer: Importer, run: ImportRun, batch: AnyBatch, scratch: Scratch | None) -> Stored:
    """A batch in one transaction; tried again where the database ended a deadlock."""
    for attempt in range(3):
        try:
            with scratch.step() if scratch else nullcontext(), transaction.atomic():
                result = importer.store(batch, run, scratch)
                values = _advanced(importer, run, batch, result)
                _fenced_update(run, **values)
            break
        except OperationalError:
            if attempt == 2:
                raise
    for name, value in values.items():
        setattr(run, name, value)
    return result


def _advanced(
    importer: Importer, run: ImportRun, batch: AnyBatch, result: Stored
) -> dict[str, Any]:
    """The run after this batch; the error file is written up to the same point."""
    lines = [importer.error_line(refusal, run) for refusal in result.refusals]
    size = uploads.ErrorFile(run.pk).append(lines, run.report.get("error_bytes", 0))
    return {
        "format": run.format,
        "rows_done": run.rows_done + len(batch.parsed),
        "bytes_done": min(batch.offset, run.size),
        "added": run.added + result.added,
        "known": run.known + result.known,
        "refused": run.refused + len(result.refusals),
        "report": _merged_report(run.report, result, size),
        "heartbeat_at": timezone.now(),
    }


def _merged_report(report: dict[str, Any], result: Stored, error_bytes: int) -> dict[str, Any]:
    merged = dict(report)
    for name, count in result.counts.items():
        merged[name] = merged.get(name, 0) + count
    codes: dict[str, int] = {}
    for refusal in result.refusals:
        codes[refusal.code] = codes.get(refusal.code, 0) + 1
    for name, tally in {**result.tallies, "codes": codes}.items():
        merged[name] = _merged_tally(merged.get(name, {}), tally)
    refusals = [*report.get("refusals", ()), *map(as_record, result.refusals)]
    return {**merged, "refusals": refusals[:FIRST_REFUSALS], "error_bytes": error_bytes}


def _merged_tally(known: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    """Both added up; beyond the limit new names are left out."""
    merged = dict(known)
    for name, count in more.items():
        if name in merged or len(merged) < TALLY_LIMIT:
            merged[name] = merged.get(name, 0) + count
    return merged


def _fenced_update(run: ImportRun, **values: Any) -> None:
    """Change the run only while it is ours; otherwise undo the transaction."""
    mine = ImportRun.objects.filter(
        pk=run.pk, state=ImportState.RUNNING, heartbeat_at=run.heartbeat_at
    )
    if not mine.update(**values):
        raise TakenOverError


def _choose_samples(samples: list[Sample]) -> list[Sample]:
    """A few rows by the hash of their text, which tells nothing about their order in the file."""
    return heapq.nsmallest(SAMPLES, samples, key=lambda sample: sample[0])


def _finish(run: ImportRun) -> None:
    with transaction.atomic():
        _fenced_update(run, state=ImportState.DONE, bytes_done=run.size, format=run.format)
        if not run.dry_run:
            audit.record(
                actor=run.created_by,
                action="import_done",
                obj=run,
                added=run.added,
                known=run.known,
                refused=run.refused,
                **importer_of(run.kind).finish(run),
            )
    if not run.dry_run and "check" in run.report:
        uploads.discard(run.report["check"])


def _fail(run: ImportRun, error: FormatError) -> None:
    """Kept with its code, so that the page can say it in the reader's language."""
    report = {**run.report, "failure": {"code": error.code, "params": error.params}}
    ImportRun.objects.filter(pk=run.pk, state=ImportState.RUNNING).update(
        state=ImportState.FAILED,
        message=explain_file(error)[:300],
        report=report,
        format=run.format,
    )
