"""Pages on users, invitations and API tokens."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from knox.models import AuthToken

from webapp.accounts import services
from webapp.accounts.access import admin_only
from webapp.accounts.enums import Role
from webapp.accounts.forms import AcceptForm, InviteForm, TokenForm
from webapp.accounts.models import Invitation, User
from webapp.core.errors import InvalidInput, Refused


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def invitations(request: HttpRequest) -> HttpResponse:
    """List invitations and users; make an invitation and show its link once."""
    form = InviteForm(request.POST or None)
    link = ""
    if request.method == "POST" and form.is_valid():
        _invitation, token = services.invite(
            actor=request.user, role=form.cleaned_data["role"], note=form.cleaned_data["note"]
        )
        link = request.build_absolute_uri(reverse("accounts:accept", args=[token]))
        form = InviteForm()
    context = {
        "form": form,
        "new_link": link,
        "invitations": Invitation.objects.select_related("used_by", "created_by")[:200],
        "users": User.objects.order_by("role", "username"),
    }
    return render(request, "accounts/invitations.html", context)


@admin_only
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    services.withdraw_invitation(
        actor=request.user, invitation=get_object_or_404(Invitation, pk=pk)
    )
    messages.success(request, _("The invitation is withdrawn."))
    return redirect("accounts:invitations")


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def accept(request: HttpRequest, token: str) -> HttpResponse:
    """Turn an invitation link into an account and log in."""
    try:
        invitation = services.open_invitation(token)
    except Refused as refusal:
        return render(request, "accounts/invitation_refused.html", {"error": refusal}, status=410)
    form = AcceptForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = services.accept_invitation(token=token, **form.cleaned_data)
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("home")
    return render(request, "accounts/accept.html", {"form": form, "invitation": invitation})


@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """A person's own API tokens; a new one is shown once."""
    user = cast(User, request.user)
    form, new_token = TokenForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        new_token = services.create_api_token(user=user, name=form.cleaned_data["name"])
        form = TokenForm()
    context = {
        "form": form,
        "new_token": new_token,
        "tokens": AuthToken.objects.filter(user=user).order_by("-created"),
    }
    return render(request, "accounts/tokens.html", context)


@require_POST
def revoke(request: HttpRequest, key: str) -> HttpResponse:
    services.revoke_api_token(user=cast(User, request.user), key=key)
    messages.success(request, _("The token is revoked."))
    return redirect("accounts:tokens")


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Send each role to where its work is."""
    user = cast(User, request.user)
    if user.role == Role.ADMIN:
        return redirect("arena:round_list")
    if user.role == Role.ANNOTATOR:
        return redirect("annotation:work")
    if user.role == Role.RATER:
        return redirect("arena:vote")
    return redirect("arena:leaderboard")
