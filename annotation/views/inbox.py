"""Appeals and reported problems: what annotators say, and what becomes of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.enums import AppealState, Axis
from annotation.forms.errors import point_at
from annotation.forms.review import RESOLUTIONS, AppealForm
from annotation.models import Appeal, Item, Project
from annotation.selectors import review as select
from annotation.selectors.gold import is_in_use, paused_by_gate
from annotation.selectors.items import item_pair
from annotation.services import review_appeals, review_problems
from annotation.views.items import gold_words
from annotation.views.manage import act
from annotation.views.words import outcomes_of, say, tag_words
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput, PalateError

PAGE_SIZE = 30


@admin_only
@never_cache
@require_GET
def appeals(request: HttpRequest, pk: int) -> HttpResponse:
    """What annotators contest: the open ones, the oldest first, or the answered ones."""
    project = get_object_or_404(Project, pk=pk)
    answered = "answered" in request.GET
    rows = select.appeals_of(project, answered=answered)
    context = {
        "project": project,
        "tab": "disputes",
        "section": "appeals",
        "manages": True,
        "waiting": select.waiting(project),
        "answered": answered,
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page", "1")),
    }
    return render(request, "annotation/appeals.html", context)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def appeal(request: HttpRequest, pk: int, appeal: int) -> HttpResponse:
    """One appeal: the answers, her label and her words; upheld or not, with an answer."""
    project = get_object_or_404(Project, pk=pk)
    row = select.appeal_parts(project, appeal)
    if row is None:
        raise Http404
    item = row.lease.item
    gold = item.gold.order_by("-n").first()
    in_use = is_in_use(item, gold)
    form = AppealForm(
        request.POST or None,
        project=project,
        is_gold=in_use,
        initial={axis: getattr(gold, axis) for axis in project.axes} if in_use else {},
    )
    if request.method == "POST" and form.is_valid():
        done = _answer(request, row, form)
        if done is not None:
            return done
    context = {
        "project": project,
        "tab": "disputes",
        "section": "appeals",
        "manages": True,
        "waiting": select.waiting(project),
        "appeal": row,
        "item": item,
        "pair": item_pair(item),
        "form": form,
        "open": row.state == AppealState.OPEN,
        "label": _label_words(row),
        "gold": gold,
        "in_use": in_use,
        "gold_verdicts": gold_words(project, gold),
        "outcomes": outcomes_of(item),
    }
    return render(request, "annotation/appeal.html", context, status=422 if form.errors else 200)


def _label_words(appeal: Appeal) -> dict[str, Any]:
    """Her label as she would say it with the first answer as A."""
    head, project = appeal.lease.head, appeal.lease.item.project
    if head is None or head.is_undo:
        return {}
    return {
        "verdicts": [(Axis(axis).label, say(getattr(head, axis))) for axis in project.axes],
        "tags": tag_words(head.tags),
        "comment": head.comment,
    }


def _answer(request: HttpRequest, row: Appeal, form: AppealForm) -> HttpResponse | None:
    """Do what the manager chose. None: the form says what is missing."""
    answer, project = form.cleaned_data["answer"], row.lease.item.project
    try:
        if "uphold" in request.POST:
            review_appeals.uphold_appeal(
                actor=request.user,
                appeal=row,
                answer=answer,
                verdicts=form.verdicts(),
                retire=form.cleaned_data.get("retire", False),
            )
            messages.success(request, _("Upheld. The annotator reads your answer."))
            _propose(request, project)
        else:
            review_appeals.reject_appeal(actor=request.user, appeal=row, answer=answer)
            messages.success(request, _("Not upheld. The annotator reads your answer."))
    except InvalidInput as error:
        point_at(form, error)
        return None
    except PalateError as error:
        messages.error(request, str(error))
        return redirect("annotation:appeal", project.pk, row.pk)
    return redirect("annotation:appeals", project.pk)


def _propose(request: HttpRequest, project: Project) -> None:
    """Say who could go on now that everybody is scored again."""
    names = [row.member.pseudonym for row in paused_by_gate(project) if row.passes]
    if names:
        text = _("With the corrected gold these would not be paused: %(names)s. See People.")
        messages.info(request, text % {"names": ", ".join(names)})


@admin_only
@never_cache
@require_GET
def problems(request: HttpRequest, pk: int) -> HttpResponse:
    """Items that annotators reported, and what was done about earlier ones."""
    project = get_object_or_404(Project, pk=pk)
    resolved = "resolved" in request.GET
    rows: Any = select.resolved_problems(project) if resolved else select.reported_items(project)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page", "1"))
    context = {
        "project": project,
        "tab": "disputes",
        "section": "problems",
        "manages": True,
        "waiting": select.waiting(project),
        "resolved": resolved,
        "page": page,
        "reported": [] if resolved else select.with_problems(list(page.object_list)),
        "resolutions": RESOLUTIONS,
    }
    return render(request, "annotation/problems.html", context)


@admin_only
@require_POST
def resolve(request: HttpRequest, pk: int, item: int) -> HttpResponse:
    """Resolve the reports about an item."""
    row = get_object_or_404(Item, pk=item, project=pk)

    def run() -> None:
        n = review_problems.resolve_problems(
            actor=request.user,
            item=row,
            to=request.POST.get("to", ""),
            note=request.POST.get("note", "")[:250],
        )
        text = ngettext("%(n)s report is resolved.", "%(n)s reports are resolved.", n)
        messages.success(request, text % {"n": n})

    return act(request, run, "", "annotation:problems", pk)
