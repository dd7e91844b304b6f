"""What all APIs share: one error shape and role permissions."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler

from webapp.core.errors import PalateError


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Every error is `{"code", "message", "fields"}`; `fields` names what to correct."""
    if isinstance(exc, PalateError):
        fields: dict[str, Any] = {exc.field: [str(exc)]} if exc.field else {}
        body = {"code": exc.code, "message": _sendable(str(exc)), "fields": _sendable(fields)}
        return Response(body, status=exc.status)
    if isinstance(exc, RequestDataTooBig):
        body = {"code": "too_large", "message": _("The request is too large."), "fields": {}}
        return Response(body, status=413)
    response = drf_exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, ValidationError):
        fields = exc.detail if isinstance(exc.detail, dict) else {"non_field_errors": exc.detail}
        response.data = {
            "code": "invalid",
            "message": _("The request is not valid."),
            "fields": _sendable(fields),
        }
    elif isinstance(exc, APIException):
        response.data = {"code": exc.default_code, "message": str(exc.detail), "fields": {}}
    else:
        response.data = {"code": "not_found", "message": _("Not found."), "fields": {}}
    return response


def _sendable(said: Any) -> Any:
    """Refusals quote what was sent; half a surrogate pair in it has no UTF-8 form."""
    if isinstance(said, dict):
        return {_sendable(str(name)): _sendable(value) for name, value in said.items()}
    if isinstance(said, list | tuple):
        return [_sendable(value) for value in said]
    return str(said).encode("utf-8", "backslashreplace").decode("utf-8")
