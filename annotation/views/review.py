"""Disputed items: their queue, and the adjudicator's page, blind first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from annotation import policies
from annotation.enums import IN_HAND, AdjudicationReason, AdjudicationState, Axis
from annotation.models import Adjudication, Item, Project
from annotation.selectors import review as select
from annotation.selectors.tasks import as_shown
from annotation.services import adjudication
from annotation.services.decisions import axes_to_decide
from annotation.services.labels import allowed_verdicts
from annotation.views.ballot import LEGENDS
from annotation.views.words import label_rows, say, shares
from webapp.accounts import keys
from webapp.accounts.access import roles
from webapp.accounts.enums import Role
from webapp.catalog.blind import BlindPair
from webapp.core.errors import InvalidInput, PalateError, Refused
from webapp.core.http import go_on, whole_number

PAGE_SIZE = 50
FINAL = ".final"  # behind the token in the second step, so that a kept draft of the first stays out
adjudicators = roles(Role.ADMIN, *policies.WORKERS)


def access_review(user: Any, pk: int) -> Project:
    """A project in which this user decides disputed items; 403 for others."""
    project = get_object_or_404(Project, pk=pk)
    if not policies.may_manage(user):
        policies.check_adjudicates(user, select.seat(project, user))
    return project


@adjudicators
@never_cache
@require_GET
def disputes(request: HttpRequest, pk: int) -> HttpResponse:
    """Disputed items, the least agreement first. No label stands here: the choice is blind."""
    project = access_review(request.user, pk)
    show = request.GET.get("show", "")
    manages = policies.may_manage(request.user)
    # Who labels, too, learns nothing about what others said of her own items (V8).
    queue = select.disputed_queue(
        project, request.user, show=show, free_only=not manages, limit=PAGE_SIZE
    )
    context = {
        "project": project,
        "tab": "disputes",
        "section": "disputes",
        "manages": manages,
        "waiting": select.waiting(project) if manages else None,
        "show": show,
        "queue": queue.entries,
        "total": queue.total,
        "free": queue.free,
        "mine": select.in_hand_of(request.user, project),
    }
    return render(request, "annotation/disputes.html", context)


@adjudicators
@require_POST
def claim(request: HttpRequest, pk: int) -> HttpResponse:
    """Take an item in hand: the one named, or the next of the queue."""
    project = access_review(request.user, pk)
    number = whole_number(request.POST.get("item"))
    try:
        if number is not None:
            item = get_object_or_404(Item, pk=number, project=project)
            row = adjudication.claim_item(user=request.user, item=item)
        else:
            show = request.POST.get("show", "")
            found = adjudication.claim_next(user=request.user, project=project, show=show)
            if found is None:
                raise Refused(_("Nothing is left for you to decide."))
            row = found
    except PalateError as error:
        messages.error(request, str(error))
        return redirect("annotation:disputes", pk)
    return _to_page(pk, row.token)


def _to_page(pk: int, token: str) -> HttpResponse:
    return redirect(f"{reverse('annotation:adjudicate', args=[pk])}?token={token}")


@adjudicators
@never_cache
@require_GET
def adjudicate(request: HttpRequest, pk: int) -> HttpResponse:
    """The item in hand: first the two answers alone, then with the labels."""
    project = access_review(request.user, pk)
    token = request.GET.get("token", "")
    if not token:
        mine = select.in_hand_of(request.user, project)
        if mine is None:
            return redirect("annotation:disputes", pk)
        token = mine.token
    row = _access(request, project, token)
    if row.state not in IN_HAND:
        return _gone(request, pk, row)
    return _page(request, row)


def _access(request: HttpRequest, project: Project, token: str) -> Adjudication:
    row = select.adjudication_parts(request.user, token.removesuffix(FINAL))
    if row is None or row.item.project_id != project.pk:
        raise policies.not_yours()
    return row


def _gone(request: HttpRequest, pk: int, row: Adjudication) -> HttpResponse:
    if row.state == AdjudicationState.DONE:
        messages.success(request, _("This item is decided."))
    else:
        messages.info(request, _("You do not have this item in hand any more."))
    return redirect("annotation:disputes", pk)


def _page(
    request: HttpRequest,
    row: Adjudication,
    *,
    draft: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
) -> HttpResponse:
    revealed = row.state == AdjudicationState.REVEALED
    context = _revealed(row) if revealed else {"axes": _axes(row, axes_to_decide(row.item))}
    context |= {
        "project": row.item.project,
        "row": row,
        "pair": _pair(row, revealed),
        "draft": draft if draft is not None else context.get("draft", {}),
        "errors": errors or {},
        "expires_in": max(int((row.expires_at - timezone.now()).total_seconds()), 0),
        "keys_json": keys.keys_json(request.user),
        "urls": _urls(row, revealed),
    }
    return render(request, "annotation/adjudicate.html", context, status=422 if errors else 200)


def _pair(row: Adjudication, revealed: bool) -> BlindPair:
    pair = select.blind_item(row)
    return replace(pair, token=row.token + FINAL) if revealed else pair


def _urls(row: Adjudication, revealed: bool) -> dict[str, str]:
    names = {
        "submit": "decide" if revealed else "blind",
        "give_back": "give_back",
        "diff": "adjudicate_difference",
    }
    project = row.item.project_id
    return {key: reverse(f"annotation:{name}", args=[project]) for key, name in names.items()}


def _axes(row: Adjudication, names: list[str]) -> list[dict[str, Any]]:
    allowed = allowed_verdicts(row.item.project)
    return [{"name": axis, "legend": LEGENDS[axis], "allowed": allowed} for axis in names]


def _revealed(row: Adjudication) -> dict[str, Any]:
    """What is shown once the blind choice is stored."""
    item, left = row.item, row.first_left
    project = item.project
    kept = [axis for axis in project.axes if axis not in row.blind]
    return {
        "revealed": True,
        "axes": _axes(row, list(row.blind)),
        "draft": {axis: as_shown(verdict, left) for axis, verdict in row.blind.items()},
        "asked": [(axis, Axis(axis).label) for axis in row.blind],
        "blind": [(Axis(axis).label, say(verdict, left)) for axis, verdict in row.blind.items()],
        "labels": label_rows(select.labels_of(item, first_left=left), project),
        "columns": [Axis(axis).label for axis in project.axes],
        "soft": [
            (Axis(axis).label, shares(decision.posterior, left))
            for axis in row.blind
            if (decision := getattr(item, f"{axis}_decision")) is not None
        ],
        "kept": [
            (Axis(axis).label, say(decision.verdict, left), decision.get_source_display())
            for axis in kept
            if (decision := getattr(item, f"{axis}_decision")) is not None
        ],
        "reasons": AdjudicationReason.choices,
    }


@adjudicators
@never_cache
@require_GET
def difference(request: HttpRequest, pk: int) -> HttpResponse:
    """The word difference of the item in hand, as a page of its own or for the script."""
    project = access_review(request.user, pk)
    row = _access(request, project, request.GET.get("token", ""))
    if row.state not in IN_HAND:
        return _gone(request, pk, row)
    context = {"project": project, "pair": select.blind_item_difference(row), "row": row}
    return render(request, "annotation/adjudicate_difference.html", context)


@adjudicators
@require_POST
def blind(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the choice made without the labels."""
    project = access_review(request.user, pk)
    row = _access(request, project, request.POST.get("token", ""))
    verdicts = {axis: request.POST.get(axis, "") for axis in Axis.values}
    try:
        adjudication.decide_blind(user=request.user, token=row.token, verdicts=verdicts)
    except InvalidInput as error:
        return _page(request, row, draft=verdicts, errors={error.field: [str(error)]})
    except PalateError as error:
        messages.error(request, str(error))
        return go_on(request, reverse("annotation:disputes", args=[pk]))
    return _to_page(pk, row.token)


