"""The API of the arena: results of unsealed rounds for readers, ballots for raters.

Permissions are denied by default; who may comes from the policies, and every write goes through
the services that the pages use. Before unsealing no answer links a text or battle to a contestant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import FileResponse, Http404
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from arena import exports
from arena import serializers as s
from arena.enums import COMPOSITE, AssignmentState, Axis, RoundState, Variant
from arena.models import Assignment, Round, RoundRater, Vote
from arena.protocol import round_key
from arena.selectors import ballots, history, leaderboard
from arena.selectors.votes import round_totals
from arena.services import leases, votes
from webapp.accounts.policies import may_vote_in_rounds
from webapp.core.errors import Refused

REFUSALS = {
    401: OpenApiResponse(s.ErrorSerializer, "Sign in or send a token."),
    403: OpenApiResponse(s.ErrorSerializer, "Not allowed for this person."),
}
READ = {
    400: OpenApiResponse(s.ErrorSerializer, "The query is not valid."),
    404: OpenApiResponse(s.ErrorSerializer, "There is no such object."),
    409: OpenApiResponse(s.ErrorSerializer, "The state does not allow it: the round is sealed …"),
    422: OpenApiResponse(s.ErrorSerializer, "The value does not exist here."),
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
    ordering = "-pk"
    page_size = 100


# --- rounds -----------------------------------------------------------------------------------


def _with_votes(rows: QuerySet[Round]) -> QuerySet[Round]:
    voted = Q(assignments__state=AssignmentState.VOTED)
    return rows.annotate(votes=Count("assignments", filter=voted))


def _round_data(row: Round) -> dict[str, Any]:
    fields = set(s.RoundSerializer().get_fields()) - {"key"}
    return {"key": round_key(row), **{name: getattr(row, name) for name in fields}}


class RoundListView(ListAPIView[Round]):
    """Rounds, the newest first; without an account the unsealed ones. Totals only."""

    permission_classes = [MayRead]
    pagination_class = Newest
    serializer_class = s.RoundSerializer

    def get_queryset(self) -> QuerySet[Round]:
        return _with_votes(leaderboard.readable_rounds(self.request.user))

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        page = super().paginate_queryset(queryset)
        return None if page is None else [_round_data(row) for row in page]

    @extend_schema(
        operation_id="rounds_list", responses={200: s.RoundSerializer(many=True), **READ}
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class RoundView(APIView):
    """One round: state, commitment, totals and where to read on."""

    permission_classes = [MayRead]

    @extend_schema(operation_id="rounds_read", responses={200: s.RoundDetailSerializer, **READ})
    def get(self, request: Request, pk: int) -> Response:
        row = _with_votes(leaderboard.readable_rounds(request.user)).filter(pk=pk).first()
        if row is None:
            raise Http404
        links = {name: _link(request, row, name) for name in ("protocol", "leaderboard", "bundle")}
        data = {**_round_data(row), "totals": round_totals(row), "links": links}
        return Response(s.RoundDetailSerializer(data).data)


def _link(request: Request, row: Round, name: str) -> str | None:
    there = bool(row.protocol) if name == "protocol" else row.state == RoundState.UNSEALED
    url = reverse(f"api:round_{name}", args=[row.pk])
    return request.build_absolute_uri(url) if there else None


class ProtocolView(APIView):
    """What was fixed when the round opened, and the commitment to it."""

    permission_classes = [MayRead]

    @extend_schema(operation_id="rounds_protocol", responses={200: s.ProtocolSerializer, **READ})
    def get(self, request: Request, pk: int) -> Response:
        row = leaderboard.access_record(request.user, pk)
        if not row.protocol:
            raise Refused(_("This round is not sealed yet: nothing is fixed."), code="not_sealed")
        return Response(
            {
                "key": round_key(row),
                "simulated": row.simulated,
                "commitment": row.commitment,
                "merkle_root": row.merkle_root,
                "protocol_sha256": hashlib.sha256(row.protocol.encode()).hexdigest(),
                "protocol": row.protocol,
            }
        )


# --- results ----------------------------------------------------------------------------------


class LeaderboardView(APIView):
    """The ratings of an unsealed round. 409 for a round in any other state, whoever asks."""

    permission_classes = [MayRead]

    @extend_schema(
        operation_id="rounds_leaderboard",
        parameters=[s.BoardQuerySerializer],
        responses={200: s.LeaderboardSerializer, **READ},
    )
    def get(self, request: Request, pk: int) -> Response:
        query = s.BoardQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        chosen: dict[str, Any] = query.validated_data
        round_ = leaderboard.access_results(request.user, pk)
        board = leaderboard.read_board(
            round_,
            axis=chosen.get("axis", ""),
            stratum=chosen.get("stratum", ""),
            variant=chosen.get("variant", Variant.ALL.value),
        )
        data = {
            "round": exports.round_facts(round_),
            "axes": board.axes,
            "strata": board.strata,
            "board": exports.board_data(board),
        }
        return Response(data)


class AnyAccept(DefaultContentNegotiation):
    """A download has one form; refusals are JSON, whatever the client would rather have."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""


