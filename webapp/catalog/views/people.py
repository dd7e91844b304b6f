"""Personas: list, one, its versions and consent; an owner's own page."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from webapp.accounts.access import admin_only, roles
from webapp.accounts.enums import Role
from webapp.catalog import selectors
from webapp.catalog.forms import ConsentForm, PersonaForm, VersionForm
from webapp.catalog.models import Persona
from webapp.catalog.services import personas as services
from webapp.core.errors import InvalidInput
from webapp.core.http import go_back

PER_PAGE = 50


@admin_only
@require_GET
def persona_list(request: HttpRequest) -> HttpResponse:
    page = Paginator(selectors.personas(), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "catalog/personas.html", {"page": page})


@admin_only
@require_http_methods(["GET", "POST"])
def add_persona(request: HttpRequest) -> HttpResponse:
    form = PersonaForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            persona = services.create_persona(
                actor=request.user,
                pseudonym=data["pseudonym"],
                summary=data["summary"],
                features=form.features(),
                owner=data["owner"],
                consent_scope=data["consent_scope"],
            )
        except InvalidInput as error:
            name = f"feature_{error.field}" if f"feature_{error.field}" in form.fields else None
            form.add_error(error.field if error.field in form.fields else name, str(error))
        else:
            messages.success(request, _("The persona is in the catalog."))
            return redirect("catalog:persona", pk=persona.pk)
    return render(
        request, "catalog/persona_add.html", {"form": form}, status=422 if form.errors else 200
    )


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def persona(request: HttpRequest, pk: int) -> HttpResponse:
    """One persona; a POST appends a version of its summary."""
    found = get_object_or_404(selectors.personas(), pk=pk)
    form = VersionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.add_persona_version(actor=request.user, persona=found, **form.cleaned_data)
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            messages.success(request, _("The new summary is kept as a version of its own."))
            return redirect("catalog:persona", pk=pk)
    context = {
        "persona": found,
        "features": selectors.labelled_features(found),
        "versions": selectors.persona_versions(found),
        "form": form,
        "consent_form": ConsentForm(initial={"scope": found.consent_scope}),
    }
    status = 422 if form.errors else 200
    return render(request, "catalog/persona.html", context, status=status)


@admin_only
@require_POST
def record_consent(request: HttpRequest, pk: int) -> HttpResponse:
    form = ConsentForm(request.POST)
    if form.is_valid():
        services.record_consent(
            actor=request.user,
            persona=get_object_or_404(Persona, pk=pk),
            scope=form.cleaned_data["scope"],
        )
        messages.success(request, _("The consent is noted."))
    else:
        messages.error(request, _("Say what the person agreed to."))
    return redirect("catalog:persona", pk=pk)


@roles(*Role)
@never_cache
@require_http_methods(["GET", "POST"])
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask first, then erase. For administrators and the persona's owner; 404 for others."""
    found = get_object_or_404(selectors.manageable_personas(request.user), pk=pk)
    if request.method == "GET":
        return render(request, "catalog/persona_withdraw.html", {"persona": found})
    gone = services.withdraw_consent(actor=request.user, persona=found)
    erased = gone.summaries + gone.answers
    messages.success(
        request,
        ngettext(
            "The consent is withdrawn: %(n)s text was erased.",
            "The consent is withdrawn: %(n)s texts were erased.",
            erased,
        )
        % {"n": erased},
    )
    if gone.sealed:
        messages.warning(
            request,
            ngettext(
                "%(n)s of them is in a running round; its battles cannot be shown any more.",
                "%(n)s of them are in a running round; their battles cannot be shown any more.",
                gone.sealed,
            )
            % {"n": gone.sealed},
        )
    return go_back(request, reverse("catalog:my_personas"))


@roles(*Role)
@never_cache
@require_GET
def my_personas(request: HttpRequest) -> HttpResponse:
    """What is kept about the person who looks, and how to take it back."""
    mine = selectors.personas_of(request.user)
    shown = [(persona, selectors.labelled_features(persona)) for persona in mine]
    return render(request, "catalog/my_personas.html", {"personas": shown})
