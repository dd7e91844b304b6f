"""Chains: the list, one chain with its stages, a new one, and what people do with them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.enums import ACTIVE_CHAIN, ChainStage, ChainState
from training.forms.chains import ArrowsForm, ChainForm, initial_of
from training.models import Chain, ChainRun, ChainStep
from training.selectors import chains as pages
from training.services import chains
from training.views.gates import put_error, status_of
from training.words.chains import BADGES, cost_words, schedule_words, standing
from webapp.accounts.access import admin_only
from webapp.core.errors import PalateError
from webapp.core.http import whole_number

PER_PAGE = 20


@admin_only
@never_cache
@require_GET
def chain_list(request: HttpRequest) -> HttpResponse:
    """All chains, where each stands, and when it begins next."""
    now = timezone.now()
    rows = [
        {
            "chain": chain,
            "run": (run := pages.newest_run(chain)),
            "standing": standing(run) if run else "",
            "badge": BADGES[run.state] if run else "",
            "schedule": schedule_words(chain),
            "next": pages.next_start(chain, now),
        }
        for chain in pages.chain_list()[:PER_PAGE]
    ]
    return render(request, "training/chains.html", {"tab": "chains", "rows": rows})


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new chain; the same form twice makes one."""
    form = ChainForm(request.POST or None)

    def save() -> Chain:
        return chains.create_chain(
            actor=request.user, key=form.cleaned_data["key"], **form.values()
        )

    return _form(request, form, save, None)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Other settings, from the next start on."""
    found = get_object_or_404(Chain, pk=pk)
    form = ChainForm(request.POST or None, initial=initial_of(found))

    def save() -> Chain:
        return chains.edit_chain(actor=request.user, chain=found, **form.values(found.recipe))

    return _form(request, form, save, found)


def _form(
    request: HttpRequest, form: ChainForm, save: Callable[[], Chain], found: Chain | None
) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        try:
            made = save()
        except PalateError as error:
            put_error(form, error)
        else:
            return redirect("training:chain", made.pk)
    context = {"tab": "chains", "form": form, "chain": found}
    return render(request, "training/chain_form.html", context, status=status_of(form))


@admin_only
@never_cache
@require_GET
def chain(request: HttpRequest, pk: int) -> HttpResponse:
    """One chain: its stages in the newest run, or in the one that is asked for."""
    found = get_object_or_404(Chain.objects.select_related("enabled_by"), pk=pk)
    run = pages.newest_run(found)
    if (number := whole_number(request.GET.get("run"))) is not None:
        run = get_object_or_404(ChainRun.objects.select_related("by"), chain=found, number=number)
    page = Paginator(pages.history(found), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "training/chain.html", chain_context(found, run, page))


def chain_context(found: Chain, run: ChainRun | None, page: Any) -> dict[str, Any]:
    stages = pages.stages_of(found, run)
    arrows = ArrowsForm(arrows=found.arrows)
    return {
        "tab": "chains",
        "chain": found,
        "run": run,
        "active": run is not None and run.state in ACTIVE_CHAIN,
        "may_cancel": run is not None and run.state in (*ACTIVE_CHAIN, ChainState.FAILED),
        "standing": standing(run) if run else _("It never ran yet."),
        "badge": BADGES[run.state] if run else "",
        "stages": [_stage(row, arrows, run) for row in stages],
        "cost": cost_words(pages.total(stages)),
        "schedule": schedule_words(found),
        "next": pages.next_start(found, timezone.now()),
        "busy": found.runs.filter(state__in=ACTIVE_CHAIN).exists(),
        "page": page,
        "history": [(row, BADGES[row.state], standing(row)) for row in page.object_list],
        "key": uuid.uuid4().hex,
    }


def _stage(row: pages.StagePage, arrows: ArrowsForm, run: ChainRun | None) -> dict[str, Any]:
    """One stage with its words and what may be pressed there."""
    step = row.step
    here = run is not None and run.stage == row.stage
    waits = run.reason if run and here and run.state == ChainState.WAITING else ""
    return {
        "name": ChainStage(row.stage).label,
        "page": row,
        "badge": BADGES["waiting" if waits else step.state] if step else "",
        "arrow": arrows[row.stage] if row.arrow else None,
        "arrow_state": row.arrow,
        "waits": waits,
        "may_go_on": bool(waits and row.arrow == "ask" and step and step.let_at is None),
        "may_retry": bool(run and run.state == ChainState.FAILED and here and step),
        "cost": cost_words(row.cost),
    }


@admin_only
@require_POST
def arrows(request: HttpRequest, pk: int) -> HttpResponse:
    """Switch the arrows."""
    found = get_object_or_404(Chain, pk=pk)
    form = ArrowsForm(request.POST, arrows=found.arrows)
    if not form.is_valid():
        messages.error(request, _("Choose off, ask or on for every arrow."))
        return redirect("training:chain", pk)
    wanted = form.cleaned_data
    return _do(
        request, pk, lambda: chains.set_arrows(actor=request.user, chain=found, arrows=wanted)
    )


@admin_only
@require_POST
def start(request: HttpRequest, pk: int) -> HttpResponse:
    """Begin now."""
    found = get_object_or_404(Chain, pk=pk)
    key = request.POST.get("key", "")[:64] or None
    return _do(request, pk, lambda: chains.start_chain(actor=request.user, chain=found, key=key))


@admin_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End a run where it is."""
    run = get_object_or_404(ChainRun, pk=pk)
    return _do(request, run.chain_id, lambda: chains.cancel_chain(actor=request.user, run=run))


@admin_only
@require_POST
def go_on(request: HttpRequest, pk: int) -> HttpResponse:
    """Let it go on into a stage."""
    step = get_object_or_404(ChainStep.objects.select_related("chain_run"), pk=pk)
    return _do(
        request, step.chain_run.chain_id, lambda: chains.go_on(actor=request.user, step=step)
    )


@admin_only
@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Try a stage again that failed."""
    step = get_object_or_404(ChainStep.objects.select_related("chain_run"), pk=pk)
    return _do(
        request, step.chain_run.chain_id, lambda: chains.retry_step(actor=request.user, step=step)
    )


def _do(request: HttpRequest, pk: int, act: Callable[[], Any]) -> HttpResponse:
    """Do it and go back to the chain, with what was refused as a message."""
    try:
        act()
    except PalateError as error:
        messages.error(request, str(error))
    return redirect("training:chain", pk)
