"""Voting: one page, and the small posts around it. Every answer is free of identity (V1–V3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from arena.enums import Axis, SkipReason, Tag
from arena.models import Assignment, Round
from arena.selectors import ballots as select
from arena.services import leases, votes
from webapp.accounts import keys as bindings
from webapp.accounts.access import roles
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.accounts.services import save_preferences
from webapp.core.errors import Forbidden, InvalidInput, PalateError, Refused
from webapp.core.http import is_htmx, whole_number

voters = roles(Role.RATER, Role.ANNOTATOR)
RECEIPT_SHOWN = 16


@voters
@never_cache
@require_http_methods(["GET", "POST"])
def vote(request: HttpRequest) -> HttpResponse:
    """Show the current battle; take a vote and go on with the next."""
    if request.method == "POST":
        return _cast(request)
    return _open_page(request)


def _cast(request: HttpRequest) -> HttpResponse:
    token = request.POST.get("token", "")
    ballot = votes.Ballot(
        verdicts={axis: request.POST.get(axis, "") for axis in Axis.values},
        tags=request.POST.getlist("tags"),
        comment=request.POST.get("comment", ""),
        active_ms=_active_ms(request),
    )
    try:
        vote_ = votes.cast_vote(user=request.user, token=token, ballot=ballot)
    except InvalidInput as error:
        return _rejected(request, token, error)
    except Refused as error:
        reason = "closed" if error.code == "round_closed" else "refused"
        return _nothing(request, reason, error=str(error), status=409)
    changed = vote_.revision > 1
    return _next(request, vote_.assignment.round, receipt=vote_.receipt, changed=changed)


def _active_ms(request: HttpRequest) -> int:
    return whole_number(request.POST.get("active_ms")) or 0


def _written(request: HttpRequest) -> dict[str, Any]:
    return {
        "comment": request.POST.get("comment", ""),
        "tags": request.POST.getlist("tags"),
        "active_ms": str(_active_ms(request)),
    }


def _rejected(request: HttpRequest, token: str, error: PalateError) -> HttpResponse:
    """The same battle again with what was chosen and what is missing."""
    row = select.own_assignment(request.user, token)
    if row is None:
        raise error
    draft = {axis: request.POST.get(axis, "") for axis in Axis.values} | _written(request)
    axes = select.axes_of(request.user, row.round)
    context = _ballot_context(request, row, axes, draft=draft, errors={error.field: [str(error)]})
    return _render(request, context, status=422)


def _next(
    request: HttpRequest, round_: Round, receipt: str = "", changed: bool = False
) -> HttpResponse:
    if not is_htmx(request):
        if receipt:
            text = (
                _("Vote changed. Receipt %(code)s")
                if changed
                else _("Vote recorded. Receipt %(code)s")
            )
            messages.success(request, text % {"code": receipt[:RECEIPT_SHOWN]})
        return redirect(f"{reverse('arena:vote')}?round={round_.pk}")
    return _ballot_page(request, round_, receipt=receipt, changed=changed)


def _open_page(request: HttpRequest) -> HttpResponse:
    """The round that was asked for, else the oldest open one in which something is left."""
    rounds = list(select.open_rounds_for(request.user))
    wanted = request.GET.get("round", "")
    if wanted:
        number = whole_number(wanted)
        asked = [row for row in rounds if row.pk == number]
        return _ballot_page(request, asked[0], rounds) if asked else _nothing(request, "closed")
    for round_ in rounds[:-1]:
        if leases.current_ballot(user=request.user, round_=round_) is not None:
            return _ballot_page(request, round_, rounds)
    return _ballot_page(request, rounds[-1], rounds) if rounds else _nothing(request, "not_invited")


def _ballot_page(
    request: HttpRequest,
    round_: Round,
    rounds: Sequence[Round] = (),
    receipt: str = "",
    changed: bool = False,
) -> HttpResponse:
    try:
        served = leases.serve(user=request.user, round_=round_)
    except Refused:
        return _nothing(request, "closed", round_=round_)
    if served.assignment is None:
        return _nothing(request, "nothing_left", round_=round_)
    axes = select.axes_of_seat(served.seat, round_)
    context = _ballot_context(request, served.assignment, axes, receipt=receipt)
    context["changed"] = changed
    context["rounds"] = [(row, row.pk == round_.pk) for row in rounds] if len(rounds) > 1 else []
    return _render(request, context)


def _ballot_context(
    request: HttpRequest,
    row: Assignment,
    axes: list[str],
    *,
    draft: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
    receipt: str = "",
) -> dict[str, Any]:
    legends = {
        Axis.QUALITY.value: _("Which is better in content?"),
        Axis.PERSONALIZATION.value: _("Which fits this person better?"),
    }
    progress = select.progress_of(request.user, row.round)
    return {
        "pair": select.blind_pair(row),
        "axes": [{"name": axis, "legend": legends[axis]} for axis in axes],
        "draft": draft if draft is not None else row.draft,
        "errors": errors or {},
        "tags": Tag.choices,
        "skip_reasons": SkipReason.choices,
        "progress": progress,
        "expires_in": select.seconds_left(row),
        "can_undo": progress.done > 0,
        "receipt": receipt[:RECEIPT_SHOWN],
        "keys_json": bindings.keys_json(request.user),
        "urls": _urls(),
    }


def _urls() -> dict[str, str]:
    names = ("undo", "skip", "heartbeat", "prefetch", "draft", "diff")
    return {"submit": reverse("arena:vote"), **{name: reverse(f"arena:{name}") for name in names}}


def _render(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    template = "arena/_vote.html" if is_htmx(request) else "arena/vote.html"
    return render(request, template, context, status=status)


def _nothing(
    request: HttpRequest,
    reason: str,
    *,
    round_: Round | None = None,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    recent = select.own_votes(request.user, round_)[:20]
    others = [row for row in select.open_rounds_for(request.user) if row != round_]
    progress = select.progress_of(request.user, round_) if round_ else None
    undoable = reason == "nothing_left"
    if undoable and progress and progress.complete:
        reason = "done"
    context = {
        "rounds": others,
        "round": round_,
        "reason": reason,
        "error": error,
        "progress": progress,
        "receipts": [{"code": row.receipt, "at": row.at, "url": ""} for row in recent],
        "can_undo": bool(round_ and recent and undoable),
    }
    return render(request, "arena/vote_empty.html", context, status=status)


@voters
@require_POST
def undo(request: HttpRequest) -> HttpResponse:
    """Take back the vote that the page named as the last one; its battle comes again."""
    last = request.POST.get("last", "")
    round_ = select.round_to_undo(request.user, last) if last else None
    if round_ is None:
        return redirect("arena:vote")
    try:
        votes.undo_vote(user=request.user, round_=round_, token=last)
    except Refused:
        return _nothing(request, "closed", round_=round_, status=409)
    return _next(request, round_)


@voters
@require_POST
def skip(request: HttpRequest) -> HttpResponse:
    row = _own(request)
    leases.skip(user=request.user, token=row.token, reason=request.POST.get("reason", ""))
    return _next(request, row.round)


@voters
@require_POST
def heartbeat(request: HttpRequest) -> JsonResponse:
    """Renew the lease. 409 when it is gone."""
    try:
        left = leases.heartbeat(user=request.user, token=request.POST.get("token", ""))
    except Refused as error:
        return JsonResponse({"code": error.code}, status=409)
    return JsonResponse({"expires_in": left})


@voters
@require_POST
def prefetch(request: HttpRequest) -> HttpResponse:
    """Reserve the next battle. Says nothing about it."""
    row = _own(request)
    try:
        leases.reserve_next(user=request.user, round_=row.round)
    except Refused:
        return HttpResponse(status=409)
    return HttpResponse(status=204)


@voters
@require_POST
def draft(request: HttpRequest) -> HttpResponse:
    """Keep an unsent choice on the server."""
    votes.save_draft(
        user=request.user,
        token=_own(request).token,
        draft={**request.POST.dict(), **_tags(request)},
    )
    return HttpResponse(status=204)


def _tags(request: HttpRequest) -> dict[str, list[str]]:
    return {"tags": request.POST.getlist("tags")} if "tags" in request.POST else {}


@voters
@never_cache
@require_GET
def difference(request: HttpRequest) -> HttpResponse:
    """The word-level difference of one's own battle."""
    row = select.own_assignment(request.user, request.GET.get("token", ""))
    if row is None or row.shown_at is None:
        raise Forbidden(_("This battle was not given to you."), code="not_yours")
    return render(request, "arena/diff.html", {"pair": select.blind_difference(row)})


