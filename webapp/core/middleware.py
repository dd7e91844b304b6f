"""One log line per request without personal data, and one place where refusals become pages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from webapp.core.errors import PalateError

log = logging.getLogger("palate.request")
Handler = Callable[[HttpRequest], HttpResponse]


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


class ErrorMiddleware:
    """Turn a `PalateError` into a page (or JSON for scripts) with its status and message."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, PalateError):
            return None
        if request.headers.get("Accept", "").startswith("application/json"):
            body = {"code": exception.code, "message": str(exception), "field": exception.field}
            return JsonResponse(body, status=exception.status)
        return render(request, "error.html", {"error": exception}, status=exception.status)
