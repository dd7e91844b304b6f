"""Who may call, how refusals look, and how lists are paged."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from arena.api.serializers import ErrorSerializer
from arena.selectors import leaderboard
from webapp.accounts.policies import may_vote_in_rounds

NUMBER = OpenApiParameter(
    "id", {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, OpenApiParameter.PATH
)
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


class MayRead(BasePermission):
    """Everybody, or everybody with an account, as LEADERBOARD_PUBLIC says."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return leaderboard.may_read(request.user)


class MayVote(BasePermission):
    """Seed users and annotators; the services check the round."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return may_vote_in_rounds(request.user)


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
