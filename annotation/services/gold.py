"""Gold items: making and correcting them, and the account of who agrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation import policies
from annotation.enums import Axis, ItemState, LeaseState, MemberState, Verdict
from annotation.gold import falls_short
from annotation.models import GoldItem, Item, Lease, Member, Project
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused


def make_gold(
    *,
    actor: Any,
    item: Item,
    verdicts: Mapping[str, str],
    explanation: str = "",
    onboarding: bool = False,
    reason: str = "",
) -> GoldItem:
    """Make an item gold, or correct its answer; everyone who labelled it is scored again.

    `verdicts` are canonical, at least one axis of the project. The item leaves the queue.
    """
    policies.check_manage(actor)
    with transaction.atomic():
        row = Item.objects.select_for_update().get(pk=item.pk)
        known = _checked(row.project, verdicts)
        if row.state == ItemState.DROPPED:
            raise Refused(_("This item was dropped."), code="dropped")
        newest = row.gold.order_by("-n").first()
        gold = GoldItem.objects.create(
            item=row,
            n=newest.n + 1 if newest else 1,
            **known,
            explanation=explanation or (newest.explanation if newest else ""),
            onboarding=onboarding,
            reason=reason[:300],
            created_by=actor,
        )
        Item.objects.filter(pk=row.pk).update(state=ItemState.GOLD)
        audit.record(actor=actor, action="make_gold", obj=row, n=gold.n, reason=reason)
        rescore_item(row)
    return gold


def retire_gold(*, actor: Any, item: Item, reason: str) -> None:
    """Take a gold item out of use; nobody is scored by it any more."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = Item.objects.select_for_update().get(pk=item.pk)
        newest = row.gold.order_by("-n").first()
        if newest is None or not newest.active:
            return
        GoldItem.objects.create(
            item=row,
            n=newest.n + 1,
            quality=newest.quality,
            personalization=newest.personalization,
            explanation=newest.explanation,
            onboarding=newest.onboarding,
            active=False,
            reason=reason[:300],
            created_by=actor,
        )
        audit.record(actor=actor, action="retire_gold", obj=row, reason=reason)
        rescore_item(row)


def _checked(project: Project, verdicts: Mapping[str, str]) -> dict[str, str]:
    known = {axis: verdicts.get(axis, "") for axis in Axis.values}
    for axis, verdict in known.items():
        if verdict and (axis not in project.axes or verdict not in Verdict.values):
            raise InvalidInput(_("This verdict is not asked for here."), field=axis)
    if not any(known.values()):
        raise InvalidInput(_("Give the right answer on at least one axis."), field="quality")
    return known


def rescore_item(item: Item) -> None:
    """Score again everyone who labelled this item."""
    members = Member.objects.filter(leases__item=item, leases__state=LeaseState.SUBMITTED)
    for member in members.distinct().order_by("pk"):
        score_member(member)


def score_member(member: Member) -> None:
    """Count a member's hidden gold labels and those that agree; pause her where too few do."""
    right = seen = 0
    for lease, gold in gold_labels(member):
        if gold.active and not gold.onboarding:
            seen += 1
            right += agrees(lease, gold)
    member.gold_right, member.gold_seen = right, seen
    columns = ["gold_right", "gold_seen"]
    project = member.project
    if member.state == MemberState.WORKING and falls_short(
        right, seen, project.gold_floor / 100, project.gold_minimum
    ):
        member.state = MemberState.PAUSED
        member.paused_reason = f"gold: {right} of {seen}"
        columns += ["state", "paused_reason"]
        audit.record(actor=None, action="member_paused", obj=member, right=right, seen=seen)
    member.save(update_fields=columns)


def gold_labels(member: Member) -> list[tuple[Lease, GoldItem]]:
    """Her submitted labels on gold items with the answer that holds now."""
    leases = (
        Lease.objects.filter(
            member=member, state=LeaseState.SUBMITTED, item__state=ItemState.GOLD, repeat=0
        )
        .select_related("head")
        .order_by("pk")
    )
    rows = list(leases)
    items = [row.item_id for row in rows]
    newest = {gold.item_id: gold for gold in GoldItem.objects.filter(item__in=items).order_by("n")}
    return [(row, newest[row.item_id]) for row in rows if row.item_id in newest]


def agrees(lease: Lease, gold: GoldItem) -> bool:
    """Whether a label gives the known answer on every axis that has one."""
    return all(
        getattr(lease.head, axis) == getattr(gold, axis)
        for axis in Axis.values
        if getattr(gold, axis)
    )
