"""Reading gold items and the accounts of those who met them. For managers only."""

from __future__ import annotations

from dataclasses import dataclass

from annotation.enums import Axis, ItemState, LeaseState, MemberState
from annotation.gold import falls_short, interval
from annotation.models import GoldItem, Lease, Member, Project

BY_GATE = "gold:"  # how the reason of a pause by the gate begins


@dataclass(frozen=True)
class Account:
    """Hidden gold labels: all of them, and those since a manager last let her go on."""

    right: int = 0
    seen: int = 0
    gate_right: int = 0
    gate_seen: int = 0


def gold_labels(member: Member) -> list[tuple[Lease, GoldItem]]:
    """Her submitted labels on gold items with the answer that holds now.

    Labels that counted towards an outcome are left out: they were given before the item was gold,
    and an answer made from them would agree with them by construction.
    """
    leases = (
        Lease.objects.filter(
            member=member,
            state=LeaseState.SUBMITTED,
            item__state=ItemState.GOLD,
            repeat=0,
            counted=False,
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


def accounts_of(member: Member) -> Account:
    """Her account on the hidden gold items in use."""
    right = seen = gate_right = gate_seen = 0
    for lease, gold in gold_labels(member):
        if not gold.active or gold.onboarding:
            continue
        agreed = agrees(lease, gold)
        seen, right = seen + 1, right + agreed
        assert lease.submitted_at is not None
        if member.gate_from is None or lease.submitted_at >= member.gate_from:
            gate_seen, gate_right = gate_seen + 1, gate_right + agreed
    return Account(right, seen, gate_right, gate_seen)


@dataclass(frozen=True)
class GateMember:
    """A member whom the gate paused. `passes`: it would not pause her now."""

    member: Member
    account: Account
    low: int
    high: int
    passes: bool


def paused_by_gate(project: Project) -> list[GateMember]:
    """Whom the gate paused, with their accounts; interval of the accuracy in percent."""
    rows = project.members.filter(state=MemberState.PAUSED, paused_reason__startswith=BY_GATE)
    found = []
    for member in rows.select_related("user").order_by("pk"):
        account = accounts_of(member)
        low, high = interval(account.right, account.seen)
        short = falls_short(
            account.gate_right, account.gate_seen, project.gold_floor / 100, project.gold_minimum
        )
        found.append(GateMember(member, account, round(low * 100), round(high * 100), not short))
    return found
