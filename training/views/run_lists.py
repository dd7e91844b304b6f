"""Pages over many runs: the list with queue and devices, a comparison, storage, the alert rules."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from training.enums import RunKind, RunState
from training.models import Checkpoint, Dataset
from training.selectors import retention
from training.selectors.run_pages import compare as comparing
from training.selectors.run_pages import lists
from training.services import retention as removing
from training.words.rules import RULES
from webapp.accounts.access import admin_only
from webapp.core.http import whole_number

PER_PAGE = 30
MOST = 5  # runs of a comparison


@admin_only
@never_cache
@require_GET
def run_list(request: HttpRequest) -> HttpResponse:
    """All runs, pinned ones first, and who holds which device."""
    kind, state = request.GET.get("kind", ""), request.GET.get("state", "")
    number = whole_number(request.GET.get("dataset"))
    page = Paginator(lists.runs(kind, state, number), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "tab": "runs",
        "page": page,
        "rows": lists.run_rows(list(page.object_list)),
        "devices": lists.device_rows(),
        "usual_wait": lists.usual_wait(),
        "kinds": RunKind.choices,
        "states": [("active", _("waiting or at work")), *RunState.choices],
        "kind": kind,
        "state": state,
        "dataset": Dataset.objects.filter(pk=number).first() if number is not None else None,
    }
    return render(request, "training/runs.html", context)


@admin_only
@never_cache
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Two to five runs: curves over one another, what differs in their settings, outcomes."""
    asked = [n for text in request.GET.getlist("run") if (n := whole_number(text)) is not None]
    chosen = lists.may_compare(list(dict.fromkeys(asked))[:MOST])
    context: dict[str, Any] = {"tab": "runs", "most": MOST, "runs": chosen}
    if len(chosen) >= 2:
        context["comparison"] = comparing.compare(chosen)
    return render(request, "training/run_compare.html", context)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def storage(request: HttpRequest) -> HttpResponse:
    """What could be deleted and why everything else stays; POST deletes what was chosen."""
    if request.method == "POST":
        asked = [
            n for t in request.POST.getlist("checkpoint") if (n := whole_number(t)) is not None
        ]
        rows = Checkpoint.objects.filter(pk__in=asked, removed_at=None)
        if request.POST.get("confirm") == "1":
            freed = removing.remove(actor=request.user, checkpoints=list(rows))
            messages.success(
                request, _("%(size)s are free again.") % {"size": filesizeformat(freed)}
            )
            return redirect("training:run_storage")
        chosen = list(rows.select_related("run"))
        size = sum(row.size for row in chosen)
        context = {"tab": "storage", "chosen": chosen, "size": size}
        return render(request, "training/run_storage_confirm.html", context)
    plan = retention.plan()
    kept = [(k.checkpoint, comparing.why(k.why)) for k in plan.kept if k.why != "quota"]
    may = [k.checkpoint for k in plan.kept if k.why == "quota"]
    context = {"tab": "storage", "plan": plan, "kept": kept, "may": may}
    return render(request, "training/run_storage.html", context)


@admin_only
@require_GET
def rules(request: HttpRequest) -> HttpResponse:
    """The catalogue of alert rules: symptom, cause, remedy, and the limits that they use."""
    context = {"tab": "rules", "rules": list(RULES.items()), "limits": comparing.limits()}
    return render(request, "training/run_rules.html", context)
