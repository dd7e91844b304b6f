"""Datasets: the list, a new one with its counts beforehand, one dataset, its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    QueryDict,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training import filters, snapshots
from training.enums import DatasetState, Kind, Source, Split
from training.forms.datasets import DatasetForm, known_kind
from training.models import Dataset
from training.policies import check_frozen
from training.selectors import datasets as select
from training.selectors import pages
from training.selectors.preview import Preview, preview
from training.services import datasets as services
from webapp.accounts.access import admin_only
from webapp.catalog.enums import Axis
from webapp.core import audit
from webapp.core.errors import InvalidInput
from webapp.core.http import whole_number

PER_PAGE = 30


@admin_only
@never_cache
@require_GET
def dataset_list(request: HttpRequest) -> HttpResponse:
    page = Paginator(select.datasets(), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "tab": "datasets",
        "page": page,
        "rows": [(row, pages.badge_of(row)) for row in page.object_list],
    }
    return render(request, "training/datasets.html", context)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """The filter of a new dataset. `do=count` shows what it would take; else the draft is saved."""
    kind = known_kind(request.POST.get("kind") or request.GET.get("kind"))
    initial = of_round(request.GET) if request.method == "GET" else None
    form = DatasetForm(request.POST or None, kind=kind, initial=initial)
    counted: Preview | None = None
    if request.method == "POST" and form.is_valid():
        try:
            if request.POST.get("do") == "count":
                counted = preview(kind, services.parsed_filter(kind, form.values()))
            else:
                dataset = services.create_dataset(
                    actor=request.user,
                    name=form.cleaned_data["name"],
                    kind=kind,
                    values=form.values(),
                    key=str(form.cleaned_data["key"]),
                )
                return redirect(f"{reverse('training:dataset', args=[dataset.pk])}?count=1")
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
    context = {
        "tab": "datasets",
        "form": form,
        "kind": kind,
        "kinds": Kind.choices,
        "counted": counted,
    }
    return render(request, "training/dataset_new.html", context, status=422 if form.errors else 200)


def of_round(asked: QueryDict) -> dict[str, Any] | None:
    """The form as “Make pairs of these votes” opens it: one unsealed round, one axis."""
    number = whole_number(asked.get("round"))
    round_ = select.unsealed_round(number) if number is not None else None
    if round_ is None:
        return None
    axis = str(asked.get("axis") if asked.get("axis") in round_.axes else round_.axes[0])
    return {
        "name": _("%(round)s: %(axis)s") % {"round": round_.name[:80], "axis": Axis(axis).label},
        "sources": [Source.ARENA.value],
        "rounds": [str(round_.pk)],
        "axis": axis,
        "simulated": round_.simulated,
        "train": 80,
        "reward_model_gate": 20,  # prompts stay in their split for ever: some have to measure
    }


@admin_only
@never_cache
@require_GET
def dataset(request: HttpRequest, pk: int) -> HttpResponse:
    """A draft with its filter, the progress of a freeze, or the frozen set."""
    row = get_object_or_404(select.datasets(), pk=pk)
    context: dict[str, Any] = {
        "tab": "datasets",
        "dataset": row,
        "badge": pages.badge_of(row),
        "asked": pages.asked(row, select.names_of(row)),
        "left": pages.left(row),
        "clashes": pages.clashes(row),
        "balance": pages.balance_rows(row),
    }
    if row.state == DatasetState.FROZEN:
        context |= _frozen(row, request.GET.get("split", ""))
    elif row.state == DatasetState.FREEZING:
        context["progress"] = _progress(row)
    else:
        context["refusal"] = pages.refusal_of(row)
        measured = row.filter.get("reward_model_gate")
        context["unmeasured"] = row.kind == Kind.PREFERENCES and not measured
        if request.GET.get("count"):
            context["counted"] = preview(row.kind, filters.parse(row.kind, row.filter))
    return render(request, "training/dataset.html", context)


def _frozen(row: Dataset, wanted: str) -> dict[str, Any]:
    splits = [(name, str(Split(name).label)) for name in filters.SPLITS if name in row.split_sha256]
    split = wanted if wanted in row.split_sha256 else ""
    return {
        "table": pages.strata_table(row),
        "groups": pages.groups(row),
        "marks": pages.marks(row),
        "reference": pages.reference(row),
        "pictures": pages.pictures(row),
        "splits": [(name, label, row.split_sha256[name]) for name, label in splits],
        "split": split,
        "samples": pages.samples(row, split),
        "columns": pages.column_rows(row),
    }


def _progress(row: Dataset) -> dict[str, Any]:
    found = pages.progress_of(row)
    text = _("%(done)s of %(total)s rows") % {"done": found.value, "total": found.max}
    return {
        "id": "freeze-progress",
        "label": found.stage,
        "value": found.value,
        "max": found.max,
        "text": text if found.max else "",
        "poll_url": reverse("training:dataset_progress", args=[row.pk]),
    }


@admin_only
@never_cache
@require_GET
def dataset_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress alone, asked every two seconds; when the work is done, the whole page."""
    row = get_object_or_404(Dataset, pk=pk)
    if row.state != DatasetState.FREEZING:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = reverse("training:dataset", args=[pk])
        return response
    return render(request, "components/progress.html", _progress(row))


@admin_only
@require_POST
def freeze(request: HttpRequest, pk: int) -> HttpResponse:
    services.freeze_dataset(actor=request.user, dataset=get_object_or_404(Dataset, pk=pk))
    return redirect("training:dataset", pk=pk)


@admin_only
@require_POST
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    services.discard_dataset(actor=request.user, dataset=get_object_or_404(Dataset, pk=pk))
    messages.success(request, _("The draft is put away."))
    return redirect("training:datasets")


@admin_only
@never_cache
@require_GET
def download(request: HttpRequest, pk: int, split: str) -> HttpResponse:
    """One split as JSON Lines, streamed. The same bytes whenever it is asked for."""
    row = get_object_or_404(Dataset, pk=pk)
    check_frozen(row)
    if split not in row.split_sha256:
        raise Http404
    audit.record(actor=request.user, action="download_dataset", obj=row, split=split)
    response = StreamingHttpResponse(
        snapshots.jsonl(snapshots.read_rows(row, split)),
        content_type="application/x-ndjson; charset=utf-8",
    )
    name = f"palate-dataset-{row.pk}-{split}.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return cast(HttpResponse, response)


@admin_only
@never_cache
@require_GET
def manifest(request: HttpRequest, pk: int) -> HttpResponse:
    """What the files are, and the hashes of rows that are gone."""
    row = get_object_or_404(Dataset, pk=pk)
    check_frozen(row)
    response = StreamingHttpResponse(_manifest(row), content_type="application/json")
    name = f"palate-dataset-{row.pk}-manifest.json"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return cast(HttpResponse, response)


def _manifest(row: Dataset) -> Iterator[str]:
    found = snapshots.manifest(row, {}, snapshots.gone_rows(row))
    yield json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
