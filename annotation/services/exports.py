"""The life of an export: asked for, planned, written, proved, published, deleted after a week.

The row of the run is the truth. `heartbeat_at` is the fence: every step names the heartbeat it saw
last, and a process that was taken over finds another one and stops. A run that was interrupted
begins anew: nothing is published before the complete file is renamed into its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import JobState, WebhookEvent
from annotation.exports import columns as column_words
from annotation.exports.options import OptionError, Options, parse
from annotation.models import ExportRun, Item, Project
from annotation.selectors.export_runs import KEPT
from annotation.selectors.items import sealed_since
from annotation.services import export_files as files
from annotation.services.export_plan import Plan, described, make_plan
from annotation.services.export_proof import prove_files
from annotation.services.export_writing import Written, columns_of, pack, write_rows
from annotation.services.webhooks import announce
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.holding import alive
from webapp.core.jobs import enqueue

STALE = timedelta(seconds=30)  # no sign of life for so long: the process is gone
BEAT_S = 1.0  # at most so often
Progress = Callable[[ExportRun], None]

OPTION_ERRORS: dict[str, Any] = {
    "choice": lambda: _("Choose one of the values that are offered."),
    "percentage": lambda: _("A whole percentage from 0 to 100."),
    "shares": lambda: _("Training, validation and test are 100 % together."),
    "number": lambda: _("A whole number from 0 to 2147483647."),
    "unknown": lambda: _("There is no such option."),
    "no_place_for_ties": lambda: _(
        "This format has only pairs of a better and a worse answer. Leave them out here, or choose "
        "single answers with a label."
    ),
}


class TakenOverError(Exception):
    """Another process goes on with this run, or it was cancelled."""


def read_options(values: Mapping[str, Any]) -> Options:
    """Checked options. Raises InvalidInput naming the field."""
    try:
        return parse(values)
    except OptionError as error:
        raise InvalidInput(
            OPTION_ERRORS[error.code](), field=error.field, code=error.code
        ) from None


def preview(*, actor: Any, project: Project, options: Options) -> dict[str, Any]:
    """What an export with these options would hold; nothing is written."""
    policies.check_manage(actor)
    return described(make_plan(project, options))


def start_export(
    *, actor: Any, project: Project, options: Mapping[str, Any], key: str, send: bool = True
) -> ExportRun:
    """Ask for an export in the background. The same `key` gives the same run.

    `actor` None is the operator at the command line, who does the work himself (`send` False).
    """
    if actor is not None:
        policies.check_manage(actor)
    asked = read_options(options)
    if asked.own is False and asked.axis not in project.axes:
        raise InvalidInput(_("This project does not ask for this axis."), field="axis")
    try:
        with transaction.atomic():
            run = ExportRun.objects.create(
                project=project,
                format=asked.format,
                options=asked.as_json(),
                key=key or None,
                created_by=actor,
            )
            audit.record(actor=actor, action="start_export", obj=run, **asked.as_json())
            if send:
                enqueue("run_export", run.pk)
    except IntegrityError as error:
        known = ExportRun.objects.filter(key=key, project=project).first()
        if known is None:
            message = _("This key was used for another project.")
            raise InvalidInput(message, field="key", code="taken") from error
        return known
    return run


# Doing the work


def run_export(
    *, pk: int, take_over: bool = False, progress: Progress | None = None
) -> ExportRun | None:
    """Work on a run until it is done. None where another process has it; harmless to call twice."""
    with alive(f"export-{pk}") as free:
        run = _claim(pk, take_over) if free else None
        if run is None:
            return None
        try:
            _Work(run, progress).do()
        except TakenOverError:
            _tidy(pk)
        except DatabaseError:
            raise  # begun anew by the repair
        except Exception:
            _fail(run)
            _tidy(pk)
            raise
    run.refresh_from_db()
    return run


def _claim(pk: int, take_over: bool) -> ExportRun | None:
    """Compare and set: one process gets the run, unless the one that had it fell silent."""
    now = timezone.now()
    free = Q() if take_over else Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STALE)
    mine = ExportRun.objects.filter(free, pk=pk, state=JobState.RUNNING)
    if not mine.update(heartbeat_at=now, rows_done=0, rows_total=0, report={"phase": "plan"}):
        return None
    return ExportRun.objects.select_related("project", "created_by").get(pk=pk)


class _Work:
    """One attempt at a run, from the plan to the published file."""

    def __init__(self, run: ExportRun, progress: Progress | None) -> None:
        self.run, self.progress = run, progress
        self.options = parse(run.options)
        self.last = time.monotonic()

    def do(self) -> None:
        work = files.fresh_work_folder(self.run.pk)
        plan = make_plan(self.run.project, self.options, self.beat)
        self.update(rows_total=plan.rows, report={"phase": "write"})
        done = write_rows(self.run.project, plan, work, self.wrote)
        self.update(report={"phase": "proof"})
        saved = work / "dataset" if self.options.file_type == "dataset" else None
        proof = prove_files(self.options, done, work, saved, self.beat)
        report = _report(self.options, plan, done, proof)
        if not proof["ok"]:
            self.end(JobState.FAILED, {**report, "failure": "proof"})
            _tidy(self.run.pk)
            return
        self.update(report={**report, "phase": "pack"})
        made, suffix = pack(done, work, saved)
        name = f"{slugify(self.run.project.name)[:60] or 'pairs'}-{self.run.pk}{suffix}"
        path, size, digest = files.publish(work, made, self.run.pk, name)
        self.end(JobState.DONE, report, path=str(path), size=size, sha256=digest)

    def beat(self, _done: int = 0) -> None:
        if time.monotonic() - self.last >= BEAT_S:
            self.update()

    def wrote(self, rows: int) -> None:
        self.run.rows_done = rows
        self.beat()
        if self.progress is not None:
            self.progress(self.run)

    def update(self, **values: Any) -> None:
        """Write down how far it is, only while the run is ours."""
        values = {"rows_done": self.run.rows_done, "heartbeat_at": timezone.now(), **values}
        mine = ExportRun.objects.filter(
            pk=self.run.pk, state=JobState.RUNNING, heartbeat_at=self.run.heartbeat_at
        )
        if not mine.update(**values):
            raise TakenOverError
        self.last = time.monotonic()
        for name, value in values.items():
            setattr(self.run, name, value)

    def end(self, state: str, report: dict[str, Any], **values: Any) -> None:
        with transaction.atomic():
            rows = report["rows"]
            self.update(
                state=state, report=report, finished_at=timezone.now(), rows_done=rows, **values
            )
            audit.record(
                actor=self.run.created_by,
                action="export_done" if state == JobState.DONE else "export_failed",
                obj=self.run,
                rows=rows,
                sha256=values.get("sha256", ""),
            )
            payload = {"export": self.run.pk, "state": state, "rows": rows}
            announce(self.run.project, WebhookEvent.EXPORT_FINISHED, payload)


def _report(options: Options, plan: Plan, done: Written, proof: dict[str, Any]) -> dict[str, Any]:
    """What the page of the run states. Items: in rows, or left out by reason; labels likewise."""
    said = described(plan)
    labels = done.labels + plan.labels_left_out
    left_out = done.left_out + plan.left_out
    return {
        **said,
        "rows": sum(done.rows.values()),
        "by_split": dict(done.rows),
        "kept": plan.kept - done.left_out.total(),
        "left_out": dict(left_out),
        "labels": {"submitted": labels.total(), **labels},
        "without_labels": done.unlabelled,
        "columns": column_words.described(columns_of(options)),
        "proof": proof,
    }


def _fail(run: ExportRun) -> None:
    """What went wrong stands in the log; the page says that it does."""
    ExportRun.objects.filter(
        pk=run.pk, state=JobState.RUNNING, heartbeat_at=run.heartbeat_at
    ).update(state=JobState.FAILED, report={"failure": "unexpected"}, finished_at=timezone.now())


def _tidy(pk: int) -> None:
    files.discard(pk)


# Stopping, repairing, deleting


def cancel_export(*, actor: Any, run: ExportRun) -> None:
    """Stop a run; its process notices within a second or two."""
    policies.check_manage(actor)
    with transaction.atomic():
        mine = ExportRun.objects.filter(pk=run.pk, state=JobState.RUNNING)
        if mine.update(state=JobState.CANCELLED, finished_at=timezone.now()):
            audit.record(actor=actor, action="cancel_export", obj=run)


def download_path(run: ExportRun) -> Path:
    """The published file. Raises Refused where it is not there (any more), or where a round was
    sealed since: the file may name the makers of texts that are secret now (V1)."""
    path = Path(run.path)
    if run.state != JobState.DONE or not run.path or not path.exists():
        raise Refused(_("The file of this export is not kept any more."), code="gone")
    if sealed_since(run.project_id, run.created_at):
        raise Refused(
            _("A round that holds some of these texts was sealed since. Start the export again."),
            code="sealed",
        )
    return path


def repair_exports() -> int:
    """Send runs again whose process is gone, and delete old files (beat)."""
    now = timezone.now()
    silent = Q(heartbeat_at__lt=now - STALE) | Q(heartbeat_at=None, created_at__lt=now - STALE)
    waiting = ExportRun.objects.filter(silent, state=JobState.RUNNING).order_by("pk")
    pks = list(waiting.values_list("pk", flat=True)[:20])
    for pk in pks:
        enqueue("run_export", pk)
    old = ExportRun.objects.filter(finished_at__lt=now - KEPT).exclude(path="")
    for pk in old.values_list("pk", flat=True)[:100]:
        _forget(pk)
    return len(pks)


def _forget(pk: int) -> None:
    files.discard(pk)
    ExportRun.objects.filter(pk=pk).update(path="")


def forget_exports_of(persona: Any) -> int:
    """Delete the files that may hold texts of a persona whose consent is withdrawn (V14).

    Runs in the withdrawal's transaction; a running export begins anew without them.
    """
    runs = ExportRun.objects.filter(
        project__in=persona_projects(persona), state__in=[JobState.RUNNING, JobState.DONE]
    )
    for run in runs.only("pk", "state"):
        if run.state == JobState.RUNNING:
            ExportRun.objects.filter(pk=run.pk).update(heartbeat_at=None)
            enqueue("run_export", run.pk)
        else:
            ExportRun.objects.filter(pk=run.pk).update(path="")
            transaction.on_commit(partial(files.discard, run.pk))
    return 0


def persona_projects(persona: Any) -> QuerySet[Item, int]:
    items = Item.objects.filter(persona_version__persona=persona)
    return items.order_by().values_list("project", flat=True).distinct()
