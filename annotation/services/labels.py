"""Submitting, changing and taking back labels: append-only revisions, the lease has the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import (
    Axis,
    ItemState,
    LeaseState,
    ProjectState,
    Shown,
    Strength,
    WebhookEvent,
)
from annotation.models import Adjudication, Item, Label, Lease, Project
from annotation.selectors.tasks import as_canonical, as_shown
from annotation.services.decisions import settle_locked
from annotation.services.gold import pause_if_due, score_member
from annotation.services.leases import count_live, expiry, locked_lease
from annotation.services.webhooks import announce
from webapp.core.errors import InvalidInput, Refused
from webapp.core.locking import retry_deadlocks

COMMENT_LIMIT = 2000
ACTIVE_LIMIT_MS = 4 * 3600 * 1000
UNDO_DEPTH = 10  # the last submissions that may be taken back


@dataclass(frozen=True)
class Answer:
    """What an annotator sends, as she saw it: one verdict (left, tie, right, both_bad) per axis."""

    verdicts: Mapping[str, str]
    strengths: Mapping[str, int] = field(default_factory=dict)
    tags: Sequence[str] = ()
    comment: str = ""
    active_ms: int = 0
    source: str = "web"


@dataclass(frozen=True)
class Submitted:
    """`again`: this very answer was here already. `extra`: kept, but the item had enough."""

    label: Label
    lease: Lease
    again: bool = False
    extra: bool = False


@retry_deadlocks
def submit_label(*, user: Any, token: str, answer: Answer) -> Submitted:
    """Record a label. The same answer sent again returns the same label; another is a revision.

    A label after the lease ran out is kept and marked late; where the item has enough by then it
    is an extra. Raises InvalidInput naming the field, Forbidden for somebody else's item, and
    refuses to change a label where the project is closed or she does not work in it any more.
    """
    with transaction.atomic():
        lease = _locked_lease(user, token)
        project = lease.member.project
        check_answer(project, answer)
        head = lease.head
        if head is not None and not head.is_undo and _same(lease, head, answer):
            return Submitted(head, lease, again=True, extra=_is_extra(lease))
        _check_change(lease)
        late = _take_place(lease) or bool(head and head.late)
        label = _append(lease, answer, late=late)
        _announce(WebhookEvent.LABEL_SUBMITTED, lease, label, late=late)
        _after(lease)
        return Submitted(label, lease, extra=_is_extra(lease))


@retry_deadlocks
def undo_label(*, user: Any, token: str) -> Lease | None:
    """Take back one of her last submissions; she holds the item again. None: it cannot be.

    Sent twice it takes back once. The place stays hers until she submits, skips or lets it expire.
    """
    if not token:
        return None
    with transaction.atomic():
        lease = _locked_lease(user, token)
        policies.check_open(lease.member.project)  # else she could not give it anew
        policies.check_works(lease.member)
        if lease.state == LeaseState.SHOWN:
            return lease
        if lease.state != LeaseState.SUBMITTED or not _is_recent(lease):
            return None
        assert lease.head is not None
        taken_back = draft_of(lease.head)
        label = _append(lease, Answer({}), late=lease.head.late)
        if lease.counted:
            Item.objects.filter(pk=lease.item_id).update(done=F("done") - 1)
        lease.state, lease.submitted_at = LeaseState.SHOWN, None
        lease.shown_at = timezone.now()
        lease.expires_at, lease.draft = expiry(lease.member.project), taken_back
        lease.save(update_fields=["state", "submitted_at", "shown_at", "expires_at", "draft"])
        _announce(WebhookEvent.LABEL_WITHDRAWN, lease, label)
        _after(lease)
    return lease


def _announce(event: str, lease: Lease, label: Label, **more: Any) -> None:
    """The same words whether the item is gold, repeated, extra or none of these."""
    payload = {
        "item": lease.item.public_id,
        "annotator": lease.member.pseudonym,
        "revision": label.revision,
        **more,
    }
    announce(lease.member.project, event, payload)


def _after(lease: Lease) -> None:
    """What a new or withdrawn label changes: the item's outcome, or the account of gold."""
    member = lease.member
    if lease.item.state == ItemState.GOLD:
        member = score_member(member)
    elif lease.counted and not _still_waits(lease.item):
        settle_locked(lease.item, lease.decision_n)  # type: ignore[attr-defined]
    pause_if_due(member, lease.member.project.seed, lease.position)


