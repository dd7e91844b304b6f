"""Evidence: what blind rounds say about a trained contestant, and whether it was foreseen."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from arena.models import Round
from training.selectors import evidence as select
from training.selectors import evidence_pages as pages
from training.selectors.ancestry import run_of, trained_contestants
from training.services.predictions import launch_predictions
from webapp.accounts.access import admin_only
from webapp.core.errors import PalateError
from webapp.core.http import whole_number

PER_PAGE = 30


@admin_only
@never_cache
@require_GET
def evidence_list(request: HttpRequest) -> HttpResponse:
    """Trained contestants, with how many unsealed rounds they were in."""
    page = Paginator(trained_contestants(), PER_PAGE).get_page(request.GET.get("page"))
    rows = pages.list_rows(page.object_list)
    return render(
        request, "training/evidences.html", {"tab": "evidence", "page": page, "rows": rows}
    )


@admin_only
@never_cache
@require_GET
def evidence(request: HttpRequest, pk: int) -> HttpResponse:
    """One contestant in one round: the newest unless another one is chosen."""
    contestant = get_object_or_404(trained_contestants(), pk=pk)
    rounds = select.rounds_of(contestant)
    round_ = _chosen(request.GET.get("round"), rounds)
    context: dict[str, Any] = {
        "tab": "evidence",
        "contestant": contestant,
        "run": run_of(contestant),
        "rounds": rounds,
        "round": round_,
    }
    if round_ is not None:
        context |= pages.page_of(select.read_evidence(contestant, round_))
    return render(request, "training/evidence.html", context)


def _chosen(wanted: str | None, rounds: list[Round]) -> Round | None:
    """Among the unsealed rounds of the contestant; another number is nobody's (404)."""
    if not wanted:
        return rounds[0] if rounds else None
    number = whole_number(wanted)
    for row in rounds:
        if row.pk == number:
            return row
    raise Http404


@admin_only
@require_POST
def predict(request: HttpRequest, pk: int) -> HttpResponse:
    """Have the reward models score the answers of a round; once, however often it is pressed."""
    contestant = get_object_or_404(trained_contestants(), pk=pk)
    rounds = select.rounds_of(contestant)
    round_ = _chosen(request.POST.get("round"), rounds)
    if round_ is None:
        raise Http404
    try:
        launch_predictions(actor=request.user, contestant=contestant, round_=round_)
    except PalateError as error:
        messages.error(request, str(error))
    return redirect(f"{reverse('training:evidence', args=[pk])}?round={round_.pk}")
