"""Signing in, and what becomes of a form that was sent when the login had ended."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import REASON_NO_CSRF_COOKIE
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from webapp.accounts.unsent import FIELD, Unsent, pack, unpack, unsent
from webapp.core.http import is_htmx

log = logging.getLogger("palate.request")


@method_decorator(
    [login_not_required, sensitive_post_parameters(), csrf_protect, never_cache], name="dispatch"
)
class SignIn(LoginView):
    """The form to sign in. What waits to be sent comes back as a page that offers to send it."""

    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        waiting = unpack(request.POST.get(FIELD, ""))
        if waiting and request.user.is_authenticated:  # signed in meanwhile in another tab
            return send_again(request, waiting)
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        waiting = unpack(self.request.POST.get(FIELD, ""))
        return super().get_context_data(**kwargs, **_context(waiting))

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        waiting = unpack(self.request.POST.get(FIELD, ""))
        return send_again(self.request, waiting) if waiting else response


class SignedOutMiddleware(LoginRequiredMiddleware):
    """Ask for a login. A script gets 401; a form that was sent is kept in the page that asks."""

    # The stubs allow nothing but a redirect; Django takes any response.
    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponseBase:
        if is_htmx(request):
            return _tell_script(request)
        waiting = unsent(request)
        return (
            ask(request, waiting) if waiting else super().handle_no_permission(request, view_func)
        )


def _tell_script(request: HttpRequest) -> HttpResponse:
    """401, and no cookie at all: it may arrive after the answer to a login in another tab.

    Neither a redirect, for the page of the login sets a token against forgery, nor the removal of
    the cookie of a session that is gone.
    """
    request.COOKIES.pop(settings.SESSION_COOKIE_NAME, None)
    text = _("You have been signed out.")
    return HttpResponse(text, status=401, content_type="text/plain; charset=utf-8")


def ask(request: HttpRequest, waiting: Unsent) -> HttpResponse:
    """401: the form to sign in, which carries what was sent."""
    context = {"form": AuthenticationForm(request), "next": waiting.back, **_context(waiting)}
    response = render(request, "registration/login.html", context, status=401)
    add_never_cache_headers(response)
    return response


def send_again(request: HttpRequest, waiting: Unsent, status: int = 200) -> HttpResponse:
    """The form as it was sent, to be sent by a click."""
    response = render(request, "accounts/send_again.html", {"waiting": waiting}, status=status)
    add_never_cache_headers(response)
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: a page from before the last login can send its form again; a foreign site's cannot."""
    route = request.resolver_match.view_name if request.resolver_match else ""
    log.warning("forgery check failed", extra={"route": route, "reason": reason})
    cookie_missing = reason == REASON_NO_CSRF_COOKIE and request.path == reverse("accounts:login")
    waiting = None
    if _from_this_site(request) and not cookie_missing and not is_htmx(request):
        waiting = unsent(request)
    if waiting is None:
        return render(request, "403_csrf.html", status=403)
    if not request.user.is_authenticated:
        return ask(request, waiting)
    return send_again(request, waiting, status=403)


def _from_this_site(request: HttpRequest) -> bool:
    """By headers that a page cannot set. The first holds behind proxies that change the host."""
    if request.headers.get("Sec-Fetch-Site") == "same-origin":
        return True
    return request.headers.get("Origin") == f"{request.scheme}://{request.get_host()}"


def _context(waiting: Unsent | None) -> dict[str, Any]:
    return {"waiting": waiting, FIELD: pack(waiting) if waiting else ""}