def _own(request: HttpRequest) -> Assignment:
    token = request.POST.get("token", "")
    return get_object_or_404(
        Assignment.objects.select_related("round"), token=token, rater=request.user
    )


@voters
@never_cache
@require_GET
def receipts(request: HttpRequest) -> HttpResponse:
    """One's receipts, as a page or as the JSON that the verification script reads."""
    rows = list(select.own_votes(request.user)[:5000])
    names: dict[int, str] = {}
    records = []
    for row in rows:
        round_ = row.assignment.round
        if round_.pk not in names:
            names[round_.pk] = select.pseudonym_of(request.user, round_)
        record = select.receipt_record(row, names[round_.pk])
        records.append({**record, "receipt": row.receipt, "commitment": round_.commitment})
    if request.GET.get("format") == "json":
        response = JsonResponse({"receipts": records}, json_dumps_params={"ensure_ascii": False})
        response["Content-Disposition"] = 'attachment; filename="palate-receipts.json"'
        return response
    listed = zip(rows[:200], records[:200], strict=True)
    return render(request, "arena/receipts.html", {"receipts": list(listed), "total": len(rows)})


@voters
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """Remap the letter keys, or switch them off."""
    names = bindings.names()
    errors: dict[str, str] = {}
    user = cast(User, request.user)
    current = bindings.keys_of(user) or bindings.DEFAULT_KEYS
    if request.method == "POST":
        current = {name: request.POST.get(name, "").strip() for name in names}
        errors = bindings.key_errors(current)
        if not errors:
            off = request.POST.get("off") == "on"
            save_preferences(user=user, keys={} if off else current)
            messages.success(request, _("Your keys are saved."))
            return redirect("arena:keys")
    rows = [
        {"name": name, "label": label, "key": current.get(name, ""), "error": errors.get(name)}
        for name, label in names.items()
    ]
    off = user.preferences.get("keys") == {}
    return render(request, "arena/keys.html", {"rows": rows, "off": off, "errors": errors})
