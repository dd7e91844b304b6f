"""The items of a project for its managers: a list by filters, one item, and sending new ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api import serializers as s
from annotation.api.common import ITEM, InOrder, ManagerView, item_of, project_of
from annotation.enums import ItemState
from annotation.models import Item
from annotation.selectors.items import Filters, filtered_items
from annotation.selectors.remote import item_data, item_detail
from annotation.services.exposures import note_met
from annotation.services.sent_pairs import add_sent_pairs
from webapp.catalog.enums import Where
from webapp.core.api_parts import NUMBER, READ, ErrorSerializer, LargeJSONParser

TOO_LARGE = OpenApiResponse(ErrorSerializer, "The request is too large.")


class ItemListView(ManagerView, ListAPIView[Item]):
    """The items of a project in the order of their making; or up to 1,000 new ones at once."""

    pagination_class = InOrder
    serializer_class = s.ItemSerializer
    parser_classes = [LargeJSONParser]

    def get_queryset(self) -> QuerySet[Item]:
        query = s.ItemQuerySerializer(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        rows = filtered_items(project_of(self.kwargs["pk"]), Filters(**query.validated_data))
        return rows.select_related("quality_decision", "personalization_decision")

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        return [item_data(row) for row in super().paginate_queryset(queryset) or ()]

    @extend_schema(
        operation_id="items_list",
        parameters=[NUMBER, s.ItemQuerySerializer],
        responses={200: s.ItemSerializer(many=True), **READ},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="items_create",
        parameters=[NUMBER],
        request=s.SentItemsSerializer,
        responses={200: s.SentItemsResultSerializer, 413: TOO_LARGE, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_of(pk)
        sent = s.SentItemsSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        rows = add_sent_pairs(
            actor=request.user, project=project, rows=sent.validated_data["items"]
        )
        found = [row.status for row in rows]
        counts = {name: found.count(name) for name in ("added", "known", "refused")}
        data = {**counts, "rows": [asdict(row) for row in rows]}
        return Response(s.SentItemsResultSerializer(data).data)


class ItemView(ManagerView):
    """One item with texts, labels and outcome; its producers unless a sealed round forbids it."""

    @extend_schema(
        operation_id="items_read",
        parameters=[NUMBER, ITEM, OpenApiParameter("labels", str, enum=["1"])],
        responses={200: s.ItemDetailSerializer, **READ},
    )
    def get(self, request: Request, pk: int, item: str) -> Response:
        row = item_of(pk, item)
        wanted = row.state != ItemState.DISPUTED or "labels" in request.query_params
        data = item_detail(row, with_labels=wanted)
        producers = data["producers"]
        if producers and (producers["first"] or producers["second"]):
            note_met(user=request.user, item=row, where=Where.AUDITED)
        return Response(s.ItemDetailSerializer(data).data)
