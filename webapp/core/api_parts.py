"""What the APIs of all domains share: the shape of refusals, responses to list, paging."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.core.exceptions import RequestDataTooBig
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.core.errors import Refused

HIGHEST = 2**63 - 1
BODY_LIMIT = 8 * 1024 * 1024


class ErrorSerializer(serializers.Serializer[Any]):
    """Every refusal: a stable code, a sentence for people, and the fields to correct."""

    code = serializers.CharField()
    message = serializers.CharField()
    fields = serializers.DictField()  # type: ignore[assignment]


def number(name: str, text: str = "") -> OpenApiParameter:
    """A path parameter that names a row by its number."""
    kind = {"type": "integer", "minimum": 1, "maximum": HIGHEST}
    return OpenApiParameter(name, kind, OpenApiParameter.PATH, description=text)


NUMBER = number("id")
REFUSALS = {
    401: OpenApiResponse(ErrorSerializer, "Sign in or send a token."),
    403: OpenApiResponse(ErrorSerializer, "Not allowed for this person."),
}
READ = {
    400: OpenApiResponse(ErrorSerializer, "The query is not valid."),
    404: OpenApiResponse(ErrorSerializer, "There is no such object."),
    409: OpenApiResponse(ErrorSerializer, "The state does not allow it: the round is sealed …"),
    422: OpenApiResponse(ErrorSerializer, "The value does not exist here."),
    **REFUSALS,
}


class LargeJSONParser(BaseParser):
    """JSON beyond DATA_UPLOAD_MAX_MEMORY_SIZE, for the few views that take many rows at once."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        request = (parser_context or {})["request"]
        if int(request.META.get("CONTENT_LENGTH") or 0) > BODY_LIMIT:
            raise RequestDataTooBig
        return JSONParser().parse(stream, media_type, parser_context)


class AnyAccept(DefaultContentNegotiation):
    """A download has one form; refusals are JSON, whatever the client would rather have."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""


class Newest(CursorPagination):
    """Newest first, page by page."""

    ordering = "-pk"
    page_size = 100

    def decode_cursor(self, request: Request) -> Cursor | None:
        """A made-up cursor is not found, instead of failing in the database."""
        cursor = super().decode_cursor(request)
        if cursor is None or cursor.position is None:
            return cursor
        position = str(cursor.position)
        if not (position.isascii() and position.isdigit()):
            raise NotFound(self.invalid_cursor_message)
        return cursor


def skip_lease(
    request: Request, sent: serializers.Serializer[Any], skip: Callable[..., Any]
) -> Response:
    """Give something back with a reason, as the body says; 204."""
    sent.is_valid(raise_exception=True)
    skip(user=request.user, **sent.validated_data)
    return Response(status=204)


def renew_lease(
    request: Request, sent: serializers.Serializer[Any], heartbeat: Callable[..., int], gone: str
) -> Response:
    """Renew the lease that the body's token names; `gone` says why it cannot be."""
    sent.is_valid(raise_exception=True)
    try:
        left = heartbeat(user=request.user, token=sent.validated_data["token"])
    except Refused as error:
        raise Refused(gone, code=error.code) from error
    return Response({"expires_in": left})
