"""Composing, screening, opening, closing and unsealing a round; and its public record."""

from __future__ import annotations

import json
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from arena import policies
from arena.enums import Axis, RoundState
from arena.forms import (
    POLICY_LABELS,
    RULE_LABELS,
    ComposeForm,
    ReasonForm,
    initial_from_preset,
    initial_from_round,
)
from arena.leakage import RulePolicy, ScreeningRule
from arena.models import Round
from arena.protocol import screening_flow
from arena.ratings.planning import expect
from arena.sampling import PRESETS
from arena.selectors import rounds as select
from arena.selectors.remarks import remarks as read_remarks
from arena.selectors.remarks import resolved
from arena.selectors.votes import coverage_by_stratum, round_totals
from arena.services import closing, rounds, screening, sealing
from arena.views.acting import act
from arena.views.answering import answers_context
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput
from webapp.core.http import whole_number

Errors = dict[str, str]


@never_cache
@require_GET
def round_list(request: HttpRequest) -> HttpResponse:
    """All rounds, cancelled ones too."""
    page = Paginator(select.listed_rounds(), 30).get_page(request.GET.get("page", "1"))
    context = {
        "page": page,
        "presets": PRESETS,
        "may_compose": policies.may_administer(request.user),
    }
    return render(request, "arena/round_list.html", context)


@never_cache
@require_GET
def round_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """The record of a round: what is fixed, how far it is, and what may be done next."""
    round_ = get_object_or_404(Round.objects.select_related("anchor"), pk=pk)
    return render(request, "arena/round_detail.html", _detail(request, round_))


def _detail(request: HttpRequest, round_: Round) -> dict[str, Any]:
    admin = policies.may_administer(request.user)
    context: dict[str, Any] = {
        "round": round_,
        "admin": admin,
        "contestants": sorted(str(row) for row in rounds.contestants_of(round_)),
        "contexts": select.context_totals(round_),
        "raters": round_.round_raters.count(),
        "weights": [(Axis(axis).label, weight) for axis, weight in round_.weights.items()],
        "protocol": _pretty(round_.protocol),
        "reason_form": ReasonForm(),
    }
    if round_.opened_at is not None:
        context["totals"] = round_totals(round_)
        context["coverage"] = coverage_by_stratum(round_)
    context |= answers_context(round_, admin=admin)
    if admin:
        context |= _admin_part(request, round_, context)
    return context