def _still_waits(item: Item) -> bool:
    """Whether an item, read before the label was counted, lacks further ones and decides nothing.

    Then there is nothing to look at, and most submissions are spared the look.
    """
    undecided = item.quality_decision_id is None and item.personalization_decision_id is None
    return item.state == ItemState.OPEN and undecided and item.done + 1 < item.target


def _is_recent(lease: Lease) -> bool:
    recent = Lease.objects.filter(member=lease.member, state=LeaseState.SUBMITTED)
    return lease.pk in recent.order_by("-submitted_at").values_list("pk", flat=True)[:UNDO_DEPTH]


def save_draft(*, user: Any, token: str, draft: Mapping[str, Any]) -> None:
    """Keep an unsent answer, so that another browser can go on with it."""
    names = [*Axis.values, *(f"{axis}_strength" for axis in Axis.values), "comment"]
    clean: dict[str, Any] = {k: _kept(draft[k], COMMENT_LIMIT) for k in names if k in draft}
    clean["tags"] = [_kept(tag, 64) for tag in draft.get("tags", [])][:30]
    if str(draft.get("active_ms", "")).isdecimal():
        clean["active_ms"] = min(int(draft["active_ms"]), ACTIVE_LIMIT_MS)
    Lease.objects.filter(
        token=token, member__user=user, state__in=[LeaseState.SHOWN, LeaseState.EXPIRED]
    ).update(draft=clean)


def _kept(value: Any, limit: int) -> str:
    """Unsent work is never refused: what PostgreSQL cannot keep is left out."""
    return str(value).replace("\x00", "")[:limit]


def draft_of(label: Label) -> dict[str, Any]:
    """A label as she saw it, to go on from: what is taken back stands on the page again.

    Its active time is taken along, so that the head of an item has all time spent on it.
    """
    draft: dict[str, Any] = {"comment": label.comment, "tags": list(label.tags)}
    for axis in Axis.values:
        draft[axis] = as_shown(getattr(label, axis), label.first_left)
        draft[f"{axis}_strength"] = str(getattr(label, f"{axis}_strength") or "")
    return {**draft, "active_ms": label.active_ms}


def _locked_lease(user: Any, token: str) -> Lease:
    lease = locked_lease(user, token)
    if lease is None:
        raise policies.not_yours()
    if lease.state == LeaseState.RESERVED:
        raise Refused(_("This item was not shown yet."), code="not_shown")
    since = lease.member.aside_at
    before = since is not None and lease.submitted_at is not None and lease.submitted_at <= since
    if before or lease.state == LeaseState.SET_ASIDE:
        raise Refused(_("A manager has set this label aside."), code="set_aside")
    return lease


def check_answer(project: Project, answer: Answer) -> None:
    """Raise InvalidInput naming the field that is missing or cannot be used."""
    allowed = allowed_verdicts(project)
    for axis in project.axes:
        verdict = answer.verdicts.get(axis, "")
        if verdict not in allowed:
            raise InvalidInput(_("Choose one of them."), field=axis, code="missing_verdict")
        if not project.ask_strength or verdict not in (Shown.LEFT, Shown.RIGHT):
            continue
        if answer.strengths.get(axis) not in Strength.values:
            raise InvalidInput(
                _("Say how much better it is."), field=f"{axis}_strength", code="missing_strength"
            )
    unknown = sorted(set(answer.tags) - set(project.tags))
    if unknown:
        raise InvalidInput(_("Unknown tag: %(tag)s.") % {"tag": unknown[0][:40]}, field="tags")
    if len(answer.comment) > COMMENT_LIMIT:
        raise InvalidInput(
            _("The comment has %(have)s characters, at most %(most)s are kept.")
            % {"have": len(answer.comment), "most": COMMENT_LIMIT},
            field="comment",
        )
    if "\x00" in answer.comment:
        raise InvalidInput(_("The comment holds a NUL character."), field="comment")


