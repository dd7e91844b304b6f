"""Setting a member's labels aside: they stay on record and count for nothing, until taken back.

For whoever turns out not to have read what she labelled. Gold stays as it is: it is the account of
her work, and nothing is trained on it. She sees no difference between the two (V8): `aside_at` and
not the state of a lease decides what she may still do. What people decided about disputed items
stays, and so do frozen datasets. Locks go project, member, items, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import ItemState, LeaseState, WebhookEvent
from annotation.models import Item, Lease, Member
from annotation.services.chunks import chunks
from annotation.services.decisions import SETTLED_BY_LABELS
from annotation.services.item_locks import lock_items
from annotation.services.projects import locked, locked_member_row
from annotation.services.queue import refresh_targets
from annotation.services.settling import settle_items
from annotation.services.statistics import JOB as STATISTICS
from annotation.services.texts import REASON_LIMIT, checked_text
from annotation.services.webhooks import announce
from webapp.core import audit
from webapp.core.jobs import enqueue
from webapp.core.locking import retry_deadlocks


@retry_deadlocks
def set_labels_aside(*, actor: Any, member: Member, reason: str) -> int:
    """Let the labels of a member count no more; their items want others. Number of labels.

    Refused while she works: she is paused first. Twice is the same as once.
    """
    policies.check_manage(actor)
    reason = checked_text(
        reason, field="reason", required=_("Say why, for the log."), limit=REASON_LIMIT
    )
    with transaction.atomic():
        row = _locked(member)
        policies.check_set_aside(row)
        leases = _lock(row, LeaseState.SUBMITTED)
        counted = sorted({lease.item_id for lease in leases if lease.counted})
        for part in chunks(leases):
            Lease.objects.filter(pk__in=[lease.pk for lease in part]).update(
                state=LeaseState.SET_ASIDE, counted=False
            )
        for pks in chunks(counted):
            _give_back_places(pks, row.project.base_overlap)
        if leases:
            Member.objects.filter(pk=row.pk).update(aside_at=timezone.now())
        _settle(row, counted)
        _tell(actor, "set_labels_aside", row, leases, reason)
    return len(leases)


@retry_deadlocks
def take_labels_back(*, actor: Any, member: Member, reason: str = "") -> int:
    """Let them count again. Where an item has enough by now, a label is kept as an extra."""
    policies.check_manage(actor)
    reason = checked_text(reason, field="reason", limit=REASON_LIMIT)
    with transaction.atomic():
        row = _locked(member)
        leases = _lock(row, LeaseState.SET_ASIDE)
        first = {lease.item_id for lease in leases if not lease.repeat}
        counted = [pk for pks in chunks(sorted(first)) for pk in _take_places(pks)]
        for part in chunks(leases):
            rows = Lease.objects.filter(pk__in=[lease.pk for lease in part])
            rows.update(state=LeaseState.SUBMITTED)
            rows.filter(item__in=counted, repeat=0).update(counted=True)
        Member.objects.filter(pk=row.pk).update(aside_at=None)
        _settle(row, counted)
        _tell(actor, "take_labels_back", row, leases, reason)
    return len(leases)


def _locked(member: Member) -> Member:
    project = locked(member.project_id)
    row = locked_member_row(member.pk)
    row.project = project
    return row


def _lock(member: Member, state: str) -> list[Lease]:
    """Her leases in this state, but for gold, with their items locked."""
    rows = Lease.objects.filter(member=member, state=state)
    lock_items(rows.values_list("item", flat=True), scored=tuple, members=[member.pk])
    return list(
        rows.exclude(item__state=ItemState.GOLD).select_related("head", "item").order_by("pk")
    )


def _give_back_places(pks: Sequence[int], base_overlap: int) -> None:
    """Her places are free, and what only disagreement with her had raised wants no more labels."""
    rows = Item.objects.filter(pk__in=pks)
    rows.update(live=F("live") - 1, done=F("done") - 1)
    raised = rows.filter(state__in=SETTLED_BY_LABELS, target__gt=base_overlap)
    raised.update(target=Greatest(base_overlap, F("live")), priority=0)


def _take_places(pks: Sequence[int]) -> list[int]:
    """A place for her in each of these items that has one. The items that do."""
    rows = Item.objects.filter(pk__in=pks, state=ItemState.OPEN, live__lt=F("target"))
    free = list(rows.order_by("pk").values_list("pk", flat=True))
    Item.objects.filter(pk__in=free).update(live=F("live") + 1, done=F("done") + 1)
    return free


def _settle(member: Member, items: Sequence[int]) -> None:
    settle_items(items)
    refresh_targets(project=member.project)


def _tell(actor: Any, action: str, member: Member, leases: Sequence[Lease], reason: str) -> None:
    if not leases:
        return
    audit.record(actor=actor, action=action, obj=member, labels=len(leases), reason=reason)
    enqueue(STATISTICS, member.project.pk)  # no label is new, so nothing else asks for them
    withdrawn = action == "set_labels_aside"
    event = WebhookEvent.LABEL_WITHDRAWN if withdrawn else WebhookEvent.LABEL_SUBMITTED
    hooks = member.project.webhooks.filter(active=True)
    member.project.hooked = hooks.exists()  # type: ignore[attr-defined]
    for lease in leases:
        assert lease.head is not None
        payload: dict[str, Any] = {
            "item": lease.item.public_id,
            "annotator": member.pseudonym,
            "revision": lease.head.revision,
        }
        if not withdrawn:
            payload["late"] = lease.head.late
        announce(member.project, event, payload)
