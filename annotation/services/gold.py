"""Gold items: making and correcting them, and the account of who agrees with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation import policies
from annotation.assignment import draw
from annotation.enums import Axis, ItemState, LeaseState, MemberState, Verdict
from annotation.gold import falls_short
from annotation.models import GoldItem, Item, Member, Project
from annotation.selectors.gold import BY_GATE, accounts_of
from annotation.services.item_locks import lock_items
from annotation.services.texts import checked_reason
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused
from webapp.core.locking import retry_deadlocks

EXPLANATION_LIMIT = 2000
GATE_DELAY = 4  # a pause by the gate comes about so many submissions later


@retry_deadlocks
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

    `verdicts` are canonical, at least one axis of the project. The item leaves the queue. Without
    an explanation the old one stays. The same answer sent again changes nothing.
    """
    policies.check_manage(actor)
    reason = checked_reason(reason)
    with transaction.atomic():
        row = _locked_item(item)
        known = _checked(row.project, verdicts)
        if row.state == ItemState.DROPPED:
            raise Refused(_("This item was dropped."), code="dropped")
        newest = row.gold.order_by("-n").first()
        wanted = {**known, "onboarding": onboarding, "active": True}
        if explanation:
            wanted["explanation"] = explanation
        if newest and all(getattr(newest, name) == value for name, value in wanted.items()):
            return newest
        gold = GoldItem.objects.create(
            item=row,
            n=newest.n + 1 if newest else 1,
            **known,
            explanation=explanation or (newest.explanation if newest else ""),
            onboarding=onboarding,
            reason=reason,
            created_by=actor,
        )
        Item.objects.filter(pk=row.pk).update(state=ItemState.GOLD)
        rescore_item(row)
        # Last: the log has one head, and who holds it must not wait for a member.
        audit.record(actor=actor, action="make_gold", obj=row, n=gold.n, reason=reason)
    return gold


@retry_deadlocks
def retire_gold(*, actor: Any, item: Item, reason: str) -> None:
    """Take a gold item out of use; nobody is scored by it any more."""
    policies.check_manage(actor)
    reason = checked_reason(reason)
    with transaction.atomic():
        row = _locked_item(item)
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
            reason=reason,
            created_by=actor,
        )
        rescore_item(row)
        audit.record(actor=actor, action="retire_gold", obj=row, reason=reason)


def _locked_item(item: Item) -> Item:
    """The item, locked after those who labelled it, and read afterwards."""
    lock_items([item.pk], scored=lambda: [item.pk])
    return Item.objects.select_related("project").get(pk=item.pk)


@retry_deadlocks
def make_gold_from_decisions(
    *, actor: Any, project: Project, items: Iterable[int], onboarding: bool = False
) -> int:
    """Make decided items gold with the verdicts that they have. Number of items.

    Labels that led to the decision do not count as gold: they agree with it by construction.
    """
    policies.check_manage(actor)
    made = 0
    with transaction.atomic():
        wanted = list(items)
        lock_items(wanted, scored=lambda: wanted)
        rows = Item.objects.filter(project=project, pk__in=wanted, state=ItemState.DONE)
        found = rows.select_related("quality_decision", "personalization_decision")
        for item in found.order_by("pk"):
            verdicts = decided_verdicts(item)
            if verdicts:
                make_gold(actor=actor, item=item, verdicts=verdicts, onboarding=onboarding)
                made += 1
    return made


def decided_verdicts(item: Item) -> dict[str, str]:
    """The verdicts that hold, by axis."""
    held = {axis: getattr(item, f"{axis}_decision") for axis in item.project.axes}
    return {axis: row.verdict for axis, row in held.items() if row is not None and row.verdict}


def _checked(project: Project, verdicts: Mapping[str, str]) -> dict[str, str]:
    known = {axis: verdicts.get(axis, "") for axis in Axis.values}
    for axis, verdict in known.items():
        if verdict and (axis not in project.axes or verdict not in Verdict.values):
            raise InvalidInput(_("This verdict is not asked for here."), field=axis)
    if not any(known.values()):
        raise InvalidInput(_("Give the right answer on at least one axis."), field="quality")
    return known


def rescore_item(item: Item) -> None:
    """Score again everyone who labelled this item; the caller holds it by `lock_items`."""
    members = Member.objects.filter(leases__item=item, leases__state=LeaseState.SUBMITTED)
    for member in members.distinct().order_by("pk"):
        score_member(member)


def score_member(member: Member) -> Member:
    """Count a member's hidden gold labels and those that agree; note whether they are too few.

    She is not paused here: `pause_if_due` does that later, so that the moment does not tell which
    of her items was gold. Returns her row as it is now.
    """
    row = Member.objects.select_for_update(no_key=True).get(pk=member.pk)
    account = accounts_of(row)
    row.gold_right, row.gold_seen = account.right, account.seen
    columns = ["gold_right", "gold_seen"]
    project = member.project
    if row.state == MemberState.WORKING:
        short = falls_short(
            account.gate_right, account.gate_seen, project.gold_floor / 100, project.gold_minimum
        )
        found = f"{account.gate_right} of {account.gate_seen}"
        row.paused_reason = f"{BY_GATE} {found}" if short else ""
        columns.append("paused_reason")
    row.save(update_fields=columns)
    return row


def pause_if_due(member: Member, seed: str, position: int) -> None:
    """Pause a member whose account falls short, at one of her next submissions, drawn by lot."""
    waiting = member.state == MemberState.WORKING and member.paused_reason.startswith(BY_GATE)
    if not waiting or draw(seed, "gate", member.pk, position) % GATE_DELAY:
        return
    rows = Member.objects.filter(pk=member.pk, state=MemberState.WORKING)
    if rows.update(state=MemberState.PAUSED):
        audit.record(
            actor=None,
            action="member_paused",
            obj=member,
            right=member.gold_right,
            seen=member.gold_seen,
        )
