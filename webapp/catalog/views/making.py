"""Contestants whose answers are made here: adding, changing, trying out."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import admin_only
from webapp.catalog import selectors
from webapp.catalog.contestant_forms import FORMS, MakingForm
from webapp.catalog.enums import MADE_HERE, ContestantKind
from webapp.catalog.models import Contestant
from webapp.catalog.services.making import (
    Making,
    add_contestant,
    change_contestant,
    try_contestant,
)
from webapp.catalog.views.things import contestant_context
from webapp.core.errors import InvalidInput, PalateError
from webapp.core.http import whole_number


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def add(request: HttpRequest, kind: str) -> HttpResponse:
    """A new contestant; `?copy=` begins with another's settings. Sent twice, it is added once."""
    if kind not in FORMS:
        raise Http404
    source = whole_number(request.GET.get("copy"))
    initial = {}
    if source is not None:
        found = get_object_or_404(Contestant, pk=source, kind=kind)
        initial = FORMS[kind].initial_of(found)
    form = FORMS[kind](request.POST or None, initial=initial)
    return _page(request, form, None)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Other settings, until there are answers. Name and version stay."""
    contestant = get_object_or_404(Contestant, pk=pk, kind__in=MADE_HERE)
    form = FORMS[contestant.kind](
        request.POST or None, initial=FORMS[contestant.kind].initial_of(contestant)
    )
    for name in ("name", "version"):
        form.fields[name].disabled = True
    return _page(request, form, contestant)


def _page(request: HttpRequest, form: MakingForm, contestant: Contestant | None) -> HttpResponse:
    """Save, or try out first: both buttons belong to one form."""
    context: dict[str, Any] = {"form": form, "contestant": contestant}
    if request.method == "POST" and form.is_valid():
        try:
            making = form.making()
            if "try" in request.POST:
                context["trial"] = try_contestant(actor=request.user, contestant=_unsaved(making))
                return render(request, "catalog/contestant_form.html", context)
            saved = _saved(request, form, contestant, making)
        except PalateError as error:
            form.refuse(error.field if isinstance(error, InvalidInput) else "", str(error))
        else:
            messages.success(request, _("The contestant is saved. Try it out before a round."))
            return redirect("catalog:contestant", pk=saved.pk)
    status = 422 if form.errors else 200
    return render(request, "catalog/contestant_form.html", context, status=status)


def _unsaved(making: Making) -> Contestant:
    return Contestant(**making.columns())


def _saved(
    request: HttpRequest, form: MakingForm, contestant: Contestant | None, making: Making
) -> Contestant:
    data = form.cleaned_data
    if contestant is not None:
        return change_contestant(
            actor=request.user, contestant=contestant, making=making, vendor=data["vendor"]
        )
    baseline = making.kind == ContestantKind.CHECKPOINT
    return add_contestant(
        actor=request.user,
        name=data["name"],
        version=data["version"],
        vendor=data["vendor"],
        making=making,
        provenance={"baseline": True} if baseline else {},
    )


@admin_only
@never_cache
@require_POST
def try_out(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask it once, and say exactly what is wrong."""
    contestant = get_object_or_404(selectors.contestants(), pk=pk, kind__in=MADE_HERE)
    trial = try_contestant(actor=request.user, contestant=contestant)
    context = contestant_context(contestant) | {"trial": trial}
    return render(request, "catalog/contestant.html", context)
