"""Who may call, finding a project or an item, and how lists are paged."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from drf_spectacular.utils import OpenApiParameter
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from annotation import policies
from annotation.models import Item, Project
from annotation.selectors.items import find_item
from webapp.core.api_parts import Newest, number

ITEM = OpenApiParameter(
    "item",
    {"type": "string", "pattern": "^[-a-zA-Z0-9_]+$", "maxLength": 64},
    OpenApiParameter.PATH,
    description="The item's public id.",
)
RUN = number("run", "The number of an import or export of this project.")


class MayManage(BasePermission):
    """Administrators."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return policies.may_manage(request.user)


class MayWork(BasePermission):
    """Annotators and seed users; the services check the project."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return policies.may_work(request.user)


@method_decorator(never_cache, name="dispatch")
class ManagerView(APIView):
    permission_classes: list[Any] = [MayManage]


@method_decorator(never_cache, name="dispatch")
class WorkerView(APIView):
    permission_classes: list[Any] = [MayWork]


class InOrder(Newest):
    """In the order of their making, page by page."""

    ordering = "pk"


def project_of(pk: int) -> Project:
    row = Project.objects.filter(pk=pk).first()
    if row is None:
        raise Http404
    return row


def item_of(pk: int, item: str) -> Item:
    row = None if item.isdigit() and len(item) < 19 else find_item(project_of(pk), item)
    if row is None:
        raise Http404
    return row
