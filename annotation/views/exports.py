"""Exports of a project: what there is, counting beforehand, starting, watching, downloading."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.forms.errors import point_at
from annotation.forms.exports import ExportForm
from annotation.models import ExportRun, Project
from annotation.selectors.export_runs import (
    RunView,
    counted_outcomes,
    runs_of,
    view_preview,
    view_run,
)
from annotation.selectors.export_words import FORMATS, PHASES
from annotation.services import exports as services
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput

PER_PAGE = 20
TYPES = {
    ".jsonl": "application/x-ndjson; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".zip": "application/zip",
}


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def exports(request: HttpRequest, pk: int) -> HttpResponse:
    """The form and the runs so far. `do=count` shows what would leave; else the export starts."""
    project = get_object_or_404(Project, pk=pk)
    form = ExportForm(request.POST or None, project=project)
    counted: dict[str, Any] | None = None
    if request.method == "POST" and form.is_valid():
        try:
            if request.POST.get("do") == "count":
                counted = _count(request, project, form)
            else:
                run = services.start_export(
                    actor=request.user,
                    project=project,
                    options=form.options(),
                    key=str(form.cleaned_data["key"]),
                )
                return redirect("annotation:export", pk=pk, run=run.pk)
        except InvalidInput as error:
            point_at(form, error)
    page = Paginator(runs_of(project), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "project": project,
        "tab": "exports",
        "form": form,
        "counted": counted,
        "outcomes": counted_outcomes(project),
        "page": page,
        "runs": [(run, FORMATS.get(run.format, run.format)) for run in page.object_list],
    }
    return render(request, "annotation/exports.html", context, status=422 if form.errors else 200)


def _count(request: HttpRequest, project: Project, form: ExportForm) -> dict[str, Any]:
    options = services.read_options(form.options())
    return view_preview(services.preview(actor=request.user, project=project, options=options))


@admin_only
@never_cache
@require_GET
def export(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    """Progress while it runs, then what came of it."""
    row = _run(pk, run)
    shown = view_run(row)
    context = {"project": row.project, "tab": "exports", "run": shown, "progress": _progress(shown)}
    return render(request, "annotation/export_run.html", context)


@admin_only
@never_cache
@require_GET
def export_progress(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    """The progress alone, asked every two seconds; when the work is done, the whole page."""
    shown = view_run(_run(pk, run))
    if not shown.running:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = reverse("annotation:export", args=[pk, run])
        return response
    return render(request, "components/progress.html", _progress(shown))


def _progress(run: RunView) -> dict[str, Any]:
    known = run.phase == "write"
    text = _("%(done)s of %(total)s rows") % {"done": run.rows_done, "total": run.rows_total}
    return {
        "id": "export-progress",
        "label": PHASES.get(run.phase, PHASES["plan"]),
        "value": run.rows_done,
        "max": run.rows_total if known else 0,
        "text": text if known else "",
        "poll_url": reverse("annotation:export_progress", args=[run.project, run.pk]),
    }


@admin_only
@require_POST
def export_cancel(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    services.cancel_export(actor=request.user, run=_run(pk, run))
    messages.success(request, _("The export is cancelled."))
    return redirect("annotation:export", pk=pk, run=run)


@admin_only
@never_cache
@require_GET
def export_download(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    path = services.download_path(_run(pk, run))
    response = FileResponse(
        path.open("rb"),
        as_attachment=True,
        filename=path.name,
        content_type=TYPES.get(path.suffix, "application/octet-stream"),
    )
    return cast(HttpResponse, response)


def _run(pk: int, run: int) -> ExportRun:
    rows = ExportRun.objects.select_related("project", "created_by")
    return get_object_or_404(rows, pk=run, project=pk)
