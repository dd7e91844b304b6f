"""Overview, prompts, contestants and reading a contestant's answers."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from webapp.accounts.access import admin_only
from webapp.catalog import selectors
from webapp.catalog.enums import MADE_HERE
from webapp.catalog.forms import PromptFilterForm, PromptForm
from webapp.catalog.models import Contestant
from webapp.catalog.services import answers
from webapp.catalog.services import prompts as prompt_services
from webapp.core.chat import authorization
from webapp.core.errors import InvalidInput

PER_PAGE, ANSWERS_PER_PAGE = 50, 10


@admin_only
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    return render(request, "catalog/index.html", {"counts": selectors.catalog_counts()})


@admin_only
@require_GET
def prompt_list(request: HttpRequest) -> HttpResponse:
    form = PromptFilterForm(
        request.GET,
        categories=selectors.prompt_categories(),
        languages=selectors.prompt_languages(),
    )
    wanted = form.cleaned_data if form.is_valid() else {}
    page = Paginator(selectors.prompts(**wanted), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "catalog/prompts.html", {"page": page, "form": form})


@admin_only
@require_http_methods(["GET", "POST"])
def add_prompt(request: HttpRequest) -> HttpResponse:
    form = PromptForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            prompt_services.get_or_create_prompt(
                messages=data["text"], category=data["category"], language=data["language"]
            )
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            messages.success(request, _("The prompt is in the catalog."))
            return redirect("catalog:prompts")
    return render(
        request, "catalog/prompt_add.html", {"form": form}, status=422 if form.errors else 200
    )


@admin_only
@require_GET
def contestant_list(request: HttpRequest) -> HttpResponse:
    page = Paginator(selectors.contestants(), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "catalog/contestants.html", {"page": page, "made_here": MADE_HERE})


@admin_only
@require_GET
def contestant(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(selectors.contestants(), pk=pk)
    return render(request, "catalog/contestant.html", contestant_context(found))


def contestant_context(found: Contestant) -> dict[str, Any]:
    """What the page of a contestant shows. Of a key only the name, and whether it is set here."""
    key = str(found.endpoint.get("key", ""))
    return {
        "contestant": found,
        "sampling": sorted(found.sampling.items()),
        "made_here": found.kind in MADE_HERE,
        "key_is_set": bool(authorization(key)),
    }


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def contestant_answers(request: HttpRequest, pk: int) -> HttpResponse:
    """GET warns. POST shows answers that are under no live seal, and notes that they were met."""
    found = get_object_or_404(Contestant, pk=pk)
    if request.method == "GET":
        return render(request, "catalog/contestant_answers.html", {"contestant": found})
    pages = Paginator(selectors.readable_texts(found), ANSWERS_PER_PAGE)
    page = pages.get_page(request.POST.get("page"))
    shown = [selectors.as_readable(text) for text in page.object_list]
    answers.read_answers(
        actor=request.user, contestant=found, answer_ids=[answer.pk for answer in shown]
    )
    context = {"contestant": found, "page": page, "answers": shown, "confirmed": True}
    return render(request, "catalog/contestant_answers.html", context)
