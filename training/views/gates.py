"""Gates: the list, a new one, one gate, one verdict, reading successes, promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training import gate_policies
from training.enums import GateState, Verdict
from training.forms.gates import GateForm, MarkForm, OverrideForm, PromoteForm, StartForm
from training.models import GateRun, GateSpec, TrainingRun
from training.quantisation_policies import check_persona_kept
from training.selectors import gates as pages
from training.selectors.along import courses
from training.selectors.audits import liked, sample
from training.selectors.evidence_pages import contestant_of
from training.selectors.run_pages.quantisation import rounded_words
from training.services import along, audits, gates, promotions
from training.words.gates import RULES, explain_failure, reason
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput, PalateError
from webapp.core.http import whole_number

PER_PAGE = 30


@admin_only
@never_cache
@require_GET
def gate_list(request: HttpRequest) -> HttpResponse:
    """All gates, and the newest models that went through one."""
    context = {
        "tab": "gates",
        "specs": pages.gate_list()[:PER_PAGE],
        "runs": pages.newest_runs()[:PER_PAGE],
        "overrides": pages.open_overrides(),
    }
    return render(request, "training/gates.html", context)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new gate; the same form twice makes one."""
    form = GateForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            spec = gates.create_gate(actor=request.user, **form.values())
        except PalateError as error:
            put_error(form, error)
        else:
            return redirect("training:gate", spec.pk)
    context = {"tab": "gates", "form": form}
    return render(request, "training/gate_new.html", context, status=status_of(form))


@admin_only
@never_cache
@require_GET
def gate(request: HttpRequest, pk: int) -> HttpResponse:
    """What one gate demands, and who went through it."""
    related = ("dataset", "baseline", "quality", "personalization")
    spec = get_object_or_404(GateSpec.objects.select_related(*related), pk=pk)
    page = Paginator(pages.newest_runs(spec), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "tab": "gates",
        "spec": spec,
        "page": page,
        "form": StartForm(spec=spec),
        "rules": [(RULES[name][0], value) for name, value in spec.rules.items()],
        "courses": courses(spec=spec),
    }
    return render(request, "training/gate.html", context)


