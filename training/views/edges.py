"""Edge cases, baselines and answers to requests for an override."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from training.enums import EdgeSource
from training.forms.gates import CaseForm, PromoteForm
from training.models import EdgeCase, OverrideRequest, TrainingRun
from training.selectors import gates as pages
from training.selectors.complaints import complaints
from training.services import edges, promotions
from training.views.gates import put_error, status_of
from webapp.accounts.access import admin_only
from webapp.core.errors import PalateError
from webapp.core.http import whole_number

PER_PAGE = 60


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def edge_list(request: HttpRequest) -> HttpResponse:
    """Cases that every gate asks about; a new one by hand."""
    form = CaseForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            edges.add_case(actor=request.user, **form.cleaned_data)
        except PalateError as error:
            put_error(form, error)
        else:
            messages.success(request, _("Every gate asks about it from now on."))
            return redirect("training:edges")
    source, retired = request.GET.get("source", ""), bool(request.GET.get("retired"))
    cases = pages.edge_cases(source, retired)
    page = Paginator(cases, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "tab": "edges",
        "page": page,
        "rows": pages.edge_rows(list(page.object_list)),
        "sources": EdgeSource.choices,
        "source": source,
        "retired": retired,
        "form": form,
        "complaints": complaints(),
    }
    return render(request, "training/edges.html", context, status=status_of(form))


@admin_only
@require_POST
def retire(request: HttpRequest, pk: int) -> HttpResponse:
    edges.retire_case(actor=request.user, case=get_object_or_404(EdgeCase, pk=pk))
    return redirect("training:edges")


@admin_only
@require_POST
def keep_complaint(request: HttpRequest, item: int) -> HttpResponse:
    """A complaint that was found just becomes a case."""
    try:
        edges.keep_complaint(actor=request.user, item=item)
    except PalateError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Every gate asks about it from now on."))
    return redirect("training:edges")


@admin_only
@require_POST
def keep_rollout(request: HttpRequest, pk: int) -> HttpResponse:
    """What an answer of a run failed at becomes a case."""
    run = get_object_or_404(TrainingRun, pk=pk)
    offset, step = (whole_number(request.POST.get(name)) for name in ("offset", "step"))
    if offset is None:
        raise BadRequest("offset")
    try:
        edges.keep_rollout(
            actor=request.user, run=run, offset=offset, reason=request.POST.get("reason", "")[:300]
        )
    except PalateError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Every gate asks about it from now on."))
    asked = f"?step={step or 0}" + ("&evaluation=1" if request.POST.get("evaluation") else "")
    return redirect(reverse("training:run_samples", args=[pk]) + asked)


@admin_only
@require_POST
def answer_override(request: HttpRequest, pk: int) -> HttpResponse:
    """Agree or decline; nobody answers his own request."""
    asked = get_object_or_404(OverrideRequest, pk=pk)
    if request.POST.get("agreed") not in ("0", "1"):
        raise BadRequest("agreed")
    agreed = request.POST["agreed"] == "1"
    try:
        made = promotions.answer_override(actor=request.user, asked=asked, agreed=agreed)
    except PalateError as error:
        messages.error(request, str(error))
    else:
        said = _("“%(name)s” is a contestant now.") % {"name": made} if made else _("Declined.")
        messages.success(request, said)
    return redirect("training:gates")


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def baseline(request: HttpRequest, pk: int) -> HttpResponse:
    """A model that no reward has trained becomes a contestant, marked as a baseline."""
    run = get_object_or_404(TrainingRun, pk=pk)
    form = PromoteForm(request.POST or None, initial={"name": run.name[:120]})
    if request.method == "POST" and form.is_valid():
        try:
            made = promotions.promote_baseline(actor=request.user, run=run, **form.cleaned_data)
        except PalateError as error:
            put_error(form, error)
        else:
            said = _("“%(name)s” is a contestant now.") % {"name": made}
            messages.success(request, said)
            return redirect("training:run", pk)
    context = {"tab": "gates", "run": run, "form": form}
    return render(request, "training/baseline.html", context, status=status_of(form))