def allowed_verdicts(project: Project) -> list[str]:
    """The verdicts of the page that this project allows, in the order of the keys."""
    return [str(as_shown(verdict, True)) for verdict in policies.allowed_outcomes(project)]


def _same(lease: Lease, head: Label, answer: Answer) -> bool:
    values = _values(lease, answer)
    return lease.state == LeaseState.SUBMITTED and all(
        getattr(head, name) == value for name, value in values.items()
    )


def _values(lease: Lease, answer: Answer) -> dict[str, Any]:
    """The columns of a label that a person decides."""
    project = lease.member.project
    values: dict[str, Any] = {"tags": sorted(set(answer.tags)), "comment": answer.comment}
    for axis in project.axes:
        shown = answer.verdicts.get(axis, "")
        strength = None
        if project.ask_strength and shown in (Shown.LEFT, Shown.RIGHT):
            strength = answer.strengths.get(axis)
        values[axis] = as_canonical(shown, lease.first_left)
        values[f"{axis}_strength"] = strength
    return values


def _check_change(lease: Lease) -> None:
    """Unsent work is kept whatever happens; what was submitted changes only while work goes on."""
    if lease.state != LeaseState.SUBMITTED:
        return
    policies.check_works(lease.member)
    if lease.member.project.state == ProjectState.CLOSED:
        raise Refused(_("The project is closed."), code="closed")


def _take_place(lease: Lease) -> bool:
    """Make the lease count where the item has a place left. True: the label comes late."""
    if lease.state == LeaseState.SUBMITTED:
        return False
    if lease.state == LeaseState.SHOWN:
        return lease.expires_at <= timezone.now()
    closed = lease.member.project.state == ProjectState.CLOSED
    if lease.repeat == 0 and not closed and not _is_aside(lease) and not _has_decided(lease):
        lease.counted = count_live(lease.item_id, 1, live__lt=F("target"), state=ItemState.OPEN)
    return True


def _is_aside(lease: Lease) -> bool:
    """Whether her labels are set aside and she may not work: then unsent ones count as little."""
    member = lease.member
    return member.aside_at is not None and not policies.may_get_items(member)


def _has_decided(lease: Lease) -> bool:
    """Whether she had the item in hand as an adjudicator meanwhile, and knows its labels."""
    rows = Adjudication.objects.filter(item=lease.item_id, adjudicator=lease.member.user_id)
    return rows.exists()


def _append(lease: Lease, answer: Answer, *, late: bool) -> Label:
    """Write the next revision and point the lease at it."""
    label = Label.objects.create(
        lease=lease,
        item_id=lease.item_id,
        member_id=lease.member_id,
        revision=(lease.head.revision if lease.head else 0) + 1,
        **_values(lease, answer),
        active_ms=min(max(answer.active_ms, 0), ACTIVE_LIMIT_MS),
        guideline_id=lease.guideline_id,  # type: ignore[attr-defined]
        first_left=lease.first_left,
        late=late,
        source=answer.source,
    )
    first_time = lease.state != LeaseState.SUBMITTED
    lease.head, lease.draft = label, {}
    if not label.is_undo and first_time:
        lease.state, lease.submitted_at = LeaseState.SUBMITTED, timezone.now()
        if lease.counted:
            Item.objects.filter(pk=lease.item_id).update(done=F("done") + 1)
    lease.save(update_fields=["head", "draft", "state", "submitted_at", "counted"])
    return label


def _is_extra(lease: Lease) -> bool:
    """Late work that found no place. Gold and repeats never look like it."""
    beside = lease.counted or lease.repeat or lease.item.state == ItemState.GOLD
    late = lease.head is not None and lease.head.late and not _is_aside(lease)
    return late and not beside and lease.state == LeaseState.SUBMITTED
