"""The items of a project for its managers: the list, one item, and pairs from the catalog."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.enums import Axis, ItemFlag, ItemKind, ItemState
from annotation.forms.errors import point_at
from annotation.forms.review import ContestantsForm, GoldForm
from annotation.models import Appeal, GoldItem, Item, Project
from annotation.selectors import items as select
from annotation.selectors.review import labels_of
from annotation.services import catalog_pairs, items
from annotation.services.exposures import note_met
from annotation.views.manage import act
from annotation.views.words import label_rows, outcomes_of, say
from webapp.accounts.access import admin_only
from webapp.catalog import selectors as catalog
from webapp.catalog.enums import Where
from webapp.catalog.models import Answer, Prompt
from webapp.core.errors import InvalidInput, PalateError
from webapp.core.http import whole_number

BULK_LIMIT = 5000
PROMPTS_SHOWN = 30


@admin_only
@never_cache
@require_GET
def item_list(request: HttpRequest, pk: int) -> HttpResponse:
    """A page of items by filters. Texts are searched in bounded steps."""
    project = get_object_or_404(Project, pk=pk)
    filters = _filters(request)
    page = select.item_page(
        project,
        filters,
        after=whole_number(request.GET.get("after")),
        before=whole_number(request.GET.get("before")),
    )
    counts = select.state_counts(project)
    context = {
        "project": project,
        "tab": "items",
        "filters": filters,
        "page": page,
        "total": sum(counts.values()),
        "states": [(s.value, s.label, counts[s]) for s in ItemState if counts.get(s)],
        "flags": ItemFlag.choices,
        "kinds": ItemKind.choices,
        "outcomes": select.OUTCOMES.items(),
        "strata": select.item_strata(project),
        "held": select.held_reasons(project) if filters.state == ItemState.HELD else [],
    }
    return render(request, "annotation/items.html", context)


def _filters(request: HttpRequest) -> select.Filters:
    """What the query names; unknown names are left out."""
    query = request.GET
    state, flag, kind = query.get("state", ""), query.get("flag", ""), query.get("kind", "")
    outcome, stratum = query.get("outcome", ""), query.get("stratum", "")
    return select.Filters(
        state=state if state in ItemState.values else "",
        flag=flag if flag in ItemFlag.values else "",
        stratum=stratum or None,
        kind=kind if kind in ItemKind.values else "",
        outcome=outcome if outcome in select.OUTCOMES else "",
        source=query.get("source", "").strip()[:200],
        text=query.get("q", "").strip()[:200],
    )


@admin_only
@require_POST
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Give out or drop the chosen items, or everything that is held for one reason."""
    project = get_object_or_404(Project, pk=pk)
    do = request.POST.get("do", "")
    found = [n for n in map(whole_number, request.POST.getlist("item")) if n is not None]
    if request.POST.get("flag") in ItemFlag.values:
        found = select.held_with(project, request.POST["flag"], BULK_LIMIT)

    def run() -> None:
        if not found:
            raise InvalidInput(_("Choose at least one item."), field="item")
        if do == "release":
            n = items.release_items(actor=request.user, project=project, items=found)
            messages.success(request, _("Given out: %(n)s.") % {"n": n})
        elif do == "drop":
            n = items.drop_items(actor=request.user, project=project, items=found)
            messages.success(request, _("Dropped: %(n)s.") % {"n": n})
        else:
            raise InvalidInput(_("There is nothing of that kind to do."), field="do")

    return act(request, run, "", "annotation:items", pk)


def access_item(pk: int, name: str) -> Item:
    """An item of this project by its number or public id, else 404."""
    project = get_object_or_404(Project, pk=pk)
    item = select.find_item(project, name)
    if item is None:
        raise Http404
    return item


@admin_only
@never_cache
@require_GET
def item(request: HttpRequest, pk: int, item: str) -> HttpResponse:
    """One item: texts, labels, decisions, gold, reports, appeals; producers where they may be."""
    row = access_item(pk, item)
    return render(request, "annotation/item.html", item_context(request, row))


