"""Reading gold items and the accounts of those who met them. For managers only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, Subquery

from annotation.enums import (
    AppealState,
    Axis,
    DecisionSource,
    ItemState,
    LeaseState,
    MemberState,
)
from annotation.gold import falls_short, interval
from annotation.models import Adjudication, Appeal, GoldItem, Item, Lease, Member, Project

BY_GATE = "gold:"  # how the reason of a pause by the gate begins
GOLD_LIMIT = 2000  # gold items that the list shows
GOOD = 0.8  # who gives the known answer this often is one of the best
BEST_SEEN = 2  # labels of the best before their misses speak against an item


@dataclass(frozen=True)
class Account:
    """Hidden gold labels: all of them, and those since a manager last let her go on."""

    right: int = 0
    seen: int = 0
    gate_right: int = 0
    gate_seen: int = 0


def accounts_of(member: Member) -> Account:
    """Her account on the hidden gold items in use, in one query that makes no objects.

    A gold submission must not take longer than another one may (tests/annotation/test_work_blind).
    """
    right = seen = gate_right = gate_seen = 0
    for at, *verdicts in _gold_labels(member):
        agreed = agrees(verdicts[:2], verdicts[2:])
        seen, right = seen + 1, right + agreed
        if member.gate_from is None or at >= member.gate_from:
            gate_seen, gate_right = gate_seen + 1, gate_right + agreed
    return Account(right, seen, gate_right, gate_seen)


def agrees(given: Sequence[str], known: Sequence[str]) -> bool:
    """Whether a label gives the known answer on every axis that has one."""
    return all(right in ("", chosen) for chosen, right in zip(given, known, strict=True))


def _gold_labels(member: Member) -> Iterable[Any]:
    """Her submitted labels on hidden gold with the answer that holds now.

    Left out are labels that counted towards an outcome (they were given before the item was gold,
    and an answer made from them would agree with them by construction), those given to learn with,
    and those on items that she decided as an adjudicator.
    """
    newest = GoldItem.objects.filter(item=OuterRef("item")).order_by("-n")
    decided = Adjudication.objects.filter(item=OuterRef("item"), adjudicator=member.user_id)
    rows = Lease.objects.filter(
        ~Exists(decided), member=member, state=LeaseState.SUBMITTED, item__state=ItemState.GOLD,
        repeat=0, counted=False,
    ).alias(learned=served_to_learn()).exclude(learned=True)  # fmt: skip
    held = rows.annotate(newest=Subquery(newest.values("pk")[:1])).filter(
        item__gold__pk=F("newest"), item__gold__active=True, item__gold__onboarding=False
    )
    return held.values_list(
        "submitted_at", "head__quality", "head__personalization", "item__gold__quality",
        "item__gold__personalization",
    )  # fmt: skip


def is_in_use(item: Item, gold: GoldItem | None) -> bool:
    """Whether people meet the item as gold, `gold` being its newest known answer."""
    return gold is not None and gold.active and item.state == ItemState.GOLD


def served_to_learn() -> Subquery:
    """Whether a lease was handed out while its gold item was one to learn with."""
    then = GoldItem.objects.filter(item=OuterRef("item"), created_at__lte=OuterRef("created_at"))
    return Subquery(then.order_by("-n").values("onboarding")[:1])


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


# The list of gold items


@dataclass(frozen=True)
class GoldRow:
    """A gold item as its list shows it: labels, those that agree, and the same of the best."""

    item: Item
    gold: GoldItem
    seen: int
    right: int
    appeals: int
    best_seen: int
    best_right: int

    @property
    def doubtful(self) -> bool:
        """The best annotators miss it more often than not, or somebody contests it."""
        missed = self.best_seen >= BEST_SEEN and 2 * self.best_right < self.best_seen
        return self.gold.active and (missed or self.appeals > 0)


def gold_rows(project: Project) -> list[GoldRow]:
    """All gold items with how they fare, the doubtful ones first; a few statements in all."""
    items = list(
        project.items.filter(state=ItemState.GOLD)
        .select_related("prompt", "persona_version__text")
        .order_by("pk")[:GOLD_LIMIT]
    )
    newest = {gold.item_id: gold for gold in GoldItem.objects.filter(item__in=items).order_by("n")}
    leases = Lease.objects.filter(
        item__in=items, state=LeaseState.SUBMITTED, repeat=0, counted=False
    )
    labels: dict[int, list[Lease]] = defaultdict(list)
    leases = leases.annotate(learned=served_to_learn())
    for lease in leases.select_related("head", "member").order_by("pk"):
        labels[lease.item_id].append(lease)
    contested = Appeal.objects.filter(lease__item__in=items, state=AppealState.OPEN)
    appeals = Counter(contested.values_list("lease__item", flat=True))
    rows = [
        _gold_row(item, newest[item.pk], labels[item.pk], appeals[item.pk])
        for item in items
        if item.pk in newest
    ]
    return sorted(rows, key=lambda row: (not row.doubtful, not row.gold.active, row.item.pk))


def _verdicts(row: Any) -> list[str]:
    return [getattr(row, axis) for axis in Axis.values]


def _gold_row(item: Item, gold: GoldItem, labels: list[Lease], appeals: int) -> GoldRow:
    known = _verdicts(gold)
    right = [agrees(_verdicts(lease.head), known) for lease in labels]
    best = [
        agreed
        for lease, agreed in zip(labels, right, strict=True)
        if _is_good(lease, seen_too=not gold.onboarding and gold.active, agreed=agreed)
    ]
    return GoldRow(item, gold, len(right), sum(right), appeals, len(best), sum(best))


def _is_good(lease: Any, *, seen_too: bool, agreed: bool) -> bool:
    """Whether its member gives the known answer on the other gold items that she met."""
    member, seen_too = lease.member, seen_too and not lease.learned
    seen = member.gold_seen - int(seen_too)
    right = member.gold_right - int(seen_too and agreed)
    return bool(seen >= 1 and right >= GOOD * seen)


def gold_proposals(project: Project, limit: int = 20) -> list[Item]:
    """Decided items on which everybody agreed on every axis, those with the most labels first."""
    unanimous = {f"{axis}_decision__source": DecisionSource.UNANIMOUS for axis in project.axes}
    rows = project.items.filter(state=ItemState.DONE, done__gte=2, **unanimous)
    parts = ("prompt", "persona_version__text", "quality_decision", "personalization_decision")
    return list(rows.select_related(*parts).order_by("-done", "shuffle_key")[:limit])
