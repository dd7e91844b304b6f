"""Between the labelling form and the services: what was posted, and what the page shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from annotation.enums import Axis, MemberState, ProblemKind, SkipReason
from annotation.models import Lease, Member
from annotation.selectors import tasks
from annotation.selectors.history import private_signals
from annotation.selectors.work import Seat
from annotation.services import labels
from annotation.views.words import tag_label
from webapp.accounts import keys
from webapp.core.http import whole_number

LEGENDS = {
    Axis.QUALITY.value: _("Which is better in content?"),
    Axis.PERSONALIZATION.value: _("Which fits this person better?"),
}
OUTCOMES = {
    "saved": _("Saved."),
    "changed": _("Changed. What you sent before stays on record."),
    "late": _("Saved. It came after your time for this pair, and it counts all the same."),
    "extra": _("Saved as an extra: this pair had enough labels by then. Nothing you did is lost."),
    "undone": _("It is taken back; what you chose stands here again."),
}
REST, REST_HOURS = "annotation_rest", 3  # session: until when no break is suggested


def posted_answer(request: HttpRequest) -> labels.Answer:
    posted = request.POST
    strengths = {axis: whole_number(posted.get(f"{axis}_strength")) or 0 for axis in Axis.values}
    return labels.Answer(
        verdicts={axis: posted.get(axis, "") for axis in Axis.values},
        strengths=strengths,
        tags=posted.getlist("tags"),
        comment=posted.get("comment", ""),
        active_ms=whole_number(posted.get("active_ms")) or 0,
    )


def posted_draft(request: HttpRequest) -> dict[str, Any]:
    """The fields of the form as they were sent, to stand on the page again."""
    names = [*Axis.values, *(f"{axis}_strength" for axis in Axis.values), "comment"]
    draft: dict[str, Any] = {name: request.POST.get(name, "") for name in names}
    draft["tags"] = request.POST.getlist("tags")
    draft["active_ms"] = whole_number(request.POST.get("active_ms")) or 0
    return draft


def outcome_of(done: labels.Submitted) -> str:
    """What to say about a submission. Gold, repeats and ordinary items say the same."""
    if done.extra:
        return "extra"
    if done.label.late:
        return "late"
    return "changed" if done.label.revision > 1 and not done.again else "saved"


def context_of(
    request: HttpRequest,
    seat: Seat,
    lease: Lease,
    *,
    draft: dict[str, Any] | None = None,
    errors: dict[str, list[str]] | None = None,
    outcome: str = "",
) -> dict[str, Any]:
    """Everything that components/ballot.html and annotation/_label.html show."""
    project = seat.member.project
    learning = lease.member.state == MemberState.ONBOARDING
    return {
        "project": project,
        "pair": tasks.blind_pair(lease),
        "axes": axes_of(seat.member),
        "draft": draft if draft is not None else lease.draft,
        "errors": errors or {},
        "tags": [(tag, tag_label(tag)) for tag in project.tags],
        "skip_reasons": SkipReason.choices,
        "problem_kinds": ProblemKind.choices,
        "progress": seat.progress,
        "learning": learning,
        "can_undo": bool(seat.progress.last),
        "expires_in": tasks.seconds_left(lease),
        "outcome": OUTCOMES.get(outcome, ""),
        "guideline_changed": seat.guideline_n if seat.is_changed else 0,
        "rest": suggests_rest(request, seat),
        "keys_json": keys.keys_json(request.user),
        "urls": urls_of(project.pk, prefetch=not learning),
    }


def axes_of(member: Member) -> list[dict[str, Any]]:
    """The rows of verdicts in this member's order, with what the project allows."""
    project = member.project
    ordered = [axis for axis in member.axes if axis in project.axes]
    ordered += [axis for axis in project.axes if axis not in ordered]
    return [
        {
            "name": axis,
            "legend": LEGENDS[axis],
            "allowed": labels.allowed_verdicts(project),
            "strength": f"{axis}_strength" if project.ask_strength else "",
        }
        for axis in ordered
    ]


def urls_of(project: int, *, prefetch: bool) -> dict[str, str]:
    names = ["undo", "skip", "heartbeat", "draft", "diff", "problem", "rest", "guidelines"]
    urls = {name: reverse(f"annotation:{name}", args=[project]) for name in names}
    urls["submit"] = reverse("annotation:label", args=[project])
    urls["prefetch"] = reverse("annotation:prefetch", args=[project]) if prefetch else ""
    return urls


def suggests_rest(request: HttpRequest, seat: Seat) -> bool:
    """Whether to suggest a break, unless she does not want to hear it now."""
    if not seat.long_run:
        return False
    until = parse_datetime(request.session.get(REST, ""))
    if until is not None and until > timezone.now():
        return False
    return private_signals(seat.member).rest


def quiet_for_now(request: HttpRequest) -> None:
    request.session[REST] = (timezone.now() + timedelta(hours=REST_HOURS)).isoformat()