@admin_only
@require_POST
def start(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a model through."""
    spec = get_object_or_404(GateSpec, pk=pk)
    form = StartForm(request.POST, spec=spec)
    if form.is_valid():
        candidate, weights = pages.candidate(form.cleaned_data["candidate"])
        key = form.cleaned_data["key"]
        try:
            run = gates.start_gate(
                actor=request.user, spec=spec, candidate=candidate, key=key, checkpoint=weights
            )
        except PalateError as error:
            messages.error(request, str(error))
        else:
            return redirect("training:gate_run", run.pk)
    else:
        messages.error(request, _("Choose a run."))
    return redirect("training:gate", pk)


@admin_only
@require_POST
def start_along(request: HttpRequest, pk: int) -> HttpResponse:
    """Base, middle and end of a run go through a gate."""
    run = get_object_or_404(TrainingRun, pk=pk)
    spec = get_object_or_404(GateSpec, pk=whole_number(request.POST.get("gate")) or 0)
    try:
        along.gate_along(actor=request.user, spec=spec, run=run)
    except PalateError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Base, middle and end are being measured."))
    return redirect("training:run", pk)


@admin_only
@never_cache
@require_GET
def gate_run(request: HttpRequest, pk: int) -> HttpResponse:
    """One verdict: reasons, pictures, edge cases, what comes next."""
    return render(request, "training/gate_run.html", run_context(found(pk)))


@admin_only
@never_cache
@require_GET
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Asked every few seconds while it is measured; then the whole page is loaded again."""
    run = found(pk)
    if run.state != GateState.MEASURING:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    context = {"run": run, "evaluations": pages.progress(run)}
    return render(request, "training/_gate_progress.html", context)


def run_context(run: GateRun, **forms: Any) -> dict[str, Any]:
    name = {"name": run.candidate.name[:120]}
    marks = gate_policies.newest_marks(run) if run.verdict == Verdict.PASS else {}
    failed = run.result.get("failed")
    return {
        "tab": "gates",
        "run": run,
        "evaluations": pages.progress(run),
        "failure": explain_failure(failed["reason"]) if failed else "",
        "reasons": [reason(said) for said in run.result.get("reasons", [])],
        "axes": pages.axes(run),
        "edges": pages.edge_names(run),
        "read": len(marks),
        "fakes": round(100 * gate_policies.fake_share(marks.values())),
        "may_promote": may(lambda: gate_policies.check_promotable(run)),
        "rounded": rounded_words(run.candidate, run.checkpoint),
        "why_not": _why_not(run, len(marks)),
        "promotion": (promotion := pages.promoted(run)),
        "contestant": contestant_of(promotion),
        "promote_form": PromoteForm(initial=name),
        "override_form": OverrideForm(initial=name),
        **forms,
    }


def _why_not(run: GateRun, read: int) -> str:
    """Why a passed model cannot be promoted, but for the reading that the page asks for anyway."""
    lost = refusal(lambda: check_persona_kept(run.candidate, run.checkpoint))
    if lost or read < run.spec.audit:
        return lost
    return refusal(lambda: gate_policies.check_promotable(run))


@admin_only
@require_POST
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Measure again what could not be measured."""
    gates.measure_again(actor=request.user, gate=found(pk))
    return redirect("training:gate_run", pk)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def audit(request: HttpRequest, pk: int) -> HttpResponse:
    """Read the drawn successes one after the other."""
    run = found(pk)
    if request.method == "POST":
        form = MarkForm(request.POST)
        if form.is_valid():
            try:
                audits.mark(actor=request.user, gate=run, **form.cleaned_data)
            except InvalidInput as error:
                messages.error(request, str(error))
        else:
            messages.error(request, _("Say whether it is genuine."))
        return redirect("training:gate_audit", pk)
    marks = gate_policies.newest_marks(run)
    rows = [(row, marks.get((row["id"], row["draw"]))) for row in sample(run)]
    unread = [n for n, (_row, mark) in enumerate(rows) if mark is None]
    context = {
        "tab": "gates", "run": run, "rows": rows, "read": len(rows) - len(unread),
        "next": unread[0] if unread else None, "near": sum(not liked(row) for row, _mark in rows),
    }  # fmt: skip
    return render(request, "training/gate_audit.html", context)


@admin_only
@require_POST
def promote(request: HttpRequest, pk: int) -> HttpResponse:
    """The model becomes a contestant."""
    run = found(pk)
    form = PromoteForm(request.POST)
    if form.is_valid():
        try:
            made = promotions.promote(actor=request.user, gate=run, **form.cleaned_data)
        except PalateError as error:
            put_error(form, error)
        else:
            said = _("“%(name)s” is a contestant now.") % {"name": made}
            messages.success(request, said)
            return redirect("training:gate_run", pk)
    return render(
        request, "training/gate_run.html", run_context(run, promote_form=form), status=422
    )


@admin_only
@require_POST
def override(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask another administrator to let it in without a passed gate."""
    run = found(pk)
    form = OverrideForm(request.POST)
    if form.is_valid():
        try:
            promotions.ask_override(
                actor=request.user, run=run.candidate, gate=run, **form.cleaned_data
            )
        except PalateError as error:
            put_error(form, error)
        else:
            messages.success(request, _("Another administrator must agree now."))
            return redirect("training:gates")
    return render(
        request, "training/gate_run.html", run_context(run, override_form=form), status=422
    )


def found(pk: int) -> GateRun:
    run: GateRun = get_object_or_404(pages.one(pk))
    return run


def may(check: Callable[[], None]) -> bool:
    return not refusal(check)


def refusal(check: Callable[[], None]) -> str:
    """Why not; empty where it is allowed."""
    try:
        check()
    except PalateError as error:
        return str(error)
    return ""


def status_of(form: Any) -> int:
    """422 for a form that was sent and could not be used."""
    return 422 if form.is_bound and form.errors else 200


def put_error(form: Any, error: PalateError) -> None:
    """Beside its field where there is one."""
    field = error.field if error.field in form.fields else None
    form.add_error(field, str(error))