@adjudicators
@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the decision and go back to the queue, or on to the next item."""
    project = access_review(request.user, pk)
    row = _access(request, project, request.POST.get("token", ""))
    posted: dict[str, Any] = {axis: request.POST.get(axis, "") for axis in Axis.values}
    left_open = request.POST.getlist("unresolved")
    verdicts = {
        axis: adjudication.UNRESOLVED if axis in left_open else verdict
        for axis, verdict in posted.items()
    }
    reason, note = request.POST.get("reason", ""), request.POST.get("note", "")
    draft = {**posted, "reason": reason, "note": note, "unresolved": left_open}
    try:
        adjudication.decide_item(
            user=request.user, token=row.token, verdicts=verdicts, reason=reason, note=note
        )
    except InvalidInput as error:
        return _page(request, row, draft=draft, errors={error.field: [str(error)]})
    except PalateError as error:
        messages.error(request, str(error))
        return go_on(request, reverse("annotation:disputes", args=[pk]))
    messages.success(request, _("Decided. The labels stay as they are; the decision holds."))
    return go_on(request, reverse("annotation:disputes", args=[pk]))


@adjudicators
@require_POST
def give_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Let somebody else decide."""
    project = access_review(request.user, pk)
    row = _access(request, project, request.POST.get("token", ""))
    adjudication.give_back(user=request.user, token=row.token)
    messages.info(request, _("You gave the item back."))
    return go_on(request, reverse("annotation:disputes", args=[pk]))