class BundleView(APIView):
    """The bundle of an unsealed round as a zip. 409 for a round in any other state."""

    permission_classes = [MayRead]
    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="rounds_bundle",
        responses={(200, "application/zip"): OpenApiTypes.BINARY, **READ},
    )
    def get(self, request: Request, pk: int) -> FileResponse:
        round_ = leaderboard.access_results(request.user, pk)
        return FileResponse(
            exports.bundle_file(round_),
            as_attachment=True,
            filename=exports.file_name(round_, "bundle.zip"),
            content_type="application/zip",
        )


class HistoryView(APIView):
    """A contestant over the unsealed rounds, joined only through contestants that rounds share."""

    permission_classes = [MayRead]

    @extend_schema(
        operation_id="contestants_history",
        parameters=[s.HistoryQuerySerializer],
        responses={200: s.HistorySerializer, **READ},
    )
    def get(self, request: Request, pk: int) -> Response:
        query = s.HistoryQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        axis = query.validated_data.get("axis", COMPOSITE)
        contestant = history.rated_contestant(pk)
        if contestant is None:
            raise Http404
        entries = [
            _history_entry(*pair) for pair in history.contestant_history(contestant, axis)
        ]
        data = {"contestant_id": contestant.pk, "contestant": str(contestant), "axis": axis}
        return Response(s.HistorySerializer({**data, "entries": entries}).data)


def _history_entry(round_: history.HistoryRound, entry: history.HistoryRow) -> dict[str, Any]:
    row = entry.row
    return {
        "round_id": round_.id,
        "round_name": round_.name,
        "simulated": round_.round.simulated,
        "unsealed_at": round_.round.unsealed_at,
        "chain": entry.chain,
        "rank_lo": row.rank_lo,
        "rank_hi": row.rank_hi,
        "rating": row.rating,
        "lo": row.lo,
        "hi": row.hi,
        "joined_rating": entry.joined_rating,
        "joined_lo": entry.joined_lo,
        "joined_hi": entry.joined_hi,
        "votes": row.votes,
    }


# --- voting -----------------------------------------------------------------------------------


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
            verdicts={axis: data[axis] for axis in axes if axis in data},
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
    """Take your last vote of the round back; its battle comes again. 204: there is none."""

    @extend_schema(
        operation_id="voting_undo",
        request=None,
        responses={200: s.BallotSerializer, 204: None, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        return _ballot(votes.undo_vote(user=request.user, round_=_round(pk)))


class SkipView(RaterView):
    """Give a battle back with a reason. Twice is the same as once."""

    @extend_schema(
        operation_id="voting_skip", request=s.SkipSerializer, responses={204: None, **READ}
    )
    def post(self, request: Request) -> Response:
        sent = s.SkipSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        leases.skip(user=request.user, **sent.validated_data)
        return Response(status=204)


class HeartbeatView(RaterView):
    """Renew the lease while the battle is looked at. 409: it is gone."""

    @extend_schema(
        operation_id="voting_heartbeat",
        request=s.TokenSerializer,
        responses={200: s.LeaseSerializer, **READ},
    )
    def post(self, request: Request) -> Response:
        sent = s.TokenSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        try:
            left = leases.heartbeat(user=request.user, token=sent.validated_data["token"])
        except Refused as error:
            raise Refused(_("This battle is not yours any more."), code=error.code) from error
        return Response({"expires_in": left})


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
        responses={200: s.ReceiptSerializer(many=True), **REFUSALS},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)
