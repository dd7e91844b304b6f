"""Handing out items: a lease per (item, member), taken by one statement.

Locks are taken in one order: member, lease, item. What looks after other people's leases
(`sweep_expired`, a claim) takes what is free and waits for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation import policies
from annotation.assignment import (
    REPEAT_AFTER,
    Serving,
    first_stands_left,
    lease_seconds,
    serving,
)
from annotation.enums import GIVEN, HELD, ItemFlag, ItemState, LeaseState, MemberState, SkipReason
from annotation.models import Decision, GoldItem, Guideline, Item, Lease, Member, Project, Webhook
from annotation.selectors.tasks import PARTS, lease_parts
from annotation.services.claims import claim_next, is_work_left
from annotation.services.exposures import note_met
from webapp.core.errors import Refused
from webapp.core.locking import retry_deadlocks


@dataclass(frozen=True)
class Served:
    """What an annotator's page shows: her lease (None: nothing is left) and her seat."""

    lease: Lease | None
    member: Member


@retry_deadlocks
def serve(*, user: Any, project: Project) -> Served:
    """The item she works on now, leasing one if she has none."""
    policies.check_worker(user)
    policies.check_open(project)
    with transaction.atomic():
        member = locked_member(project, user)
        held = _held(member)
        shown = [row for row in held if row.state == LeaseState.SHOWN]
        if shown:
            return Served(_renewed(shown[0], project), member)
        lease = held[0] if held else _lease(project, member)
        return Served(lease and _show(lease, project, user), member)


@retry_deadlocks
def reserve_next(*, user: Any, project: Project) -> Lease | None:
    """Reserve the item after the current one; it counts as not seen until it is shown.

    None while she learns: feedback comes between, and what is next depends on what is submitted.
    """
    policies.check_worker(user)
    policies.check_open(project)
    with transaction.atomic():
        member = locked_member(project, user)
        if member.state == MemberState.ONBOARDING:
            return None
        reserved = [row for row in _held(member) if row.state == LeaseState.RESERVED]
        return reserved[0] if reserved else _lease(project, member)


def locked_member(project: Project, user: Any) -> Member:
    """The member's row, locked: two tabs of one person take turns. Raises unless she may work."""
    rows = Member.objects.select_for_update(no_key=True)
    row = rows.filter(project=project, user=user).first()
    policies.check_works(row)
    assert row is not None
    return row


def _held(member: Member) -> list[Lease]:
    """Live leases, the one shown last first. What expired or was erased is given back."""
    rows = list(
        Lease.objects.select_related(*PARTS)
        .select_for_update(of=("self",), no_key=True)  # a heartbeat may be renewing one
        .filter(member=member, state__in=HELD)
        .order_by(F("shown_at").desc(nulls_last=True), "pk")
    )
    now = timezone.now()
    gone = [row for row in rows if row.expires_at <= now or is_erased(row.item)]
    for row in sorted(gone, key=lambda row: row.item_id):
        expire(row)
    return [row for row in rows if row not in gone]


def locked_lease(user: Any, token: str) -> Lease | None:
    """Her lease by its token, locked together with her seat and the item; read after the lock.

    One person's requests take turns, and what becomes of the item waits for who came first.
    """
    rows = Lease.objects.select_for_update(of=("member", "self", "item"), no_key=True)
    ids = rows.select_related("member", "item").only("id", "member__id", "item__id")
    found = ids.filter(token=token, member__user=user).first()
    if found is None:
        return None
    guideline = Guideline.objects.filter(project=OuterRef("member__project")).order_by("-n")
    hooks = Webhook.objects.filter(project=OuterRef("member__project"), active=True)
    decision = Decision.objects.filter(item=OuterRef("item")).order_by("-n")
    row = (
        Lease.objects.select_related(
            "head", "member__project", "item__quality_decision", "item__personalization_decision"
        )
        .annotate(
            guideline_id=Subquery(guideline.values("pk")[:1]),
            decision_n=Coalesce(Subquery(decision.values("n")[:1]), 0),
            hooked=Exists(hooks),
        )
        .get(pk=found.pk)
    )
    row.item.project = row.member.project
    row.item.project.hooked = row.hooked  # type: ignore[attr-defined]
    return row


def is_erased(item: Item) -> bool:
    """Whether withdrawn consent took the texts or the summary away."""
    version = item.persona_version
    return not hasattr(item, "body") or (version is not None and not hasattr(version, "text"))


