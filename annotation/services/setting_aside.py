"""Setting a member's labels aside: they stay on record and count for nothing, until taken back.

For whoever turns out not to have read what she labelled. Labels on gold stay as they are: they are
the account of her work, and nothing is trained on them. She sees no difference between the two
(V8): `aside_at` and not the state of a lease decides what she may still do. What does not come from
labels alone stays: items that an adjudicator decided, outcomes by construction, decisions that an
import brought, frozen datasets. Locks go project, member, items, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import (
    GIVEN,
    HELD,
    Axis,
    DecisionSource,
    ItemState,
    LeaseState,
    WebhookEvent,
)
from annotation.models import Item, Lease, Member
from annotation.services.chunks import chunks
from annotation.services.gold import score_member
from annotation.services.item_locks import lock_items
from annotation.services.leases import expire
from annotation.services.projects import locked, locked_member_row
from annotation.services.queue import refresh_targets
from annotation.services.settling import settle_items
from annotation.services.statistics import JOB as STATISTICS
from annotation.services.texts import REASON_LIMIT, checked_text
from annotation.services.webhooks import announce_many
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
        leases = _lock(row, Q(state=LeaseState.SUBMITTED) & ~Q(item__state=ItemState.GOLD))
        if not leases:
            return 0
        for held in Lease.objects.filter(member=row, state__in=HELD).select_related("item"):
            expire(held)
        counted = sorted(lease.item_id for lease in leases if lease.counted)
        _move(leases, LeaseState.SET_ASIDE, had_place=F("counted"), counted=False)
        for pks in chunks(counted):
            _give_back_places(pks, row.project.base_overlap)
        Member.objects.filter(pk=row.pk).update(aside_at=timezone.now())
        _tell(row, WebhookEvent.LABEL_WITHDRAWN)
        _settle(row, counted)
        _record(actor, "set_labels_aside", row, leases, reason)
    return len(leases)


@retry_deadlocks
def take_labels_back(*, actor: Any, member: Member, reason: str = "") -> int:
    """Let them count again, also where an item has enough by now; it has one more then."""
    policies.check_manage(actor)
    reason = checked_text(reason, field="reason", limit=REASON_LIMIT)
    with transaction.atomic():
        row = _locked(member)
        leases = _lock(row, Q(state=LeaseState.SET_ASIDE))
        if not leases:
            return 0
        placed = [lease for lease in leases if lease.had_place]
        counted = sorted(x.item_id for x in placed if x.item.state != ItemState.GOLD)
        for pks in chunks(counted):
            _take_places(pks)
        _move(leases, LeaseState.SUBMITTED, had_place=None)
        for pks in chunks(counted):
            Lease.objects.filter(member=row, item__in=pks, repeat=0).update(counted=True)
        Member.objects.filter(pk=row.pk).update(aside_at=None)
        _tell(row, WebhookEvent.LABEL_SUBMITTED)
        _settle(row, counted)
        score_member(row)  # an item may have become gold meanwhile
        _record(actor, "take_labels_back", row, leases, reason)
    return len(leases)


def _locked(member: Member) -> Member:
    project = locked(member.project_id)
    row = locked_member_row(member.pk)
    row.project = project
    return row


def _lock(member: Member, which: Q) -> list[Lease]:
    """These leases of hers, read after their items were locked; also what she has in hand is."""
    rows = Lease.objects.filter(member=member)
    held = rows.filter(state__in=HELD).values_list("item", flat=True)
    wanted = set(rows.filter(which).values_list("item", flat=True)) | set(held)
    lock_items(wanted, scored=tuple, members=[member.pk])
    return list(rows.filter(which).select_related("item").order_by("pk"))


def _move(leases: Sequence[Lease], state: str, **columns: Any) -> None:
    for part in chunks(leases):
        rows = Lease.objects.filter(pk__in=[lease.pk for lease in part])
        rows.update(state=state, **columns)


def _give_back_places(pks: Sequence[int], base_overlap: int) -> None:
    """Her places are free, and what only disagreement with her had raised wants no more labels."""
    rows = Item.objects.filter(pk__in=pks)
    rows.update(live=F("live") - 1, done=F("done") - 1)
    raised = rows.filter(target__gt=base_overlap)
    raised.update(target=Greatest(base_overlap, F("live")), priority=0)


def _take_places(pks: Sequence[int]) -> None:
    rows = Item.objects.filter(pk__in=pks)
    rows.update(target=Greatest(F("target"), F("live") + 1), live=F("live") + 1, done=F("done") + 1)
    rows.filter(state=ItemState.PARKED).update(state=ItemState.OPEN)  # somebody's work is in it


def _settle(member: Member, pks: Sequence[int]) -> None:
    """Look at the items anew whose outcome comes from the labels here alone."""
    by_labels: list[int] = []
    for part in chunks(pks):
        elsewhere = Q()
        for axis in Axis.values:
            elsewhere |= Q(**{f"{axis}_decision__source": DecisionSource.SYNTHETIC})
            elsewhere |= Q(**{f"{axis}_decision__labels__gt": F("done") + 1})
        rows = Item.objects.filter(pk__in=part).exclude(pk__in=Item.objects.filter(elsewhere))
        by_labels += rows.values_list("pk", flat=True)
    settle_items(by_labels)
    refresh_targets(project=member.project)


def _tell(member: Member, event: str) -> None:
    """Webhooks hear of every label that she gave, gold or not: the words are the same."""
    late = event == WebhookEvent.LABEL_SUBMITTED
    rows = Lease.objects.filter(member=member, state__in=GIVEN).order_by("pk")
    found = rows.values_list("item__public_id", "head__revision", "head__late")
    payloads = [
        {"item": item, "annotator": member.pseudonym, "revision": revision}
        | ({"late": was_late} if late else {})
        for item, revision, was_late in found
    ]
    announce_many(member.project, event, payloads)


def _record(actor: Any, action: str, member: Member, leases: Sequence[Lease], reason: str) -> None:
    """Last: the log has one head, and who holds it must not wait for anybody."""
    audit.record(actor=actor, action=action, obj=member, labels=len(leases), reason=reason)
    enqueue(STATISTICS, member.project.pk)  # no label is new, so nothing else asks for them
