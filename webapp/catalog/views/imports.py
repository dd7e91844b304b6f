"""Imports: upload, check with a preview, start, watch, result, refused rows."""

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

from webapp.accounts.access import admin_only
from webapp.catalog import selectors, uploads
from webapp.catalog.forms import UploadForm
from webapp.catalog.services import imports as services
from webapp.core.errors import InvalidInput

PER_PAGE = 50


@admin_only
@never_cache
@require_GET
def import_list(request: HttpRequest) -> HttpResponse:
    page = Paginator(selectors.imports(), PER_PAGE).get_page(request.GET.get("page"))
    runs = [selectors.view_import(run) for run in page.object_list]
    return render(request, "catalog/imports.html", {"page": page, "runs": runs})


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """Take a file and check it; nothing is imported yet."""
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        sent = form.cleaned_data["file"]
        try:
            run = services.receive_upload(
                actor=request.user,
                name=sent.name,
                chunks=sent.chunks(),
                format=form.cleaned_data["format"],
                key=str(form.cleaned_data["key"]),
            )
        except InvalidInput as error:
            form.add_error("file", str(error))
        else:
            return redirect("catalog:import_run", pk=run.pk)
    return render(
        request, "catalog/import_upload.html", {"form": form}, status=422 if form.errors else 200
    )


@admin_only
@never_cache
@require_GET
def import_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Progress while it runs, then the preview (of a check) or the result."""
    return render(request, "catalog/import_run.html", _context(pk))


@admin_only
@never_cache
@require_GET
def import_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress alone, asked every two seconds; when the work is done, the whole page."""
    context = _context(pk)
    if not context["run"].running:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = reverse("catalog:import_run", args=[pk])
        return response
    return render(request, "components/progress.html", context["progress"])


def _context(pk: int) -> dict[str, Any]:
    run = get_object_or_404(selectors.imports(), pk=pk)
    shown = selectors.view_import(run)
    progress = {
        "id": "import-progress",
        "label": _("Checking the file") if run.dry_run else _("Importing"),
        "value": shown.bytes_done,
        "max": shown.size,
        "text": _("%(rows)s rows, %(percent)s %%")
        % {"rows": shown.rows_done, "percent": 100 * shown.bytes_done // (shown.size or 1)},
        "poll_url": reverse("catalog:import_progress", args=[pk]) if shown.running else "",
    }
    started = selectors.started_from(run) if run.dry_run else None
    return {"run": shown, "progress": progress, "started": started}


@admin_only
@require_POST
def start(request: HttpRequest, pk: int) -> HttpResponse:
    run = services.start_import(
        actor=request.user, check=get_object_or_404(selectors.imports(), pk=pk)
    )
    return redirect("catalog:import_run", pk=run.pk)


@admin_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    services.cancel_import(actor=request.user, run=get_object_or_404(selectors.imports(), pk=pk))
    messages.success(request, _("The import is cancelled."))
    return redirect("catalog:import_run", pk=pk)


@admin_only
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    services.resume_import(actor=request.user, run=get_object_or_404(selectors.imports(), pk=pk))
    return redirect("catalog:import_run", pk=pk)


@admin_only
@never_cache
@require_GET
def errors(request: HttpRequest, pk: int) -> HttpResponse:
    """The refused rows as JSON Lines."""
    run = get_object_or_404(selectors.imports(), pk=pk)
    path = uploads.errors_path(run.pk)
    if not path.exists():
        raise Http404
    response = FileResponse(
        path.open("rb"),
        as_attachment=True,
        filename=f"import-{run.pk}-refused.jsonl",
        content_type="application/x-ndjson; charset=utf-8",
    )
    return cast(HttpResponse, response)