def _lease(project: Project, member: Member) -> Lease | None:
    """A new reserved lease by the member's place in her sequence, or None."""
    if member.state == MemberState.ONBOARDING:
        found = _next_gold(project, member, onboarding=True) if _still_learning(member) else None
        if found is not None:
            return _create(project, member, found, nth=member.served, counted=False)
        member.state = MemberState.WORKING
        member.save(update_fields=["state"])
    kind = serving(
        project.seed, member.pk, member.served, project.gold_percent, project.repeat_percent
    )
    # Only in place of an item that waits: what came when nothing is left would say what it is.
    if kind != Serving.ITEM and is_work_left(member):
        hidden = _hidden(project, member, kind)
        if hidden is not None:
            return hidden
    return _lease_open(project, member)


def _hidden(project: Project, member: Member, kind: Serving) -> Lease | None:
    """A gold item or a repeat that she cannot tell from others. None: there is none for her."""
    if kind == Serving.REPEAT:
        earlier = _to_repeat(member)
        return _repeat(project, member, earlier) if earlier is not None else None
    gold = _next_gold(project, member, onboarding=False)
    if gold is None:
        return None
    return _create(project, member, gold, nth=member.served, counted=False)


def _still_learning(member: Member) -> bool:
    done = Lease.objects.filter(member=member, state__in=GIVEN).count()
    return done < member.project.onboarding_size


def _next_gold(project: Project, member: Member, *, onboarding: bool) -> Item | None:
    """A gold item that she has not met, in the order of the queue."""
    newest = GoldItem.objects.filter(item=OuterRef("pk")).order_by("-n")
    return (
        Item.objects.filter(project=project, state=ItemState.GOLD)
        .annotate(
            active=Subquery(newest.values("active")[:1]),
            onboards=Subquery(newest.values("onboarding")[:1]),
        )
        .filter(active=True, onboards=onboarding)
        .exclude(leases__member=member)
        .exclude(adjudications__adjudicator=member.user_id)  # she knows its labels
        .order_by("shuffle_key")
        .first()
    )


def _to_repeat(member: Member) -> Lease | None:
    """An item that she labelled some time ago and that was not repeated yet."""
    recent = (
        Lease.objects.filter(member=member, state=LeaseState.SUBMITTED)
        .order_by("-submitted_at")
        .values("pk")[:REPEAT_AFTER]
    )
    repeated = Lease.objects.filter(member=member, repeat__gt=0).values("item")
    return (
        Lease.objects.select_related("item")
        .filter(member=member, state=LeaseState.SUBMITTED, repeat=0, counted=True)
        .exclude(pk__in=recent)
        .exclude(item__in=repeated)
        .order_by("-submitted_at")
        .first()
    )


def _repeat(project: Project, member: Member, earlier: Lease) -> Lease:
    """The same item with the sides changed, to see whether the same comes out."""
    return _create(
        project,
        member,
        earlier.item,
        nth=0,
        counted=False,
        repeat=1,
        first_left=not earlier.first_left,
    )


def _lease_open(project: Project, member: Member) -> Lease | None:
    claimed = claim_next(member)
    if claimed is None and sweep_expired(project):
        claimed = claim_next(member, afresh=True)
    if claimed is None:
        return _own_expired(project, member)
    item = Item.objects.select_related("body", "persona_version__text").get(pk=claimed.pk)
    if is_erased(item):
        count_live(item.pk, -1)
        drop_erased(item)
        return _lease_open(project, member)
    if claimed.priority == 0:
        member.cursor = claimed.shuffle_key
    return _create(project, member, item, nth=claimed.live, counted=True)


def drop_erased(item: Item) -> None:
    """What withdrawn consent has erased leaves the queue."""
    Item.objects.filter(pk=item.pk).update(
        state=ItemState.DROPPED, flags=[*item.flags, ItemFlag.WITHDRAWN]
    )


def _create(
    project: Project,
    member: Member,
    item: Item,
    *,
    nth: int,
    counted: bool,
    repeat: int = 0,
    first_left: bool | None = None,
) -> Lease:
    if first_left is None:
        first_left = first_stands_left(project.seed, item.public_id, nth)
    row = Lease.objects.create(
        item=item,
        member=member,
        repeat=repeat,
        counted=counted,
        first_left=first_left,
        position=member.served,
        expires_at=expiry(project),
    )
    member.served += 1
    member.save(update_fields=["served", "cursor"])
    return lease_parts(row.pk)


