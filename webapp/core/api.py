"""What all APIs share: one error shape and role permissions."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler

from webapp.core.errors import PalateError


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Every error is `{"code", "message", "fields"}`; `fields` names what to correct."""
    if isinstance(exc, PalateError):
        fields: dict[str, Any] = {exc.field: [str(exc)]} if exc.field else {}
        body = {"code": exc.code, "message": str(exc), "fields": fields}
        return Response(body, status=exc.status)
    response = drf_exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, ValidationError):
        fields = exc.detail if isinstance(exc.detail, dict) else {"non_field_errors": exc.detail}
        response.data = {
            "code": "invalid",
            "message": _("The request is not valid."),
            "fields": fields,
        }
    elif isinstance(exc, APIException):
        response.data = {"code": exc.default_code, "message": str(exc.detail), "fields": {}}
    else:
        response.data = {"code": "not_found", "message": _("Not found."), "fields": {}}
    return response
