"""What an annotator reports: a problem, a judgement she contests, no need for a break."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotation.selectors.work import seat_of
from annotation.services import appeals, labels, problems
from annotation.views import ballot
from annotation.views.labelling import workers
from annotation.views.work import submission_page
from webapp.core.errors import InvalidInput, Refused
from webapp.core.http import is_htmx


@workers
@require_POST
def problem(request: HttpRequest, pk: int) -> HttpResponse:
    """Report a problem. What she has chosen so far comes along and is kept."""
    seat_of(request.user, pk)
    token = request.POST.get("token", "")
    labels.save_draft(user=request.user, token=token, draft=ballot.posted_draft(request))
    try:
        problems.report_problem(
            user=request.user,
            token=token,
            kind=request.POST.get("problem_kind", ""),
            note=request.POST.get("problem_note", ""),
        )
    except InvalidInput as error:
        if is_htmx(request):
            raise
        messages.error(request, str(error))
    else:
        if is_htmx(request):
            return HttpResponse(status=204)
        messages.success(
            request, _("Reported, thank you. You can go on with this pair or skip it.")
        )
    return redirect("annotation:label", pk)


@workers
@require_POST
def contest(request: HttpRequest, pk: int) -> HttpResponse:
    """Contest one of her submissions."""
    seat = seat_of(request.user, pk)
    token, text = request.POST.get("token", ""), request.POST.get("text", "")
    try:
        appeals.raise_appeal(user=request.user, token=token, text=text)
    except (InvalidInput, Refused) as error:
        return submission_page(request, seat, token, text=text, error=error)
    messages.success(request, _("Sent. The answer will stand here."))
    query = urlencode({"token": token})
    return redirect(f"{reverse('annotation:submission', args=[pk])}?{query}")


@workers
@require_POST
def rest(request: HttpRequest, pk: int) -> HttpResponse:
    """Suggest no break for some hours."""
    ballot.quiet_for_now(request)
    return redirect("annotation:label", pk)
