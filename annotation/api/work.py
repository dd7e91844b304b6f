"""Labelling by program: the same leases and labels as on the page, with the same refusals."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api import work_serializers as s
from annotation.api.common import WorkerView
from annotation.models import Guideline, Lease
from annotation.selectors import tasks
from annotation.selectors.feedback import feedback_of
from annotation.selectors.work import Seat, newest_guideline, seat_of, seats_of
from annotation.services import labels, leases, reading
from webapp.core.api_parts import NUMBER, READ, REFUSALS, renew_lease, skip_lease
from webapp.core.errors import Refused


class SeatListView(WorkerView):
    """Projects that you work in, the newest first."""

    @extend_schema(
        operation_id="work_projects", responses={200: s.SeatSerializer(many=True), **REFUSALS}
    )
    def get(self, request: Request) -> Response:
        return Response([_seat(seat) for seat in seats_of(request.user)])


def _seat(seat: Seat) -> dict[str, Any]:
    project = seat.member.project
    data = {
        "id": project.pk,
        "name": project.name,
        "state": project.state,
        "your_state": seat.member.state,
        "axes": project.axes,
        "done": seat.progress.done,
        "left": seat.progress.about,  # never exact: gold would not count down
        "guideline": seat.guideline_n,
        "guideline_read": seat.has_read,
    }
    return dict(s.SeatSerializer(data).data)


class GuidelineView(WorkerView):
    """The guidelines of a project that you work in. Confirm them before the first item."""

    @extend_schema(
        operation_id="work_guidelines",
        parameters=[NUMBER],
        responses={200: s.GuidelineSerializer, **READ},
    )
    def get(self, request: Request, pk: int) -> Response:
        seat = seat_of(request.user, pk)
        newest = newest_guideline(seat.member.project_id)
        return Response({"n": newest.n if newest else 0, "text": newest.text if newest else ""})

    @extend_schema(
        operation_id="work_guidelines_confirm",
        parameters=[NUMBER],
        request=s.GuidelineReadSerializer,
        responses={204: None, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        sent = s.GuidelineReadSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        seat = seat_of(request.user, pk)
        project = seat.member.project
        row = Guideline.objects.filter(project=project, n=sent.validated_data["n"]).first()
        reading.confirm_guidelines(
            user=request.user, project=project, guideline=row.pk if row else 0
        )
        return Response(status=204)


class NextView(WorkerView):
    """The item that you work on now; a new one is leased if you have none. 204: none is left."""

    @extend_schema(
        operation_id="work_next",
        parameters=[NUMBER],
        request=None,
        responses={200: s.TaskSerializer, 204: None, **READ},
    )
    def post(self, request: Request, pk: int) -> Response:
        seat = seat_of(request.user, pk)
        if not seat.has_read:
            raise Refused(_("Read and confirm the guidelines first."), code="guidelines_unread")
        served = leases.serve(user=request.user, project=seat.member.project)
        return _task(seat, served.lease)


def _task(seat: Seat, lease: Lease | None) -> Response:
    """The blind object of a leased item."""
    if lease is None:
        return Response(status=204)
    project, item = seat.member.project, lease.item
    version = item.persona_version
    text = getattr(version, "text", None) if version else None
    left, right = tasks.sides(lease)
    own = [axis for axis in seat.member.axes if axis in project.axes]
    turns = [{"role": t["role"], "content": t["content"]} for t in item.prompt.messages]
    data = {
        "token": lease.token,
        "project": project.pk,
        "axes": [*own, *(axis for axis in project.axes if axis not in own)],
        "verdicts": labels.allowed_verdicts(project),
        "ask_strength": project.ask_strength,
        "tags": project.tags,
        "guideline": seat.guideline_n,
        "persona_summary": text.summary if text else "",
        "messages": turns,
        "left": left,
        "right": right,
        "draft": lease.draft,
        "expires_in": tasks.seconds_left(lease),
    }
    return Response(s.TaskSerializer(data).data)


class LabelView(WorkerView):
    """Submit an answer, or another revision of it. The same answer sent twice is kept once."""

    @extend_schema(
        operation_id="work_label",
        request=s.LabelRequestSerializer,
        responses={200: s.SubmittedSerializer, **READ},
    )
    def post(self, request: Request) -> Response:
        sent = s.LabelRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        data: dict[str, Any] = dict(sent.validated_data)
        token = data.pop("token")
        done = labels.submit_label(
            user=request.user, token=token, answer=labels.Answer(**data, source="api")
        )
        said = {
            "token": token,
            "revision": done.label.revision,
            "at": done.label.at,
            "again": done.again,
            "late": done.label.late,
            "extra": done.extra,
            "feedback": feedback_of(done.lease),
        }
        return Response(s.SubmittedSerializer(said).data)


class TakeBackView(WorkerView):
    """Take back one of your last 10 submissions; you hold its item again.

    Sent twice it takes back once. 204: there is nothing to take back.
    """

    @extend_schema(
        operation_id="work_undo",
        request=s.TaskTokenSerializer,
        responses={200: s.TaskSerializer, 204: None, **READ},
    )
    def post(self, request: Request) -> Response:
        lease = labels.undo_label(user=request.user, token=_token(request))
        if lease is None:
            return Response(status=204)
        # Served anew, so that a text erased meanwhile does not come back.
        seat = seat_of(request.user, lease.member.project_id)
        return _task(seat, leases.serve(user=request.user, project=seat.member.project).lease)


def _token(request: Request) -> str:
    sent = s.TaskTokenSerializer(data=request.data)
    sent.is_valid(raise_exception=True)
    return str(sent.validated_data["token"])


class SkipView(WorkerView):
    """Give an item back with a reason. Twice is the same as once."""

    @extend_schema(
        operation_id="work_skip", request=s.TaskSkipSerializer, responses={204: None, **READ}
    )
    def post(self, request: Request) -> Response:
        return skip_lease(request, s.TaskSkipSerializer(data=request.data), leases.skip)


class HeartbeatView(WorkerView):
    """Renew the lease while the item is looked at. 409: it is gone."""

    @extend_schema(
        operation_id="work_heartbeat",
        request=s.TaskTokenSerializer,
        responses={200: s.TaskLeaseSerializer, **READ},
    )
    def post(self, request: Request) -> Response:
        sent = s.TaskTokenSerializer(data=request.data)
        return renew_lease(request, sent, leases.heartbeat, _("This item is not yours any more."))


class DraftView(WorkerView):
    """Keep an unsent answer, so that it stands there again with the item."""

    @extend_schema(
        operation_id="work_draft", request=s.DraftSerializer, responses={204: None, **READ}
    )
    def put(self, request: Request) -> Response:
        sent = s.DraftSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        data: dict[str, Any] = dict(sent.validated_data)
        strengths = {f"{axis}_strength": n for axis, n in data.get("strengths", {}).items()}
        rest = {name: data[name] for name in ("tags", "comment", "active_ms") if name in data}
        draft = {**data.get("verdicts", {}), **strengths, **rest}
        labels.save_draft(user=request.user, token=data["token"], draft=draft)
        return Response(status=204)
