"""Small helpers for views."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme


def is_htmx(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def safe_next(request: HttpRequest, default: str) -> str:
    """Where to go after a form: `next` if it stays on this site, else `default`."""
    url = request.POST.get("next") or request.GET.get("next") or ""
    if url_has_allowed_host_and_scheme(
        url, {request.get_host()}, require_https=request.is_secure()
    ):
        return url
    return default


def go_back(request: HttpRequest, default: str) -> HttpResponse:
    return redirect(safe_next(request, default))


def go_on(request: HttpRequest, url: str) -> HttpResponse:
    """To another page. A script that fetched is told where to, so that messages are kept for it."""
    if is_htmx(request):
        return HttpResponse(status=204, headers={"HX-Location": url})
    return redirect(url)


def whole_number(text: str | None) -> int | None:
    """The number that a query names: at most 18 ASCII digits. None for anything else."""
    if text and text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    return None
