"""Projects for their managers: listing, making, changing, moving; people; agreement."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api import serializers as s
from annotation.api.common import ManagerView, project_of
from annotation.models import Project
from annotation.selectors import projects as select
from annotation.selectors.statistics import newest_snapshot
from annotation.services import projects
from webapp.accounts.models import User
from webapp.core.api_parts import NUMBER, READ, Newest
from webapp.core.errors import InvalidInput

OVERVIEW = ("done", "total", "disputed", "held", "people")


def _summary(row: select.Overview) -> dict[str, Any]:
    project = row.project
    names = ("name", "state", "axes", "created_at")
    counts = {name: getattr(row, name) for name in OVERVIEW}
    return {"id": project.pk, **{name: getattr(project, name) for name in names}, **counts}


def _detail(project: Project) -> dict[str, Any]:
    newest = project.guidelines.first()
    data = {name: getattr(project, name) for name in s.SettingsSerializer().get_fields()}
    data |= _summary(select.overviews([project])[0])
    data["guideline"] = newest.n if newest else 0
    return dict(s.ProjectDetailSerializer(data).data)


class ProjectListView(ManagerView, ListAPIView[Project]):
    """All projects, the newest first; or a new one, a draft."""

    pagination_class = Newest
    serializer_class = s.ProjectSerializer

    def get_queryset(self) -> QuerySet[Project]:
        return select.projects()

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        page = super().paginate_queryset(queryset)
        return [_summary(row) for row in select.overviews(page or [])]

    @extend_schema(
        operation_id="projects_list", responses={200: s.ProjectSerializer(many=True), **READ}
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="projects_create",
        request=s.ProjectCreateSerializer,
        responses={201: s.ProjectDetailSerializer, **READ},
    )
    def post(self, request: Request) -> Response:
        sent = s.ProjectCreateSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        settings = dict(sent.validated_data)
        name, text = settings.pop("name"), settings.pop("guidelines")
        project = projects.create_project(
            actor=request.user, name=name, guidelines=text, settings=settings
        )
        return Response(_detail(project), status=201)


class ProjectView(ManagerView):
    """One project with its settings."""

    @extend_schema(
        operation_id="projects_read",
        parameters=[NUMBER],
        responses={200: s.ProjectDetailSerializer, **READ},
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(_detail(project_of(pk)))

    @extend_schema(
        operation_id="projects_change",
        parameters=[NUMBER],
        request=s.ProjectChangeSerializer,
        responses={200: s.ProjectDetailSerializer, **READ},
    )
    def patch(self, request: Request, pk: int) -> Response:
        sent = s.ProjectChangeSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        settings, project = dict(sent.validated_data), project_of(pk)
        text = settings.pop("guidelines", None)
        with transaction.atomic():
            if settings:
                projects.change_project(actor=request.user, project=project, settings=settings)
            if text is not None:
                projects.publish_guidelines(actor=request.user, project=project, text=text)
        return Response(_detail(project_of(pk)))


class MoveView(ManagerView):
    """Open, pause or close a project. Sent twice it moves once."""

    @extend_schema(
        operation_id="projects_move",
        parameters=[NUMBER],
        request=s.MoveSerializer,
        responses={200: s.ProjectDetailSerializer, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        sent = s.MoveSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        moved = projects.move_project(
            actor=request.user, project=project_of(pk), **sent.validated_data
        )
        return Response(_detail(moved))


class MemberListView(ManagerView):
    """Everybody whose labels a project holds; accounts can be added."""

    @extend_schema(
        operation_id="projects_members",
        parameters=[NUMBER],
        responses={200: s.MemberSerializer(many=True), **READ},
    )
    def get(self, request: Request, pk: int) -> Response:
        return _members(project_of(pk))

    @extend_schema(
        operation_id="projects_members_add",
        parameters=[NUMBER],
        request=s.MembersAddSerializer,
        responses={200: s.MemberSerializer(many=True), **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        sent = s.MembersAddSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        names = sent.validated_data["usernames"]
        project = project_of(pk)
        users = {user.username: user for user in User.objects.filter(username__in=names)}
        missing = [name for name in names if name not in users]
        if missing:
            raise InvalidInput(
                _("There is no account “%(name)s”.") % {"name": missing[0]}, field="usernames"
            )
        projects.add_members(
            actor=request.user,
            project=project,
            users=list(users.values()),
            adjudicates=sent.validated_data["adjudicates"],
        )
        return _members(project)


def _members(project: Project) -> Response:
    data = [
        {
            "pseudonym": row.member.external_name or row.member.pseudonym,
            "username": row.member.user.username if row.member.user else None,
            "state": row.member.state,
            "adjudicates": row.member.adjudicates,
            "submitted": row.submitted,
            "gold_right": row.member.gold_right,
            "gold_seen": row.member.gold_seen,
        }
        for row in select.member_rows(project)
    ]
    return Response(s.MemberSerializer(data, many=True).data)


class AgreementView(ManagerView):
    """The newest statistics of a project: agreement, annotators, order, pace."""

    @extend_schema(
        operation_id="projects_agreement",
        parameters=[NUMBER],
        responses={200: s.AgreementSerializer, **READ},
    )
    def get(self, request: Request, pk: int) -> Response:
        row = newest_snapshot(project_of(pk))
        data = {
            "created_at": row and row.created_at,
            "labels_seen": row.labels_seen if row else 0,
            "report": row and row.report,
        }
        return Response(s.AgreementSerializer(data).data)
