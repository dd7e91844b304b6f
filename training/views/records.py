"""Imported records: upload, check with a preview, start, watch, result, refused rows."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.enums import Kind
from training.forms.datasets import RecordsForm
from training.selectors.datasets import record_imports
from training.services.records import receive_records
from webapp.accounts.access import admin_only
from webapp.catalog import uploads
from webapp.catalog.models import ImportRun
from webapp.catalog.selectors import started_from, view_import
from webapp.catalog.services import imports as services
from webapp.core.errors import InvalidInput

PER_PAGE = 30


def one(pk: int) -> ImportRun:
    return get_object_or_404(record_imports(), pk=pk)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def records(request: HttpRequest) -> HttpResponse:
    """The imports so far, and a file to upload. It is checked; nothing is imported yet."""
    form = RecordsForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        sent = form.cleaned_data["file"]
        try:
            run = receive_records(
                actor=request.user,
                name=sent.name,
                chunks=sent.chunks(),
                kind=form.cleaned_data["kind"],
                key=str(form.cleaned_data["key"]),
            )
        except InvalidInput as error:
            form.add_error("file", str(error))
        else:
            return redirect("training:record_import", pk=run.pk)
    page = Paginator(record_imports(), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "tab": "records",
        "form": form,
        "page": page,
        "runs": [(view_import(run), Kind(run.format).label) for run in page.object_list],
    }
    return render(request, "training/records.html", context, status=422 if form.errors else 200)


@admin_only
@never_cache
@require_GET
def record_import(request: HttpRequest, pk: int) -> HttpResponse:
    """Progress while it runs, then the preview (of a check) or the result."""
    return render(request, "training/record_import.html", _context(pk))


@admin_only
@never_cache
@require_GET
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress alone, asked every two seconds; when the work is done, the whole page."""
    context = _context(pk)
    if not context["run"].running:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = reverse("training:record_import", args=[pk])
        return response
    return render(request, "components/progress.html", context["progress"])


def _context(pk: int) -> dict[str, Any]:
    run = one(pk)
    shown = view_import(run)
    percent = 100 * shown.bytes_done // (shown.size or 1)
    progress = {
        "id": "import-progress",
        "label": _("Checking the file") if run.dry_run else _("Importing"),
        "value": shown.bytes_done,
        "max": shown.size,
        "text": _("%(rows)s rows, %(percent)s %%") % {"rows": shown.rows_done, "percent": percent},
        "poll_url": reverse("training:record_progress", args=[pk]) if shown.running else "",
    }
    return {
        "tab": "records",
        "run": shown,
        "kind": Kind(run.format),
        "progress": progress,
        "started": started_from(run) if run.dry_run else None,
    }


@admin_only
@require_POST
def start(request: HttpRequest, pk: int) -> HttpResponse:
    run = services.start_import(actor=request.user, check=one(pk))
    return redirect("training:record_import", pk=run.pk)


@admin_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    services.cancel_import(actor=request.user, run=one(pk))
    messages.success(request, _("The import is cancelled."))
    return redirect("training:record_import", pk=pk)


@admin_only
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    services.resume_import(actor=request.user, run=one(pk))
    return redirect("training:record_import", pk=pk)


@admin_only
@never_cache
@require_GET
def errors(request: HttpRequest, pk: int) -> HttpResponse:
    """The refused rows as JSON Lines."""
    path = uploads.errors_path(one(pk).pk)
    if not path.exists():
        raise Http404
    response = FileResponse(
        path.open("rb"),
        as_attachment=True,
        filename=f"import-{pk}-refused.jsonl",
        content_type="application/x-ndjson; charset=utf-8",
    )
    return cast(HttpResponse, response)
