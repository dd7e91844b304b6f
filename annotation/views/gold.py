"""Gold items: the list with its doubts, making, correcting and retiring them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from annotation.forms.errors import point_at
from annotation.models import Item, Project
from annotation.selectors import gold as select
from annotation.selectors.projects import active_gold
from annotation.services import gold
from annotation.views.items import access_item, gold_form_of, gold_words, item_context
from annotation.views.manage import act
from annotation.views.words import outcomes_of
from webapp.accounts.access import admin_only
from webapp.core.errors import PalateError
from webapp.core.http import whole_number


@admin_only
@never_cache
@require_GET
def gold_list(request: HttpRequest, pk: int) -> HttpResponse:
    """Gold items, the doubtful first; whom the gate paused; and items that could become gold."""
    project = get_object_or_404(Project, pk=pk)
    rows = select.gold_rows(project)
    hidden, learning = active_gold(project)
    context = {
        "project": project,
        "tab": "gold",
        "rows": [(row, gold_words(project, row.gold)) for row in rows],
        "doubtful": sum(row.doubtful for row in rows),
        "hidden": hidden,
        "learning": learning,
        "gated": select.paused_by_gate(project),
        "proposals": [(item, outcomes_of(item)) for item in _proposals(project)],
    }
    return render(request, "annotation/gold.html", context)


def _proposals(project: Project) -> list[Item]:
    proposals = select.gold_proposals(project)
    for item in proposals:
        item.project = project
    return proposals


@admin_only
@require_POST
def propose(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the chosen decided items gold."""
    project = get_object_or_404(Project, pk=pk)
    chosen = [n for n in map(whole_number, request.POST.getlist("item")) if n is not None]

    def run() -> None:
        n = gold.make_gold_from_decisions(
            actor=request.user,
            project=project,
            items=chosen,
            onboarding="onboarding" in request.POST,
        )
        text = ngettext("%(n)s item is gold now.", "%(n)s items are gold now.", n) % {"n": n}
        messages.success(request, text)

    return act(request, run, "", "annotation:gold", pk)


@admin_only
@require_POST
def make(request: HttpRequest, pk: int, item: str) -> HttpResponse:
    """Make one item gold, or correct its answer; everybody who met it is scored again."""
    row = access_item(pk, item)
    newest = row.gold.order_by("-n").first()
    form = gold_form_of(row, newest, request.POST)
    if form.is_valid():
        try:
            gold.make_gold(
                actor=request.user,
                item=row,
                verdicts=form.verdicts(),
                explanation=form.cleaned_data["explanation"],
                onboarding=form.cleaned_data["onboarding"],
                reason=form.cleaned_data.get("reason", ""),
            )
        except PalateError as error:
            point_at(form, error)
        else:
            messages.success(request, _("The item is gold with this answer."))
            return redirect("annotation:item", pk, row.pk)
    return render(request, "annotation/item.html", item_context(request, row, form), status=422)


@admin_only
@require_POST
def retire(request: HttpRequest, pk: int, item: str) -> HttpResponse:
    """Take a gold item out of use."""
    row = access_item(pk, item)
    return act(
        request,
        lambda: gold.retire_gold(
            actor=request.user, item=row, reason=request.POST.get("reason", "").strip()
        ),
        _("The gold item is retired."),
        "annotation:item",
        pk,
        row.pk,
    )
