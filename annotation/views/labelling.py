"""Labelling: one page, and the small posts around it. Nothing here knows what is gold (V8)."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation import policies
from annotation.enums import LeaseState
from annotation.models import Lease
from annotation.selectors import tasks
from annotation.selectors.feedback import Feedback, feedback_of
from annotation.selectors.work import Seat, seat_of
from annotation.services import labels, leases
from annotation.views import ballot
from webapp.accounts.access import roles
from webapp.core.errors import InvalidInput, PalateError, Refused
from webapp.core.http import is_htmx, safe_next

workers = roles(*policies.WORKERS)


@workers
@never_cache
@require_http_methods(["GET", "POST"])
def label(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the current item; take a label and go on with the next."""
    if request.method == "POST":
        return _submit(request)
    seat = seat_of(request.user, pk)
    if not seat.has_read:
        return redirect("annotation:guidelines", pk)
    return _page(request, seat)


def _submit(request: HttpRequest) -> HttpResponse:
    token = request.POST.get("token", "")
    try:
        done = labels.submit_label(
            user=request.user, token=token, answer=ballot.posted_answer(request)
        )
    except InvalidInput as error:
        return _rejected(request, token, error)
    except Refused as error:
        lease = tasks.own_lease(request.user, token)
        seat = seat_of(request.user, lease.member.project_id if lease else 0)
        return nothing(request, seat, "refused", error=str(error), status=409)
    found = feedback_of(done.lease)
    if found is not None:
        return _feedback(request, done.lease, found)
    return go_on(request, done.lease.member.project_id, ballot.outcome_of(done))


def _rejected(request: HttpRequest, token: str, error: PalateError) -> HttpResponse:
    """The same item again with what was chosen and what is missing."""
    lease = tasks.own_lease(request.user, token)
    if lease is None:
        raise error
    seat = seat_of(request.user, lease.member.project_id)
    context = ballot.context_of(
        request,
        seat,
        lease,
        draft=ballot.posted_draft(request),
        errors={error.field: [str(error)]},
    )
    return _render(request, context, status=422)


def go_on(request: HttpRequest, project: int, outcome: str = "") -> HttpResponse:
    """The next item: in the answer for the script, by a redirect for everybody else."""
    if not is_htmx(request):
        if outcome:
            messages.success(request, ballot.OUTCOMES[outcome])
        return redirect("annotation:label", project)
    return _page(request, seat_of(request.user, project), outcome)


def _page(request: HttpRequest, seat: Seat, outcome: str = "") -> HttpResponse:
    try:
        served = leases.serve(user=request.user, project=seat.member.project)
    except Refused as refusal:
        return nothing(request, seat, refusal.code, outcome=outcome)
    if served.lease is None:
        return nothing(request, seat, "nothing_left", outcome=outcome)
    return _render(request, ballot.context_of(request, seat, served.lease, outcome=outcome))


def _render(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    template = "annotation/_label.html" if is_htmx(request) else "annotation/label.html"
    return render(request, template, context, status=status)


def nothing(
    request: HttpRequest,
    seat: Seat,
    reason: str,
    *,
    outcome: str = "",
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    """There is no item to show, and why. `reason`: paused, project_not_open, nothing_left, …"""
    project = seat.member.project
    context = {
        "project": project,
        "progress": seat.progress,
        "reason": reason,
        "error": error,
        "outcome": ballot.OUTCOMES.get(outcome, ""),
        "undo_url": reverse("annotation:undo", args=[project.pk]),
        "can_undo": reason == "nothing_left" and bool(seat.progress.last),
    }
    return render(request, "annotation/label_empty.html", context, status=status)


def _feedback(request: HttpRequest, lease: Lease, found: Feedback) -> HttpResponse:
    project = lease.member.project_id
    if not is_htmx(request):
        query = urlencode({"token": lease.token})
        return redirect(f"{reverse('annotation:feedback', args=[project])}?{query}")
    return _feedback_page(request, tasks.lease_parts(lease.pk), found)


def _feedback_page(request: HttpRequest, lease: Lease, found: Feedback) -> HttpResponse:
    context = {
        "pair": tasks.blind_pair(lease),
        "feedback": found,
        "project": lease.member.project,
        "progress": seat_of(request.user, lease.member.project_id).progress,
    }
    return render(request, "annotation/label_feedback.html", context)


@workers
@never_cache
@require_GET
def feedback(request: HttpRequest, pk: int) -> HttpResponse:
    """What was right about an item of the onboarding set that she has just submitted."""
    seat_of(request.user, pk)
    lease = tasks.own_lease(request.user, request.GET.get("token", ""))
    found = None
    if lease is not None and lease.state == LeaseState.SUBMITTED:
        found = feedback_of(lease)
    if lease is None or found is None:
        return redirect("annotation:label", pk)
    return _feedback_page(request, lease, found)


@workers
@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take back the submission that the page names, if it is among the last ones."""
    seat_of(request.user, pk)
    token = request.POST.get("last", "")
    try:
        lease = labels.undo_label(user=request.user, token=token)
    except Refused as refusal:
        if is_htmx(request):
            return nothing(request, seat_of(request.user, pk), refusal.code, status=409)
        messages.error(request, _("It was not taken back: %(why)s") % {"why": refusal})
        return redirect(safe_next(request, reverse("annotation:label", args=[pk])))
    if lease is None:
        messages.error(request, _("Only your last 10 submissions can be taken back."))
        return redirect(safe_next(request, reverse("annotation:label", args=[pk])))
    return go_on(request, lease.member.project_id, "undone")


@workers
@require_POST
def skip(request: HttpRequest, pk: int) -> HttpResponse:
    """Give the item back with a reason; somebody else gets it."""
    seat_of(request.user, pk)
    token, reason = request.POST.get("token", ""), request.POST.get("reason", "")
    leases.skip(user=request.user, token=token, reason=reason)
    return go_on(request, pk)


@workers
@require_POST
def heartbeat(request: HttpRequest, pk: int) -> JsonResponse:
    """Renew the lease. 409 when it is gone."""
    try:
        left = leases.heartbeat(user=request.user, token=request.POST.get("token", ""))
    except Refused as error:
        return JsonResponse({"code": error.code}, status=409)
    return JsonResponse({"expires_in": left})


@workers
@require_POST
def prefetch(request: HttpRequest, pk: int) -> HttpResponse:
    """Reserve the next item. Says nothing about it."""
    seat = seat_of(request.user, pk)
    try:
        leases.reserve_next(user=request.user, project=seat.member.project)
    except Refused:
        return HttpResponse(status=409)
    return HttpResponse(status=204)


@workers
@require_POST
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep an unsent answer on the server."""
    token = request.POST.get("token", "")
    labels.save_draft(user=request.user, token=token, draft=ballot.posted_draft(request))
    return HttpResponse(status=204)


@workers
@never_cache
@require_GET
def difference(request: HttpRequest, pk: int) -> HttpResponse:
    """The word-level difference of one's own item."""
    lease = tasks.own_lease(request.user, request.GET.get("token", ""))
    if lease is None or lease.shown_at is None:
        raise policies.not_yours()
    context = {"pair": tasks.blind_difference(lease), "project": lease.member.project}
    return render(request, "annotation/label_difference.html", context)
