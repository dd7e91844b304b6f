"""Imports of pairs: upload, check with a preview, start, watch, result, refused rows."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.forms.errors import point_at
from annotation.forms.imports import CheckForm, PairUploadForm
from annotation.models import Project
from annotation.selectors.imports import KIND, PairsView, error_lines, runs_of, view_run
from annotation.services.imports import check_options
from webapp.accounts.access import admin_only
from webapp.catalog import uploads
from webapp.catalog.models import ImportRun
from webapp.catalog.selectors import started_from
from webapp.catalog.services import imports as services
from webapp.core.errors import InvalidInput

PER_PAGE = 20
TAB = "items"


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a file and check it; nothing is imported yet. Below: the imports so far."""
    project = get_object_or_404(Project, pk=pk)
    form = PairUploadForm(request.POST or None, request.FILES or None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            run = _receive(request, project, form)
        except InvalidInput as error:
            point_at(form, error, else_at="file")
        else:
            return redirect("annotation:import_run", pk=pk, run=run.pk)
    page = Paginator(runs_of(project), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "project": project,
        "tab": TAB,
        "form": form,
        "page": page,
        "runs": [view_run(run) for run in page.object_list],
    }
    return render(request, "annotation/import.html", context, status=422 if form.errors else 200)


def _receive(request: HttpRequest, project: Project, form: PairUploadForm) -> ImportRun:
    sent = form.cleaned_data["file"]
    return services.receive_upload(
        actor=request.user,
        name=sent.name,
        chunks=sent.chunks(),
        format=form.cleaned_data["format"],
        key=str(form.cleaned_data["key"]),
        kind=KIND,
        subject=project.pk,
        options=check_options(project, form.options()),
    )


@admin_only
@never_cache
@require_GET
def import_run(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    """Progress while it runs, then the preview (of a check) or the result."""
    project, row = _run(pk, run)
    return render(request, "annotation/import_run.html", _context(project, row))


@admin_only
@never_cache
@require_GET
def import_progress(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    """The progress alone, asked every two seconds; when the work is done, the whole page."""
    _project, row = _run(pk, run)
    shown = view_run(row)
    if not shown.base.running:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = reverse("annotation:import_run", args=[pk, run])
        return response
    return render(request, "components/progress.html", _progress(pk, shown))


def _run(pk: int, run: int) -> tuple[Project, ImportRun]:
    project = get_object_or_404(Project, pk=pk)
    return project, get_object_or_404(runs_of(project), pk=run)


def _context(project: Project, row: ImportRun, form: CheckForm | None = None) -> dict[str, Any]:
    shown = view_run(row)
    started = started_from(row) if row.dry_run else None
    may_check = row.dry_run and not shown.base.running and started is None
    may_check = may_check and row.state != "cancelled"
    return {
        "project": project,
        "tab": TAB,
        "shown": shown,
        "run": shown.base,
        "progress": _progress(project.pk, shown),
        "started": started,
        "form": form or (CheckForm(run=row, project=project) if may_check else None),
        "open_form": bool(form) or shown.needs_columns or row.format == "columns",
    }


def _progress(pk: int, shown: PairsView) -> dict[str, Any]:
    run = shown.base
    return {
        "id": "import-progress",
        "label": _("Checking the file") if run.dry_run else _("Importing"),
        "value": run.bytes_done,
        "max": run.size,
        "text": _("%(rows)s rows, %(percent)s %%")
        % {"rows": run.rows_done, "percent": 100 * run.bytes_done // (run.size or 1)},
        "poll_url": reverse("annotation:import_progress", args=[pk, run.pk]),
    }


@admin_only
@never_cache
@require_POST
def check_again(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    """Read the uploaded file in another way."""
    project, row = _run(pk, run)
    form = CheckForm(request.POST, run=row, project=project)
    if form.is_valid():
        try:
            options = check_options(project, form.options())
        except InvalidInput as error:
            point_at(form, error)
        else:
            services.recheck_import(
                actor=request.user, run=row, format=form.cleaned_data["format"], options=options
            )
            return redirect("annotation:import_run", pk=pk, run=run)
    context = _context(project, row, form)
    return render(request, "annotation/import_run.html", context, status=422)


@admin_only
@require_POST
def start(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    begun = services.start_import(actor=request.user, check=_run(pk, run)[1])
    return redirect("annotation:import_run", pk=pk, run=begun.pk)


@admin_only
@require_POST
def cancel(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    services.cancel_import(actor=request.user, run=_run(pk, run)[1])
    messages.success(request, _("The import is cancelled."))
    return redirect("annotation:import_run", pk=pk, run=run)


@admin_only
@require_POST
def resume(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    services.resume_import(actor=request.user, run=_run(pk, run)[1])
    return redirect("annotation:import_run", pk=pk, run=run)


@admin_only
@never_cache
@require_GET
def errors(request: HttpRequest, pk: int, run: int) -> HttpResponse:
    """The refused rows as JSON Lines, to be repaired and sent in again."""
    _project, row = _run(pk, run)
    if not uploads.errors_path(row.pk).exists():
        raise Http404
    response = StreamingHttpResponse(
        error_lines(row), content_type="application/x-ndjson; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="import-{row.pk}-refused.jsonl"'
    return cast(HttpResponse, response)
