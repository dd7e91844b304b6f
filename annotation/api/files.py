"""Imports and exports by program: jobs to ask for, look at, and files to fetch."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import FileResponse, Http404, StreamingHttpResponse
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api import serializers as s
from annotation.api.common import RUN, ManagerView, project_of
from annotation.models import ExportRun, Project
from annotation.selectors.export_runs import runs_of
from annotation.selectors.imports import error_lines
from annotation.services import exports
from annotation.services.imports import KIND, check_options
from webapp.catalog import uploads
from webapp.catalog.models import ImportRun
from webapp.catalog.services import imports
from webapp.core.api_parts import NUMBER, READ, AnyAccept, Newest
from webapp.core.errors import InvalidInput

CHUNK = 1024 * 1024
CHECK = imports.CHECK


class RawParser(BaseParser):
    """A file as the body itself; it is read in pieces, by the view."""

    media_type = "application/octet-stream"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return {"stream": stream}


# --- imports ------------------------------------------------------------------------------------


def _imports(project: Project) -> QuerySet[ImportRun]:
    return ImportRun.objects.filter(kind=KIND, subject=project.pk).order_by("-pk")


def _import(pk: int, run: int) -> ImportRun:
    row = _imports(project_of(pk)).filter(pk=run).first()
    if row is None:
        raise Http404
    return row


def _import_data(row: ImportRun) -> dict[str, Any]:
    started = None
    if row.dry_run:
        started = ImportRun.objects.filter(key=f"{CHECK}{row.pk}").values_list("pk", flat=True)
    names = set(s.ImportSerializer().get_fields()) - {"id", "import_run"}
    data = {name: getattr(row, name) for name in names}
    first = started.first() if started is not None else None
    return dict(s.ImportSerializer({**data, "id": row.pk, "import_run": first}).data)


class ImportListView(ManagerView, ListAPIView[ImportRun]):
    """Checks and imports of a project, the newest first; or a file to check.

    The file comes as `file` of a form, or as the body itself (application/octet-stream), with the
    options in the query. A job checks it; nothing is imported before `start`.
    """

    pagination_class = Newest
    serializer_class = s.ImportSerializer
    parser_classes = [MultiPartParser, RawParser]

    def get_queryset(self) -> QuerySet[ImportRun]:
        return _imports(project_of(self.kwargs["pk"]))

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        return [_import_data(row) for row in super().paginate_queryset(queryset) or ()]

    @extend_schema(
        operation_id="imports_list",
        parameters=[NUMBER],
        responses={200: s.ImportSerializer(many=True), **READ},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="imports_check",
        parameters=[NUMBER, s.ImportOptionsSerializer],
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
            },
            "application/octet-stream": OpenApiTypes.BINARY,
        },
        responses={202: s.ImportSerializer, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_of(pk)
        query = s.ImportOptionsSerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked: dict[str, Any] = dict(query.validated_data)
        name, chunks = _sent_file(request, asked.pop("name", ""))
        key = asked.pop("key", "") or secrets.token_hex(16)
        run = imports.receive_upload(
            actor=request.user,
            name=name,
            chunks=chunks,
            format=asked.pop("format", ""),
            key=f"api:{project.pk}:{key}"[:64],
            kind=KIND,
            subject=project.pk,
            options=check_options(project, asked),
        )
        return Response(_import_data(run), status=202)


def _sent_file(request: Request, name: str) -> tuple[str, Iterator[bytes]]:
    data: Any = request.data
    sent = data.get("file")
    if sent is not None and hasattr(sent, "chunks"):
        _check_size(sent.size)
        return str(sent.name), sent.chunks()
    stream = data.get("stream")
    size = int(request.META.get("CONTENT_LENGTH") or 0)
    if stream is None or not size:
        raise InvalidInput(_("Send a file."), field="file", code="missing")
    _check_size(size)
    return name or "upload", iter(lambda: stream.read(CHUNK), b"")


def _check_size(size: int) -> None:
    if size > settings.UPLOAD_LIMIT:
        raise InvalidInput(
            _("The file is larger than %(most)s MB.")
            % {"most": settings.UPLOAD_LIMIT // (1024 * 1024)},
            field="file",
            code="too_large",
        )


class ImportView(ManagerView):
    """How far a check or an import is, and what came of it."""

    @extend_schema(
        operation_id="imports_read",
        parameters=[NUMBER, RUN],
        responses={200: s.ImportSerializer, **READ},
    )
    def get(self, request: Request, pk: int, run: int) -> Response:
        return Response(_import_data(_import(pk, run)))


class ImportStartView(ManagerView):
    """Import the file of a finished check. Asked twice it starts once."""

    @extend_schema(
        operation_id="imports_start",
        parameters=[NUMBER, RUN],
        request=None,
        responses={202: s.ImportSerializer, **READ},
    )
    def post(self, request: Request, pk: int, run: int) -> Response:
        made = imports.start_import(actor=request.user, check=_import(pk, run))
        made.refresh_from_db()
        return Response(_import_data(made), status=202)


class ImportErrorsView(ManagerView):
    """The refused rows as JSON Lines: file, line, column, reason, and the row to repair."""

    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="imports_errors",
        parameters=[NUMBER, RUN],
        responses={(200, "application/x-ndjson"): OpenApiTypes.BINARY, **READ},
    )
    def get(self, request: Request, pk: int, run: int) -> StreamingHttpResponse:
        row = _import(pk, run)
        if not uploads.errors_path(row.pk).exists():
            raise Http404
        # Line by line, as on the page: what a seal covers stays out (V1).
        response = StreamingHttpResponse(error_lines(row), content_type="application/x-ndjson")
        response["Content-Disposition"] = f'attachment; filename="import-{row.pk}-refused.jsonl"'
        return response


# --- exports ------------------------------------------------------------------------------------


def _export(pk: int, run: int) -> ExportRun:
    row = project_of(pk).exports.filter(pk=run).first()
    if row is None:
        raise Http404
    return row


def _export_data(row: ExportRun) -> dict[str, Any]:
    names = set(s.ExportSerializer().get_fields()) - {"id"}
    data = {name: getattr(row, name) for name in names}
    return dict(s.ExportSerializer({**data, "id": row.pk}).data)


class ExportListView(ManagerView, ListAPIView[ExportRun]):
    """Exports of a project, the newest first; or a new one, made by a job."""

    pagination_class = Newest
    serializer_class = s.ExportSerializer

    def get_queryset(self) -> QuerySet[ExportRun]:
        return runs_of(project_of(self.kwargs["pk"]))

    def paginate_queryset(self, queryset: Any) -> list[Any] | None:
        return [_export_data(row) for row in super().paginate_queryset(queryset) or ()]

    @extend_schema(
        operation_id="exports_list",
        parameters=[NUMBER],
        responses={200: s.ExportSerializer(many=True), **READ},
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="exports_start",
        parameters=[NUMBER],
        request=s.ExportRequestSerializer,
        responses={202: s.ExportSerializer, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_of(pk)
        sent = s.ExportRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        key = sent.validated_data.get("key", "") or secrets.token_hex(16)
        run = exports.start_export(
            actor=request.user,
            project=project,
            options=sent.validated_data.get("options", {}),
            key=f"api:{project.pk}:{key}"[:64],
        )
        run.refresh_from_db()
        return Response(_export_data(run), status=202)


class ExportView(ManagerView):
    """How far an export is, and what came of it."""

    @extend_schema(
        operation_id="exports_read",
        parameters=[NUMBER, RUN],
        responses={200: s.ExportSerializer, **READ},
    )
    def get(self, request: Request, pk: int, run: int) -> Response:
        return Response(_export_data(_export(pk, run)))


class ExportFileView(ManagerView):
    """The file of a finished export. 409: it is not finished, or not kept any more."""

    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="exports_file",
        parameters=[NUMBER, RUN],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **READ},
    )
    def get(self, request: Request, pk: int, run: int) -> FileResponse:
        path = exports.download_path(_export(pk, run))
        return FileResponse(
            path.open("rb"),
            as_attachment=True,
            filename=path.name,
            content_type="application/octet-stream",
        )
