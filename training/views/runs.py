"""One run: its page, the live part of it, answers, values as a table, files, and what people do."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from training.enums import RunState
from training.models import Alert, TrainingRun
from training.policies import may_move_run
from training.selectors import along, evidence_pages
from training.selectors.queue import queue_position
from training.selectors.run_pages import alerts as alert_pages
from training.selectors.run_pages import curves as curve_pages
from training.selectors.run_pages import facts, files, lists, quantisation, tables
from training.services import runs as services
from training.storage import directory
from webapp.accounts.access import admin_only
from webapp.core import audit
from webapp.core.http import whole_number


def one(pk: int) -> TrainingRun:
    related = ("created_by", "parent", "from_alert__run", "device")
    return get_object_or_404(TrainingRun.objects.select_related(*related), pk=pk)


@admin_only
@never_cache
@require_GET
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Everything about one run. The live part alone is asked again while it works."""
    row = one(pk)
    found, said = curve_pages.read_curves(row.pk), list(row.alerts.order_by("step", "pk"))
    step = whole_number(request.GET.get("step"))
    context: dict[str, Any] = {
        **live_context(row, found, said),
        **alerts_context(row, found, said),
        **more_context(row, found, said),
        "tab": "runs",
        "may_cancel": not lists.finished(row) and row.state != RunState.STOPPING,
        "may_resume": lists.finished(row) and may_move_run(row, RunState.QUEUED),
        "failure": facts.failure(row),
        "measured": facts.measured(row),
        **quantisation.context(row),
        **along.context(row),
        "story": facts.story(row),
        "evaluations": facts.evaluations(row, found),
        "answers": files.answers(row, step, bool(request.GET.get("evaluation"))),
        "inputs": facts.input_rows(row),
        "users": facts.users_of(row),
        "contestants": evidence_pages.evidence_of_run(row.pk),
        "clones": list(row.clones.order_by("pk")[:50]),
        "checkpoints": facts.checkpoints_of(row),
        "settings": facts.setting_rows(row),
        "versions": facts.versions(row),
        "files": files.available(row),
    }
    return render(request, "training/run.html", context)


@admin_only
@never_cache
@require_GET
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """State and pinned curves, asked every few seconds; `part` names a slower one.

    When the run ended, the whole page is loaded again.
    """
    row = one(pk)
    if lists.finished(row):
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    said = list(row.alerts.order_by("step", "pk"))
    part = request.GET.get("part", "")
    template, context, names_of = PARTS.get(part, PARTS[""])
    found = curve_pages.read_curves(row.pk, names_of(row, said))
    return render(request, template, context(row, found, said))


def live_context(row: TrainingRun, found: curve_pages.Curves, said: list[Alert]) -> dict[str, Any]:
    """The part that changes from step to step."""
    return {
        "run": row,
        "row": lists.run_row(row, queue_position(row)),
        "device": getattr(row, "device", None),
        "left": lists.left(row),
        "pinned": curve_pages.pinned(row, found, said),
        "alert_count": len(said),
        "polled": not lists.finished(row),
    }


def alerts_context(
    row: TrainingRun, found: curve_pages.Curves, said: list[Alert]
) -> dict[str, Any]:
    """Alerts with their evidence and proposals."""
    cards = alert_pages.alert_cards(row, said, found)
    return {"run": row, "alerts": cards, "polled": not lists.finished(row)}


def more_context(row: TrainingRun, found: curve_pages.Curves, said: list[Alert]) -> dict[str, Any]:
    """Every curve that is not pinned."""
    sections = curve_pages.sections(row, found, said)
    return {"run": row, "sections": sections, "polled": not lists.finished(row)}


# Template, context, and the names of the curves that are needed (none: all).
PARTS: dict[str, tuple[str, Any, Any]] = {
    "": (
        "training/_run_live.html",
        live_context,
        lambda row, _said: curve_pages.PINNED.get(row.kind, ()),
    ),
    "alerts": (
        "training/_run_alerts.html",
        alerts_context,
        lambda _row, said: alert_pages.curves_of(said) or ("reward",),
    ),
    "more": ("training/_run_more.html", more_context, lambda _row, _said: ()),
}


@admin_only
@never_cache
@require_GET
def samples(request: HttpRequest, pk: int) -> HttpResponse:
    """The answers of one step on a page of their own; within the run page only their part."""
    row = one(pk)
    step = whole_number(request.GET.get("step"))
    context = {
        "tab": "runs",
        "run": row,
        "answers": files.answers(row, step, bool(request.GET.get("evaluation"))),
    }
    part = request.headers.get("HX-Target") == "answers"
    page = "training/_run_answers.html" if part else "training/run_samples.html"
    return render(request, page, context)


@admin_only
@never_cache
@require_GET
def values(request: HttpRequest, pk: int) -> HttpResponse:
    """The curves as numbers, for whoever reads them better so."""
    row = one(pk)
    table = tables.values_table(curve_pages.read_curves(row.pk), request.GET.get("of", ""))
    return render(request, "training/run_values.html", {"tab": "runs", "run": row, "table": table})


@admin_only
@never_cache
@require_GET
def file(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """A file of the run directory as it is. Only known names are served."""
    row = one(pk)
    if name not in dict(files.available(row)):
        raise Http404
    audit.record(actor=request.user, action="download_run_file", obj=row, file=name)
    if name == files.BOARDS:
        response = HttpResponse(files.boards(row), content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="run-{row.pk}-{name}"'
        return response
    path = directory(row.directory) / name
    content_type = f"{files.FILES[name]}; charset=utf-8"
    return cast(
        HttpResponse,
        FileResponse(path.open("rb"), as_attachment=True, filename=f"run-{row.pk}-{name}",
                     content_type=content_type),
    )  # fmt: skip


# What people do


@admin_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    services.cancel(actor=request.user, run=one(pk))
    messages.success(request, _("The run ends at its next step and keeps a checkpoint."))
    return redirect("training:run", pk=pk)


@admin_only
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    services.resume(actor=request.user, run=one(pk))
    messages.success(request, _("The run waits in the queue and goes on from its checkpoint."))
    return redirect("training:run", pk=pk)


@admin_only
@require_POST
def note(request: HttpRequest, pk: int) -> HttpResponse:
    services.annotate(actor=request.user, run=one(pk), note=request.POST.get("note", ""))
    messages.success(request, _("The note is saved."))
    return redirect("training:run", pk=pk)


@admin_only
@require_POST
def pin(request: HttpRequest, pk: int) -> HttpResponse:
    services.pin(actor=request.user, run=one(pk), pinned=request.POST.get("pinned") == "1")
    return redirect("training:run", pk=pk)


@admin_only
@require_POST
def clone(request: HttpRequest, pk: int) -> HttpResponse:
    """A new run with what an alert or a failure proposes, and nothing else changed."""
    row = one(pk)
    number = whole_number(request.POST.get("alert"))
    alert = get_object_or_404(Alert, pk=number, run=row) if number is not None else None
    made = services.clone(
        actor=request.user,
        run=row,
        changes=alert.changes if alert else row.changes,
        key=request.POST.get("key") or None,
        from_alert=alert,
    )
    messages.success(request, _("“%(name)s” waits in the queue.") % {"name": made.name})
    return redirect("training:run", pk=made.pk)
