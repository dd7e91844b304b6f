"""Counterfactual pairs: starting a job, watching it, reviewing a sample."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.forms.counterfactuals import JobForm, ReviewForm
from annotation.forms.errors import point_at
from annotation.models import CounterfactualJob, Project
from annotation.selectors.counterfactuals import (
    JobView,
    jobs_of,
    next_pair,
    view_job,
    view_pair,
)
from annotation.services import counterfactuals as services
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput

PER_PAGE = 20


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def counterfactuals(request: HttpRequest, pk: int) -> HttpResponse:
    """The form and the jobs so far."""
    project = get_object_or_404(Project, pk=pk)
    form = JobForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        try:
            job = services.start_job(
                actor=request.user,
                project=project,
                rewriter=form.cleaned_data["rewriter"],
                options=form.options(),
                key=str(form.cleaned_data["key"]),
            )
        except InvalidInput as error:
            point_at(form, error, key="key_name")
        else:
            return redirect("annotation:counterfactual", pk=pk, job=job.pk)
    page = Paginator(jobs_of(project), PER_PAGE).get_page(request.GET.get("page"))
    context = {"project": project, "tab": "counterfactuals", "form": form, "page": page}
    return render(
        request, "annotation/counterfactuals.html", context, status=422 if form.errors else 200
    )


@admin_only
@never_cache
@require_GET
def counterfactual(request: HttpRequest, pk: int, job: int) -> HttpResponse:
    """Progress while it runs, then balance, refusals and how far the review is."""
    row = _job(pk, job)
    shown = view_job(row)
    context = {"project": row.project, "tab": "counterfactuals", "job": shown}
    return render(
        request,
        "annotation/counterfactual.html",
        {**context, "progress": _progress(shown)},
    )


@admin_only
@never_cache
@require_GET
def counterfactual_progress(request: HttpRequest, pk: int, job: int) -> HttpResponse:
    shown = view_job(_job(pk, job))
    if not shown.running:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = reverse("annotation:counterfactual", args=[pk, job])
        return response
    return render(request, "components/progress.html", _progress(shown))


def _progress(job: JobView) -> dict[str, Any]:
    return {
        "id": "counterfactual-progress",
        "label": _("Rewriting"),
        "value": job.looked_at,
        "max": job.total,
        "text": _("%(done)s of %(total)s answers, %(pairs)s pairs")
        % {"done": job.looked_at, "total": job.total, "pairs": job.pairs},
        "poll_url": reverse("annotation:counterfactual_progress", args=[job.project, job.pk]),
    }


@admin_only
@require_POST
def counterfactual_cancel(request: HttpRequest, pk: int, job: int) -> HttpResponse:
    services.cancel_job(actor=request.user, job=_job(pk, job))
    messages.success(request, _("The job is cancelled. Pairs that were made stay."))
    return redirect("annotation:counterfactual", pk=pk, job=job)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def counterfactual_review(request: HttpRequest, pk: int, job: int) -> HttpResponse:
    """One pair in both directions: accept or reject both. `pair` names one, else a random one."""
    row = _job(pk, job)
    if request.method == "POST":
        return _review(request, row)
    pair = request.GET.get("pair", "") or next_pair(row)
    shown = view_pair(row, pair, diff=bool(request.GET.get("diff"))) if pair else None
    context = {
        "project": row.project,
        "tab": "counterfactuals",
        "job": view_job(row),
        "pair": shown,
        "form": ReviewForm(initial={"pair": pair, "note": shown.note if shown else ""}),
    }
    return render(request, "annotation/counterfactual_review.html", context)


def _review(request: HttpRequest, job: CounterfactualJob) -> HttpResponse:
    here = reverse("annotation:counterfactual_review", args=[job.project_id, job.pk])
    form = ReviewForm(request.POST)
    verdict = request.POST.get("verdict")
    if not form.is_valid() or verdict not in ("accept", "reject"):
        said = " ".join(str(e[0]) for e in form.errors.values()) or _("Accept it or reject it.")
        messages.error(request, said)
        return redirect(f"{here}?{urlencode({'pair': request.POST.get('pair', '')[:32]})}")
    accept = verdict == "accept"
    services.review_pair(
        actor=request.user,
        project=job.project,
        pair=form.cleaned_data["pair"],
        accept=accept,
        note=form.cleaned_data["note"],
    )
    told = _("Accepted, in both directions.") if accept else _("Rejected, in both directions.")
    messages.success(request, told)
    return redirect(here)


def _job(pk: int, job: int) -> CounterfactualJob:
    rows = CounterfactualJob.objects.select_related("project", "created_by")
    return get_object_or_404(rows, pk=job, project=pk)
