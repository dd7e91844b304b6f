"""Who may call."""

from __future__ import annotations

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from arena.selectors import leaderboard
from webapp.accounts.policies import may_vote_in_rounds


class MayRead(BasePermission):
    """Everybody, or everybody with an account, as LEADERBOARD_PUBLIC says."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return leaderboard.may_read(request.user)


class MayVote(BasePermission):
    """Seed users and annotators; the services check the round."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return may_vote_in_rounds(request.user)