def item_context(
    request: HttpRequest, item: Item, gold_form: GoldForm | None = None
) -> dict[str, Any]:
    """What the page of an item shows. Labels of a disputed item are folded away: who is to
    decide it blind should not meet them by chance.
    """
    producers = select.producers_of(item)
    if producers is not None and (producers.first or producers.second):
        note_met(user=request.user, item=item, where=Where.AUDITED)
    newest = item.gold.select_related("created_by").order_by("-n").first()
    hidden = item.state == ItemState.DISPUTED and "labels" not in request.GET
    return {
        "project": item.project,
        "tab": "items",
        "item": item,
        "pair": select.item_pair(item),
        "erased": not hasattr(item, "body"),
        "producers": producers,
        "axes_names": [Axis(axis).label for axis in item.project.axes],
        "outcomes": outcomes_of(item),
        "labels": [] if hidden else label_rows(labels_of(item, first_left=True), item.project),
        "labels_hidden": hidden,
        "history": [(row, Axis(row.axis).label) for row in select.decision_history(item)],
        "gold": newest,
        "gold_verdicts": gold_words(item.project, newest),
        "gold_form": gold_form or gold_form_of(item, newest),
        "problems": item.problems.select_related("member").order_by("pk"),
        "appeals": _appeals(item),
    }


def _appeals(item: Item) -> list[Appeal]:
    rows = Appeal.objects.filter(lease__item=item).select_related("lease__member", "answered_by")
    return list(rows.order_by("pk"))


def gold_form_of(item: Item, newest: GoldItem | None, data: Any = None) -> GoldForm:
    """The form that makes an item gold, or corrects what is known."""
    initial: dict[str, Any] = {}
    if newest is not None:
        initial = {axis: getattr(newest, axis) for axis in item.project.axes}
        initial |= {"explanation": newest.explanation, "onboarding": newest.onboarding}
    else:
        for axis in item.project.axes:
            decision = getattr(item, f"{axis}_decision")
            initial[axis] = decision.verdict if decision else ""
    return GoldForm(data, project=item.project, correction=newest is not None, initial=initial)


def gold_words(project: Project, gold: GoldItem | None) -> list[tuple[Any, Any]]:
    """The known answer by axis, A being the first answer."""
    if gold is None:
        return []
    return [(Axis(axis).label, say(getattr(gold, axis))) for axis in project.axes]


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def add_pairs(request: HttpRequest, pk: int) -> HttpResponse:
    """Items from answers of the catalog: two of them, or all that two contestants share."""
    project = get_object_or_404(Project, pk=pk)
    form = ContestantsForm(request.POST if "contestants" in request.POST else None)
    if request.method == "POST":
        done = _add_shared(request, project, form) if form.is_bound else _add_one(request, project)
        if done is not None:
            return done
    text = request.GET.get("q", "").strip()[:200]
    prompt = Prompt.objects.filter(pk=whole_number(request.GET.get("prompt")) or 0).first()
    context = {
        "project": project,
        "tab": "items",
        "form": form,
        "text": text,
        "prompts": list(catalog.prompts(text=text).order_by("-pk")[:PROMPTS_SHOWN]),
        "prompt": prompt,
        "answers": list(select.answers_to(prompt)[:100]) if prompt else [],
    }
    status = 422 if form.errors else 200
    return render(request, "annotation/add_pairs.html", context, status=status)


def _add_shared(
    request: HttpRequest, project: Project, form: ContestantsForm
) -> HttpResponse | None:
    if not form.is_valid():
        return None
    try:
        added, rest = catalog_pairs.add_catalog_pairs(
            actor=request.user,
            project=project,
            first=form.cleaned_data["first"],
            second=form.cleaned_data["second"],
        )
    except PalateError as error:
        point_at(form, error)
        return None
    text = _("Items added: %(n)s.") % {"n": added}
    if rest:
        text += " " + _("%(rest)s pairs are left; add again for more.") % {"rest": rest}
    messages.success(request, text)
    return redirect("annotation:items", project.pk)


def _add_one(request: HttpRequest, project: Project) -> HttpResponse:
    here = f"{reverse('annotation:add_pairs', args=[project.pk])}?prompt={_number(request)}"
    chosen = [whole_number(text) for text in request.POST.getlist("answer")]
    rows = Answer.objects.select_related("prompt", "contestant", "body").in_bulk(
        [pk for pk in chosen if pk is not None]
    )
    if len(rows) != 2:
        messages.error(request, _("Choose two answers."))
        return redirect(here)
    first, second = (rows[pk] for pk in chosen if pk in rows)
    try:
        added = catalog_pairs.add_catalog_pair(
            actor=request.user, project=project, first=first, second=second
        )
    except PalateError as error:
        messages.error(request, str(error))
        return redirect(here)
    messages.success(
        request, _("The item is added.") if added.new else _("The project had this pair already.")
    )
    return redirect("annotation:item", project.pk, added.item_id)


def _number(request: HttpRequest) -> int:
    return whole_number(request.POST.get("prompt")) or 0
