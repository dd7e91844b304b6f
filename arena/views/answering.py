"""The answers of a round: having them made, stopping, going on, and how far it is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from arena.enums import RoundState
from arena.models import Round
from arena.selectors.answering import AnswerProgress, costs_of, progress_of
from arena.services import answering
from arena.views.acting import act
from webapp.accounts.access import admin_only
from webapp.core.http import whole_number


def answers_context(round_: Round, *, admin: bool) -> dict[str, Any]:
    """The part of a round's page about its answers. Of contestants apart only when unsealed."""
    context: dict[str, Any] = {}
    if round_.state == RoundState.UNSEALED:
        context["costs"] = costs_of(round_)
    if admin:
        found = progress_of(round_)
        context["answers"] = found
        context["may_screen"] = _may_screen(found)
    return context


def _may_screen(found: AnswerProgress) -> bool:
    """Whether nothing is left to make first; the service has the last word."""
    if not found.contestants:
        return True
    return found.job is not None and not found.running and not found.over


@admin_only
@require_POST
def start(request: HttpRequest, pk: int) -> HttpResponse:
    limit = whole_number(request.POST.get("failure_limit"))
    return act(
        request, pk,
        lambda round_: answering.start_answering(
            actor=request.user, round_=round_, failure_limit=-1 if limit is None else limit
        ),
        _("The answers are being made."),
    )  # fmt: skip


@admin_only
@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    return act(
        request, pk,
        lambda round_: answering.stop_answering(actor=request.user, round_=round_),
        _("Stopped. What was made stays."),
    )  # fmt: skip


@admin_only
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    again = "again" in request.POST
    return act(
        request, pk,
        lambda round_: answering.resume_answering(
            actor=request.user, round_=round_, again=again
        ),
        _("The answers are being made."),
    )  # fmt: skip


@admin_only
@never_cache
@require_GET
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """How far it is; polled by htmx until it is done."""
    round_ = get_object_or_404(Round, pk=pk)
    found = progress_of(round_)
    context = {"round": round_, "answers": found}
    response = render(request, "arena/_answers_progress.html", context)
    if not found.running:
        response["HX-Refresh"] = "true"
    return response
