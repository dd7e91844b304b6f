"""What everybody may read: rounds with their commitments, and the results of unsealed ones."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import FileResponse, Http404
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from arena import exports
from arena.api import serializers as s
from arena.api.common import MayRead
from arena.enums import COMPOSITE, AssignmentState, RoundState, Variant
from arena.models import Round
from arena.protocol import round_key
from arena.selectors import history, leaderboard
from arena.selectors.votes import round_totals
from webapp.core.api_parts import NUMBER, READ, AnyAccept, Newest
from webapp.core.errors import Refused

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

    @extend_schema(
        operation_id="rounds_read",
        parameters=[NUMBER],
        responses={200: s.RoundDetailSerializer, **READ},
    )
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

    @extend_schema(
        operation_id="rounds_protocol",
        parameters=[NUMBER],
        responses={200: s.ProtocolSerializer, **READ},
    )
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
        parameters=[NUMBER, s.BoardQuerySerializer],
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


class BundleView(APIView):
    """The bundle of an unsealed round as a zip. 409 for a round in any other state."""

    permission_classes = [MayRead]
    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="rounds_bundle",
        parameters=[NUMBER],
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
        parameters=[NUMBER, s.HistoryQuerySerializer],
        responses={200: s.HistorySerializer, **READ},
    )
    def get(self, request: Request, pk: int) -> Response:
        query = s.HistoryQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        axis = query.validated_data.get("axis", COMPOSITE)
        contestant = history.rated_contestant(pk)
        if contestant is None:
            raise Http404
        entries = [_history_entry(*pair) for pair in history.contestant_history(contestant, axis)]
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