def _own_expired(project: Project, member: Member) -> Lease | None:
    """Nothing else is left: give her back an item whose lease she let expire."""
    row = (
        Lease.objects.select_related("item")
        .select_for_update(of=("item",), skip_locked=True, no_key=True)
        .filter(
            member=member,
            state=LeaseState.EXPIRED,
            repeat=0,
            item__state=ItemState.OPEN,
            item__live__lt=F("item__target"),
            item__body__isnull=False,
        )
        .exclude(item__adjudications__adjudicator=member.user_id)  # she knows its labels
        .order_by("pk")
        .first()
    )
    if row is None or not count_live(row.item_id, 1, live__lt=F("target")):
        return None
    row.state, row.counted, row.expires_at = LeaseState.RESERVED, True, expiry(project)
    row.save(update_fields=["state", "counted", "expires_at"])
    found = lease_parts(row.pk)
    if is_erased(found.item):
        drop_erased(found.item)
        expire(found)
        return _own_expired(project, member)
    return found


def count_live(item: int, change: int, **only_if: Any) -> bool:
    """Take (1) or give back (-1) a place of the item."""
    rows = Item.objects.filter(pk=item, **only_if)
    return bool(rows.update(live=F("live") + change))


def _show(lease: Lease, project: Project, user: Any) -> Lease:
    """Mark as shown: from now on she has met both answers, and every answer with these texts."""
    lease.state = LeaseState.SHOWN
    lease.shown_at = lease.shown_at or timezone.now()
    lease.expires_at = expiry(project)
    lease.save(update_fields=["state", "shown_at", "expires_at"])
    note_met(user=user, item=lease.item)
    return lease


def _renewed(lease: Lease, project: Project) -> Lease:
    lease.expires_at = expiry(project)
    lease.save(update_fields=["expires_at"])
    return lease


def expiry(project: Project) -> Any:
    seconds = lease_seconds(project.lease_minutes, project.median_active_ms)
    return timezone.now() + timedelta(seconds=seconds)


def heartbeat(*, user: Any, token: str) -> int:
    """Renew the lease while the page is looked at. Seconds left."""
    now = timezone.now()
    rows = Lease.objects.select_related("member__project").filter(token=token, member__user=user)
    row = rows.first()
    if row is None or row.state not in HELD or not policies.may_get_items(row.member):
        raise Refused("", code="lease_gone")
    policies.check_open(row.member.project)
    until = expiry(row.member.project)
    Lease.objects.filter(pk=row.pk, state__in=HELD).update(expires_at=until)
    return int((until - now).total_seconds())


@retry_deadlocks
def skip(*, user: Any, token: str, reason: str) -> None:
    """Give the item back with a reason. Twice is the same as once."""
    if reason not in SkipReason.values:
        reason = SkipReason.UNSURE
    with transaction.atomic():
        row = locked_lease(user, token)
        if row is not None and row.state in HELD:
            _release(row, LeaseState.SKIPPED, skip_reason=reason)


def expire(row: Lease) -> None:
    """Free the place. What was never shown leaves no trace, what was shown may be sent late."""
    if row.state == LeaseState.RESERVED and row.shown_at is None:
        if Lease.objects.filter(pk=row.pk, state=row.state).delete()[0] and row.counted:
            count_live(row.item_id, -1)
    else:
        _release(row, LeaseState.EXPIRED)


def _release(row: Lease, state: str, **columns: Any) -> None:
    rows = Lease.objects.filter(pk=row.pk, state__in=HELD)
    if rows.update(state=state, counted=False, **columns) and row.counted:
        count_live(row.item_id, -1)


@retry_deadlocks
def sweep_expired(project: Project) -> int:
    """Give back every lease that ran out, except those that somebody is at. Number of leases."""
    with transaction.atomic():
        rows = list(
            Lease.objects.select_related("item")
            .select_for_update(skip_locked=True, of=("self", "item"), no_key=True)
            .filter(member__project=project, state__in=HELD, expires_at__lte=timezone.now())
            .order_by("item_id", "pk")
        )
        for row in rows:
            expire(row)
    return len(rows)
