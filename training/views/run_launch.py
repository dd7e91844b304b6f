"""Launching: choose a preset and a kind, fill the form, check, launch; a clone is the same form."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from training.engine.config.load import preset_names
from training.forms import offers
from training.forms.runs import RunForm
from training.models import Alert, TrainingRun
from training.selectors.run_pages.settings import flat, resolved
from training.services import runs as services
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput
from webapp.core.http import whole_number


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """`action` of a sent form: check, launch, arithmetic (a part of the page)."""
    asked = request.POST if request.method == "POST" else request.GET
    parent, alert = _origin(asked)
    kind = parent.kind if parent else asked.get("kind", "")
    preset = parent.preset if parent else asked.get("preset", "")
    if kind not in dict(offers.kinds()) or preset not in preset_names():
        if request.method == "POST":
            raise Http404
        context = {"tab": "runs", "presets": offers.presets()}
        return render(request, "training/run_choose.html", context)
    if request.method == "POST":
        return _sent(request, kind, preset, parent, alert)
    form = RunForm(
        kind=kind,
        preset=preset,
        parent=parent,
        changes=_changes(request, parent, alert),
        inputs=services.inputs_of(parent) if parent else None,
        initial=_initial(parent),
    )
    form.check()
    return _page(request, form, alert)


def _origin(asked: QueryDict) -> tuple[TrainingRun | None, Alert | None]:
    """The run that is cloned, and the alert that proposed it."""
    number, alert_number = whole_number(asked.get("from")), whole_number(asked.get("alert"))
    parent = get_object_or_404(TrainingRun, pk=number) if number is not None else None
    if parent is None or alert_number is None:
        return parent, None
    return parent, get_object_or_404(Alert, pk=alert_number, run=parent)


def _changes(
    request: HttpRequest, parent: TrainingRun | None, alert: Alert | None
) -> dict[str, Any]:
    """What the clone begins with: the proposal of an alert or a failure, chosen phrases."""
    if parent is None:
        return {}
    found: dict[str, Any] = dict(alert.changes) if alert else {}
    if request.GET.get("changes"):
        found |= parent.changes
    if phrases := request.GET.getlist("phrase"):
        known = flat(resolved(parent)).get("reward.phrases") or ()
        found["reward.phrases"] = list(dict.fromkeys([*known, *phrases]))
    return found


def _initial(parent: TrainingRun | None) -> dict[str, Any]:
    if parent is None:
        return {}
    return {"name": services.next_name(parent.name), "seed": parent.seed}


def _sent(
    request: HttpRequest, kind: str, preset: str, parent: TrainingRun | None, alert: Alert | None
) -> HttpResponse:
    data, action = request.POST.copy(), request.POST.get("action", "check")
    if fill := request.POST.get("fill"):
        name, _equals, value = fill.partition("=")
        data[name], action = value, "check"
    changes = alert.changes if alert else None
    form = RunForm(data, kind=kind, preset=preset, parent=parent, changes=changes)
    if form.is_valid():
        checked = form.check()
        if action == "launch" and checked.ready:
            try:
                made = _launch(request, form, alert)
            except services.NotReady as error:
                form.tell(error.problems)
            except InvalidInput as error:
                form.add_error(error.field if error.field in form.fields else None, str(error))
            else:
                return redirect("training:run", pk=made.pk)
    if action == "arithmetic":
        return render(request, "training/_run_arithmetic.html", {"form": form})
    return _page(request, form, alert, checked=True)


def _launch(request: HttpRequest, form: RunForm, alert: Alert | None) -> TrainingRun:
    made = services.launch(
        actor=request.user,
        name=form.cleaned_data["name"],
        kind=form.kind,
        preset=form.preset,
        config=form.asked,
        inputs=form.inputs(),
        seed=form.cleaned_data["seed"],
        key=str(form.cleaned_data["key"]),
        parent=form.parent,
        from_alert=alert,
        note=form.cleaned_data["note"],
    )
    messages.success(request, _("“%(name)s” waits in the queue.") % {"name": made.name})
    return made


def _page(
    request: HttpRequest, form: RunForm, alert: Alert | None, *, checked: bool = False
) -> HttpResponse:
    context = {
        "tab": "runs",
        "form": form,
        "kind_label": dict(offers.kinds())[form.kind],
        "alert": alert,
        "ready": checked and not form.errors,
    }
    return render(request, "training/run_new.html", context, status=422 if form.errors else 200)
