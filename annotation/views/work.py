"""An annotator's projects, guidelines and history."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotation.selectors import history as select
from annotation.selectors import tasks
from annotation.selectors.work import Seat, newest_guideline, seat_of, seats_of
from annotation.services.labels import UNDO_DEPTH
from annotation.services.reading import confirm_guidelines
from annotation.views.labelling import workers
from annotation.views.words import tag_words
from webapp.core.errors import PalateError
from webapp.core.http import safe_next, whole_number
from webapp.core.markdown import render as rendered

PAGE = 25


@workers
@never_cache
@require_GET
def work(request: HttpRequest) -> HttpResponse:
    """The projects that she works in, and where to go on."""
    return render(request, "annotation/work.html", {"seats": seats_of(request.user)})


@workers
@never_cache
@require_http_methods(["GET", "POST"])
def guidelines(request: HttpRequest, pk: int) -> HttpResponse:
    """The newest guidelines. By POST she says that she has read them."""
    seat = seat_of(request.user, pk)
    project = seat.member.project
    if request.method == "POST":
        number = whole_number(request.POST.get("guideline")) or 0
        confirm_guidelines(user=request.user, project=project, guideline=number)
        return redirect(safe_next(request, reverse("annotation:label", args=[pk])))
    row = newest_guideline(pk)
    context = {
        "project": project,
        "seat": seat,
        "guideline": row,
        "html": rendered(row.text) if row else "",
        "confirm": not seat.has_read or seat.is_changed,
    }
    return render(request, "annotation/guidelines.html", context)


@workers
@never_cache
@require_GET
def history(request: HttpRequest, pk: int) -> HttpResponse:
    """What she submitted, as she saw it, and what only she is told about her work."""
    seat = seat_of(request.user, pk)
    page = Paginator(select.submissions(seat.member), PAGE).get_page(request.GET.get("page"))
    leases = list(page.object_list)
    appeals = select.appeals_of(leases)
    recent = select.recent_tokens(seat.member, UNDO_DEPTH)
    context = {
        "project": seat.member.project,
        "progress": seat.progress,
        "page": page,
        "rows": [select.history_row(row, appeals.get(row.pk), recent) for row in leases],
        "signals": select.private_signals(seat.member),
        "aside": seat.member.aside_at,
    }
    return render(request, "annotation/history.html", context)


@workers
@never_cache
@require_GET
def submission(request: HttpRequest, pk: int) -> HttpResponse:
    """One of her submissions with its texts, to contest it or take it back."""
    return submission_page(request, seat_of(request.user, pk), request.GET.get("token", ""))


def submission_page(
    request: HttpRequest,
    seat: Seat,
    token: str,
    *,
    text: str = "",
    error: PalateError | None = None,
) -> HttpResponse:
    project = seat.member.project
    lease = select.own_submission(seat.member, token)
    if lease is None:
        messages.error(request, _("This is not among your submissions; it may be taken back."))
        return redirect("annotation:history", project.pk)
    appeal = select.appeals_of([lease]).get(lease.pk)
    recent = select.recent_tokens(seat.member, UNDO_DEPTH)
    row = select.history_row(lease, appeal, recent)
    context = {
        "project": project,
        "row": row,
        "tags": tag_words(row.tags),
        "pair": tasks.blind_pair(lease),
        "text": text,
        "error": error,
    }
    status = error.status if error else 200
    return render(request, "annotation/submission.html", context, status=status)