def _admin_part(request: HttpRequest, round_: Round, base: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = {
        "forecast": forecast(
            len(base["contestants"]),
            round_.planned_votes,
            base["raters"],
            base["contexts"]["total"],
        ),
        "approvals": list(round_.approvals.select_related("user")),
        "approvals_missing": closing.approvals_missing(round_),
        "may_approve": policies.may_approve_unseal(request.user, round_),
        "rated": round_.snapshots.exists(),
    }
    if round_.state in (RoundState.DRAFT, RoundState.SCREENING):
        part["shortfalls"] = sealing.round_shortfalls(round_)
    if round_.state != RoundState.DRAFT:
        flow = screening_flow(round_) | {"in_battles": select.entries_in_battles(round_)}
        flow["excluded"] = [
            (RULE_LABELS.get(rule, rule), n) for rule, n in flow["excluded"].items()
        ]
        part["flow"] = flow
        part["barred"] = select.barred_raters(round_)
    return part


def _pretty(protocol: str) -> str:
    return json.dumps(json.loads(protocol), indent=2, ensure_ascii=False) if protocol else ""


def forecast(contestants: int, votes: int, raters: int, contexts: int) -> int | None:
    """Expected half-width of a 95 % interval in Elo points (D-17), None where it cannot be said.

    Raters and contexts with tastes of their own widen it; with fewer than two of either there is
    nothing to learn their spread from, and only the votes count.
    """
    if contestants < 2 or votes < 1:
        return None
    plan = expect(
        contestants,
        votes,
        raters=raters if raters > 1 else None,
        contexts=contexts if contexts > 1 else None,
    )
    return round(plan.half_width)


@admin_only
@require_GET
def forecast_part(request: HttpRequest) -> HttpResponse:
    """The forecast beside the composer, as the numbers are typed."""
    values = request.GET
    width = forecast(
        len(values.getlist("contestants")),
        _number(values.get("planned_votes")),
        len(values.getlist("raters")),
        _number(values.get("personas_n")) * _number(values.get("prompts_n")),
    )
    return render(request, "arena/_forecast.html", {"forecast": width})


def _number(text: str | None) -> int:
    return min(whole_number(text) or 0, 10_000_000)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def compose(request: HttpRequest) -> HttpResponse:
    """Compose a new round, from a preset or as a copy."""
    initial = initial_from_preset(request.GET.get("preset", ""))
    source = whole_number(request.GET.get("copy"))
    if source is not None:
        initial = initial_from_round(get_object_or_404(Round, pk=source))
    return _composer(request, initial, None)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a draft."""
    round_ = get_object_or_404(Round, pk=pk)
    policies.check_edit(request.user, round_)
    return _composer(request, initial_from_round(round_), round_)


def _composer(request: HttpRequest, initial: dict[str, Any], round_: Round | None) -> HttpResponse:
    form = ComposeForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            plan = form.plan()
            if round_ is None:
                saved = rounds.compose_round(actor=request.user, plan=plan)
            else:
                saved = rounds.recompose_round(actor=request.user, round_=round_, plan=plan)
        except InvalidInput as error:
            field = {"weights": "weight_quality"}.get(error.field, error.field)
            form.add_error(field if field in form.fields else None, str(error))
        else:
            return redirect("arena:round_detail", pk=saved.pk)
    status = 422 if form.is_bound else 200
    context = {"form": form, "round": round_, "presets": PRESETS}
    return render(request, "arena/compose.html", context, status=status)


@admin_only
@require_POST
def screen(request: HttpRequest, pk: int) -> HttpResponse:
    return act(
        request, pk,
        lambda round_: screening.start_screening(actor=request.user, round_=round_),
        _("Screening has begun."),
    )  # fmt: skip


@admin_only
@require_POST
def back_to_draft(request: HttpRequest, pk: int) -> HttpResponse:
    return act(
        request, pk,
        lambda round_: rounds.back_to_draft(actor=request.user, round_=round_),
        _("The round is a draft again."),
    )  # fmt: skip


@admin_only
@require_POST
def open_(request: HttpRequest, pk: int) -> HttpResponse:
    return act(
        request, pk,
        lambda round_: sealing.open_round(actor=request.user, round_=round_),
        _("The round is sealed and open. Its commitment is on this page."),
    )  # fmt: skip


@admin_only
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    reason = request.POST.get("reason", "")
    return act(
        request, pk,
        lambda round_: rounds.cancel_round(actor=request.user, round_=round_, reason=reason),
        _("The round is cancelled."),
    )  # fmt: skip


@admin_only
@require_POST
def close(request: HttpRequest, pk: int) -> HttpResponse:
    reason = request.POST.get("reason", "")
    return act(
        request, pk,
        lambda round_: closing.close_round(actor=request.user, round_=round_, reason=reason),
        _("The round is closed. Ratings are being computed and stay sealed."),
    )  # fmt: skip


def _agreed(round_: Round) -> str:
    round_.refresh_from_db(fields=["state"])
    if round_.state == RoundState.UNSEALED:
        return _("The round is unsealed: the leaderboard and the bundle are published.")
    return _("Your agreement to unseal is recorded.")


@admin_only
@require_POST
def approve(request: HttpRequest, pk: int) -> HttpResponse:
    reason = request.POST.get("reason", "")
    return act(
        request, pk,
        lambda round_: closing.approve_unsealing(actor=request.user, round_=round_, reason=reason),
        _agreed,
    )  # fmt: skip


@admin_only
@never_cache
@require_GET
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress of screening; polled by htmx until it is done."""
    round_ = get_object_or_404(Round, pk=pk)
    response = render(request, "arena/_screening_progress.html", {"round": round_})
    if round_.screened_at is not None or round_.state != RoundState.SCREENING:
        response["HX-Refresh"] = "true"
    return response


@admin_only
@never_cache
@require_GET
def remarks(request: HttpRequest, pk: int) -> HttpResponse:
    """Comments and tags of the raters, once the round is unsealed."""
    round_ = get_object_or_404(Round, pk=pk)
    page = read_remarks(round_, request.GET.get("page", "1"))
    context = {"round": round_, "page": page, "remarks": resolved(round_, page)}
    return render(request, "arena/remarks.html", context)


@admin_only
@never_cache
@require_GET
def hits(request: HttpRequest, pk: int) -> HttpResponse:
    """What screening found, as masked excerpts without the contestant (V1)."""
    round_ = get_object_or_404(Round, pk=pk)
    rule = request.GET.get("rule", "")
    page = select.screening_hits(round_, rule, request.GET.get("page", "1"))
    rows = [
        {
            "rule": RULE_LABELS[ScreeningRule(hit.rule)],
            "action": POLICY_LABELS[RulePolicy(hit.action)],
            "count": hit.count,
            "excerpt": hit.excerpt,
        }
        for hit in select.masked_hits(round_, page)
    ]
    counts = [
        {**row, "label": RULE_LABELS[ScreeningRule(row["rule"])]}
        for row in select.hit_counts(round_)
    ]
    context = {"round": round_, "page": page, "rows": rows, "counts": counts, "rule": rule}
    return render(request, "arena/screening.html", context)
