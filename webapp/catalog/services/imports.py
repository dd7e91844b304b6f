"""The life of an import: uploaded, checked, started, stopped, sent again.

What it does batch by batch stands in `import_work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.catalog import uploads
from webapp.catalog.enums import ImportState
from webapp.catalog.formats.rows import FormatError
from webapp.catalog.models import ImportRun
from webapp.catalog.refusals import explain_file
from webapp.catalog.services.answers_import import AnswersImporter
from webapp.catalog.services.import_work import STALE
from webapp.catalog.services.import_work import run_import as run_import  # for its callers
from webapp.catalog.services.importers import importer_of, register
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.jobs import enqueue

UPLOADS_KEPT = timedelta(days=7)  # uploads that nobody starts
CHECK = "check:"  # the key of an import says from which check it was started
ANSWERS = AnswersImporter.kind
ZERO: dict[str, Any] = {
    "rows_done": 0,
    "bytes_done": 0,
    "added": 0,
    "known": 0,
    "refused": 0,
    "report": {},
    "message": "",
    "heartbeat_at": None,
}

register(AnswersImporter())


# Making runs


def receive_upload(
    *,
    actor: Any,
    name: str,
    chunks: Iterable[bytes],
    format: str = "",
    key: str,
    kind: str = ANSWERS,
    subject: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> ImportRun:
    """Keep an upload and check it in the background. The same `key` gives the same run."""
    importer = importer_of(kind)
    importer.check_actor(actor, subject)
    run, created = _make_once(
        key=key,
        kind=kind,
        subject=subject,
        options=dict(options or {}),
        format=format,
        file_name=uploads.clean_name(name),
        dry_run=True,
        created_by=actor,
    )
    if not created:
        return run
    try:
        path, size, digest = uploads.save_upload(run.pk, chunks)
        chosen = importer.accept(path, format)
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
    importer_of(check.kind).check_actor(actor, check.subject)
    with transaction.atomic():
        check = ImportRun.objects.select_for_update().get(pk=check.pk)
        if not check.dry_run or check.state != ImportState.DONE:
            raise Refused(_("Only a file that was checked can be imported."), code="state")
        run, created = _make_once(
            key=f"{CHECK}{check.pk}",
            kind=check.kind,
            subject=check.subject,
            options=check.options,
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


def recheck_import(
    *, actor: Any, run: ImportRun, format: str, options: Mapping[str, Any]
) -> ImportRun:
    """Check an upload again, read in another way. Refused once an import was started from it."""
    importer_of(run.kind).check_actor(actor, run.subject)
    checkable = [ImportState.DONE, ImportState.FAILED]
    with transaction.atomic():
        row = ImportRun.objects.select_for_update().get(pk=run.pk)
        started = ImportRun.objects.filter(key=f"{CHECK}{row.pk}").exists()
        if not row.dry_run or row.state not in checkable or started:
            raise Refused(_("This file cannot be checked again."), code="state")
        uploads.forget_check(row.pk)
        values = {**ZERO, "format": format, "options": dict(options), "state": ImportState.RUNNING}
        ImportRun.objects.filter(pk=row.pk).update(**values)
        audit.record(actor=actor, action="recheck", obj=row, format=format, options=dict(options))
        enqueue("run_import", row.pk)
    row.refresh_from_db()
    return row


def open_run(
    *,
    path: Path,
    format: str = "",
    user: Any = None,
    dry_run: bool = False,
    kind: str = ANSWERS,
    subject: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> ImportRun:
    """A run for a file on this machine: an interrupted one of the same file, or a new one."""
    importer = importer_of(kind)
    importer.check_actor(user, subject)
    said: dict[str, Any] = {
        "kind": kind,
        "subject": subject,
        "options": dict(options or {}),
        "path": str(path.resolve()),
        "sha256": uploads.file_sha256(path),
        "dry_run": dry_run,
        "created_by": user,
    }
    chosen = importer.accept(path, format)
    told = {"format": chosen} if chosen else {}  # else the job tells it
    for run in ImportRun.objects.filter(state=ImportState.RUNNING, **said, **told):
        with uploads.alive(run.pk) as free:
            if free:
                return run
    with transaction.atomic():
        run = ImportRun.objects.create(
            file_name=uploads.clean_name(path.name),
            size=path.stat().st_size,
            state=ImportState.RUNNING,
            heartbeat_at=timezone.now(),
            format=chosen,
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


# Stopping, going on, repairing


def cancel_import(*, actor: Any, run: ImportRun) -> None:
    """Stop a run after the batch in work, or drop a checked upload. What was imported stays."""
    importer_of(run.kind).check_actor(actor, run.subject)
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
    importer_of(run.kind).check_actor(actor, run.subject)
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
