"""Log lines without personal data, and one place where refusals become pages."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from webapp.core.errors import PalateError

log = logging.getLogger("palate.request")
error_log = logging.getLogger("palate.error")
Handler = Callable[[HttpRequest], HttpResponse]
API = "/api/"
FRAMES = 40  # the innermost of a stack


class RequestLogMiddleware:
    """Log method, route, status and duration. Never a path with ids, a query string or a user."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self.get_response(request)
        match = request.resolver_match
        log.info(
            "request",
            extra={
                "method": request.method,
                "route": match.view_name if match else "",
                "status": response.status_code,
                "ms": round((time.perf_counter() - started) * 1000, 1),
            },
        )
        return response


def log_server_error(sender: Any, request: HttpRequest | None = None, **_more: Any) -> None:
    """Log what broke and where: types, files, lines, functions. A message may hold a text."""
    error = sys.exc_info()[1]
    match = request.resolver_match if request else None
    chain: list[dict[str, Any]] = []
    while error is not None and len(chain) < 5:
        kind = type(error)
        chain.append({"type": f"{kind.__module__}.{kind.__qualname__}", "stack": _stack(error)})
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    error_log.error(
        "server error", extra={"route": match.view_name if match else "", "errors": chain}
    )


def _stack(error: BaseException) -> list[str]:
    """Like "arena/views/rounds.py:150 compose", the outermost call first."""
    frames = [
        f"{_short(frame.f_code.co_filename)}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return frames[-FRAMES:]


def _short(file: str) -> str:
    """The path below the project or below the folder of the packages."""
    path = Path(file)
    if path.is_relative_to(settings.BASE_DIR):
        file = str(path.relative_to(settings.BASE_DIR))
    return file.rpartition("site-packages/")[2]


got_request_exception.connect(log_server_error, dispatch_uid="palate.error")


class ErrorMiddleware:
    """Turn a `PalateError` into a page (or JSON for scripts) with its status and message.

    A NUL character, which PostgreSQL cannot keep in any text, is answered before any view.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _has_nul(request.COOKIES.values()):  # no page: its header would look for the session
            return HttpResponseBadRequest(nul_message(), content_type="text/plain; charset=utf-8")
        if _has_nul(_values(request.GET)):
            return _malformed(request)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        texts = [value for value in kwargs.values() if isinstance(value, str)]
        # An API view reads its own body; its serializers refuse NUL.
        posted = [] if getattr(view, "csrf_exempt", False) else _values(request.POST)
        return _malformed(request) if _has_nul([*texts, *posted]) else None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, PalateError):
            return None
        if request.headers.get("Accept", "").startswith("application/json"):
            body = {"code": exception.code, "message": str(exception), "field": exception.field}
            return JsonResponse(body, status=exception.status)
        return render(request, "error.html", {"error": exception}, status=exception.status)


def _values(sent: Any) -> list[str]:
    """Names and values of a query or a form."""
    return [text for name, values in sent.lists() for text in (name, *values)]


def _has_nul(texts: Iterable[str]) -> bool:
    return any("\0" in text for text in texts)


def _malformed(request: HttpRequest) -> HttpResponse:
    """400: the page for people, the common error shape for programs."""
    if not request.path.startswith(API):
        raise BadRequest("NUL")
    body = {"code": "nul", "message": nul_message(), "fields": {}}
    return JsonResponse(body, status=400)


def nul_message() -> str:
    return _("A NUL character cannot be used here.")
