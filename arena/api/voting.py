"""Voting by program: the same leases and votes as on the page, with the same refusals."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from arena.api import serializers as s
from arena.api.common import MayVote
from arena.enums import Axis
from arena.models import Assignment, Round, RoundRater, Vote
from arena.selectors import ballots
from arena.services import leases, votes
from webapp.core.api_parts import NUMBER, READ, REFUSALS, Newest, renew_lease, skip_lease


@method_decorator(never_cache, name="dispatch")
class RaterView(APIView):
    """What all views of raters share."""

    permission_classes: list[Any] = [MayVote]


class OpenRoundsView(RaterView):
    """Open rounds in which you may vote, the oldest first."""

    @extend_schema(
        operation_id="voting_rounds",
        responses={200: s.OpenRoundSerializer(many=True), **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        data = []
        for row in ballots.open_rounds_for(request.user):
            progress = ballots.progress_of(request.user, row)
            facts = {"id": row.pk, "name": row.name, "simulated": row.simulated}
            share = {"done": progress.done, "target": progress.target}
            data.append({**facts, "commitment": row.commitment, **share})
        return Response(data)


class BallotView(RaterView):
    """The battle that you work on now; a new one is leased if you have none. 204: none is left."""

    @extend_schema(
        operation_id="voting_next",
        parameters=[NUMBER],
        request=None,
        responses={200: s.BallotSerializer, 204: None, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        row = leases.current_ballot(user=request.user, round_=_round(pk))
        return _ballot(row)


def _round(pk: int) -> Round:
    row = Round.objects.filter(pk=pk).first()
    if row is None:
        raise Http404
    return row


def _ballot(row: Assignment | None) -> Response:
    """The blind object of a leased battle."""
    if row is None:
        return Response(status=204)
    parts = ballots.assignment_parts(row.pk)
    left, right = ballots.sides(parts)
    context = parts.slot.context
    version = context.persona_version
    text = getattr(version, "text", None) if version else None
    data = {
        "token": parts.token,
        "round": parts.round_id,
        "axes": ballots.axes_of(parts.rater_id, parts.round),
        "persona_summary": text.summary if text else "",
        "messages": [
            {"role": turn["role"], "content": turn["content"]} for turn in context.prompt.messages
        ],
        "left": left,
        "right": right,
        "expires_in": ballots.seconds_left(parts),
    }
    return Response(s.BallotSerializer(data).data)


class VoteView(RaterView):
    """Cast a vote, or another revision of it. The same vote sent twice is recorded once."""

    @extend_schema(
        operation_id="voting_vote",
        request=s.VoteRequestSerializer,
        responses={200: s.ReceiptSerializer, **READ},
    )
    def post(self, request: Request) -> Response:
        sent = s.VoteRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        data: dict[str, Any] = sent.validated_data
        own = ballots.own_assignment(request.user, data["token"])
        axes = own.round.axes if own else Axis.values
        ballot = votes.Ballot(
            verdicts={axis: data["verdicts"].get(axis, "") for axis in axes},
            tags=data.get("tags", ()),
            comment=data.get("comment", ""),
            active_ms=data.get("active_ms", 0),
        )
        vote = votes.cast_vote(user=request.user, token=data["token"], ballot=ballot)
        return Response(_receipt(vote, ballots.pseudonym_of(request.user, vote.assignment.round)))


def _receipt(vote: Vote, pseudonym: str) -> dict[str, Any]:
    data = {
        "receipt": vote.receipt,
        "commitment": vote.assignment.round.commitment,
        "at": vote.at,
        "record": ballots.receipt_record(vote, pseudonym),
    }
    return dict(s.ReceiptSerializer(data).data)


class UndoView(RaterView):
    """Take back your vote on the battle of this token; that battle comes again.

    Sent twice it takes back one vote. 204: there is nothing to take back.
    """

    @extend_schema(
        operation_id="voting_undo",
        parameters=[NUMBER],
        request=s.UndoSerializer,
        responses={200: s.BallotSerializer, 204: None, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        sent = s.UndoSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        round_ = _round(pk)
        row = votes.undo_vote(user=request.user, round_=round_, token=sent.validated_data["token"])
        # Served anew, so that a text erased meanwhile does not come back.
        return _ballot(row and leases.current_ballot(user=request.user, round_=round_))


class SkipView(RaterView):
    """Give a battle back with a reason. Twice is the same as once."""

    @extend_schema(
        operation_id="voting_skip", request=s.SkipSerializer, responses={204: None, **READ}
    )
    def post(self, request: Request) -> Response:
        return skip_lease(request, s.SkipSerializer(data=request.data), leases.skip)


class HeartbeatView(RaterView):
    """Renew the lease while the battle is looked at. 409: it is gone."""

    @extend_schema(
        operation_id="voting_heartbeat",
        request=s.TokenSerializer,
        responses={200: s.LeaseSerializer, **READ},
    )
    def post(self, request: Request) -> Response:
        sent = s.TokenSerializer(data=request.data)
        return renew_lease(request, sent, leases.heartbeat, _("This battle is not yours any more."))


@method_decorator(never_cache, name="dispatch")
class ReceiptListView(ListAPIView[Vote]):
    """Your receipts, the newest first; keep them to check the published bundle."""

    permission_classes = [MayVote]
    pagination_class = Newest
    serializer_class = s.ReceiptSerializer

    def get_queryset(self) -> QuerySet[Vote]:
        return ballots.own_votes(self.request.user)

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        page = super().paginate_queryset(queryset)
        names = dict(
            RoundRater.objects.filter(user__in=[self.request.user]).values_list(
                "round_id", "pseudonym"
            )
        )
        return [_receipt(row, names.get(row.assignment.round_id, "")) for row in page or ()]

    @extend_schema(
        operation_id="voting_receipts",
        responses={200: s.ReceiptSerializer(many=True), **READ},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)
