"""An annotator's own submissions as she saw them. A gold item or a repeat looks like any other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from annotation.enums import GIVEN, Axis, Shown, Strength
from annotation.models import Appeal, Label, Lease, Member
from annotation.pace import (
    Pace,
    Share,
    consistency,
    leans,
    left_preference,
    needs_rest,
    pace,
    run_began,
)
from annotation.selectors.tasks import PARTS, as_shown

EXCERPT = 140
LOOKED_AT = 1000  # the submissions that the private signals look back to


@dataclass(frozen=True)
class Given:
    """One verdict as it stood on the page, in words."""

    axis: str
    verdict: str
    strength: str


@dataclass(frozen=True)
class HistoryRow:
    """One submission. Holds nothing that she did not see or do herself."""

    token: str
    question: str
    lang: str
    given: tuple[Given, ...]
    tags: tuple[str, ...]
    comment: str
    at: datetime
    revisions: int
    late: bool
    undoable: bool
    appeal: Appeal | None


@dataclass(frozen=True)
class Signals:
    """What only she is told."""

    began: datetime | None
    pace: Pace | None
    consistency: Share | None
    left: Share | None
    rest: bool

    @property
    def leans(self) -> str:
        return leans(self.left)

    @property
    def minutes(self) -> int:
        if self.began is None:
            return 0
        return int((timezone.now() - self.began).total_seconds() // 60)


def submissions(member: Member) -> QuerySet[Lease]:
    """Her submitted items, the last one first."""
    rows = Lease.objects.filter(member=member, state__in=GIVEN)
    return rows.select_related("head", "item__prompt").order_by("-submitted_at", "-pk")


def own_submission(member: Member, token: str) -> Lease | None:
    rows = Lease.objects.select_related(*PARTS).filter(member=member, token=token)
    return rows.filter(state__in=GIVEN).first()


def recent_tokens(member: Member, depth: int) -> set[str]:
    """The submissions that may still be taken back."""
    rows = submissions(member)
    if member.aside_at is not None:
        rows = rows.filter(submitted_at__gt=member.aside_at)
    return set(rows.values_list("token", flat=True)[:depth])


def appeals_of(leases: list[Lease]) -> dict[int, Appeal]:
    rows = Appeal.objects.filter(lease__in=[lease.pk for lease in leases])
    return {appeal.lease_id: appeal for appeal in rows}


def history_row(lease: Lease, appeal: Appeal | None, recent: set[str]) -> HistoryRow:
    """A submission loaded by `submissions` or `own_submission`, as its page shows it."""
    label = lease.head
    assert label is not None
    assert lease.submitted_at is not None
    prompt = lease.item.prompt
    return HistoryRow(
        token=lease.token,
        question=_excerpt(prompt.messages),
        lang=prompt.language,
        given=given(label, lease.first_left),
        tags=tuple(label.tags),
        comment=label.comment,
        at=lease.submitted_at,
        revisions=label.revision,
        late=label.late,
        undoable=lease.token in recent,
        appeal=appeal,
    )


def given(label: Label, first_left: bool) -> tuple[Given, ...]:
    """The verdicts of a label in the words of the page."""
    found = []
    for axis in Axis:
        verdict = getattr(label, axis)
        if verdict:
            strength = getattr(label, f"{axis}_strength")
            word = str(Strength(strength).label) if strength in Strength.values else ""
            shown = Shown(as_shown(verdict, first_left)).label
            found.append(Given(str(axis.label), str(shown), word))
    return tuple(found)


def _excerpt(messages: Any) -> str:
    """The beginning of what was asked last."""
    asked = [turn["content"] for turn in messages if turn["role"] == "user"]
    text = " ".join((asked or [""])[-1].split())
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"


def private_signals(member: Member) -> Signals:
    """Pace, consistency and side preference, from her last submissions here. Two queries."""
    rows = list(
        Lease.objects.filter(member=member, state__in=GIVEN)
        .order_by("-submitted_at")
        .values_list("submitted_at", "head__active_ms", "first_left", "head__quality",
                     "head__personalization")[:LOOKED_AT]
    )  # fmt: skip
    now = timezone.now()
    began = run_began([row[0].timestamp() for row in rows if row[0]], now.timestamp())
    found = pace([row[1] or 0 for row in rows])
    # One verdict an item: two axes of the same pair are not two independent choices.
    sides = [as_shown(row[3] or row[4] or "", row[2]) for row in rows]
    return Signals(
        began=None if began is None else datetime.fromtimestamp(began, tz=now.tzinfo),
        pace=found,
        consistency=consistency(_repeated(member)),
        left=left_preference(sides),
        rest=needs_rest(began, now.timestamp(), found),
    )


def _repeated(member: Member) -> list[bool]:
    """For each pair that she judged twice, whether the same came out on every axis."""
    own = Lease.objects.filter(member=member, item=OuterRef("item"), repeat=0, state__in=GIVEN)
    rows = (
        Lease.objects.filter(member=member, repeat__gt=0, state__in=GIVEN)
        .annotate(
            was_quality=Subquery(own.values("head__quality")[:1]),
            was_personalization=Subquery(own.values("head__personalization")[:1]),
        )
        .exclude(was_quality=None)
        .order_by("-submitted_at")
        .values_list("head__quality", "head__personalization", "was_quality", "was_personalization")
    )
    return [(q, p) == (wq, wp) for q, p, wq, wp in rows[:LOOKED_AT]]
