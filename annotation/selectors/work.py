"""What an annotator's pages show of her own work. Nobody else's labels, no gold, no decisions (V8).

How much is left is told roughly, and never exactly: a hidden gold item or a repeat leaves the
number as it was, and an exact number would give it away.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from annotation import policies
from annotation.enums import GIVEN, ItemState, MemberState
from annotation.models import Guideline, Item, Lease, Member
from annotation.pace import LONG_RUN_S, PAUSE_S

COUNTED = 101  # items looked at for what is left, so that the size of a project does not matter


class CountOf(Subquery):
    """SQL: the number of rows of a subquery, which may have a limit."""

    template = "(SELECT count(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


@dataclass(frozen=True)
class Progress:
    """Her submissions, the token of the last one, and roughly what is left for her."""

    done: int
    last: str
    left: int  # 0 to COUNTED

    @property
    def few(self) -> bool:
        return self.left < 10

    @property
    def many(self) -> bool:
        return self.left >= COUNTED

    @property
    def about(self) -> int:
        return self.left // 10 * 10


@dataclass(frozen=True)
class Seat:
    """A member with her project, her progress and the newest guidelines, read in one query."""

    member: Member
    progress: Progress
    guideline_id: int | None
    guideline_n: int
    long_run: bool  # she has worked for about as long as calls for a break

    @property
    def has_read(self) -> bool:
        """Whether she has ever confirmed guidelines here."""
        return self.member.guideline_read_id is not None

    @property
    def is_changed(self) -> bool:
        return self.has_read and self.member.guideline_read_id != self.guideline_id

    @property
    def learning(self) -> bool:
        return self.member.state == MemberState.ONBOARDING and (
            self.progress.done < self.member.project.onboarding_size
        )


def seat_of(user: Any, project: int) -> Seat:
    """Her seat. Somebody who is no member hears the same whether the project exists or not."""
    row = _seats(user).filter(project=project).first()
    if row is None or row.state == MemberState.LEFT:
        raise policies.not_a_member()
    return _seat(row)


def seats_of(user: Any) -> list[Seat]:
    """All projects that she works in, the newest first."""
    rows = _seats(user).exclude(state=MemberState.LEFT).order_by("-project")
    return [_seat(row) for row in rows]


def _seats(user: Any) -> QuerySet[Member]:
    own = Lease.objects.filter(member=OuterRef("pk"), state__in=GIVEN)
    newest = Guideline.objects.filter(project=OuterRef("project")).order_by("-n")
    now = timezone.now()
    long_ago = (
        now - timedelta(seconds=LONG_RUN_S + 2 * PAUSE_S),
        now - timedelta(seconds=LONG_RUN_S),
    )
    return (
        Member.objects.filter(user=user)
        .select_related("project")
        .annotate(
            own_done=CountOf(own.order_by().values("pk")),
            own_last=Subquery(own.order_by("-submitted_at", "-pk").values("token")[:1]),
            raised=CountOf(_waiting(Q(priority__gt=0))),
            ahead=CountOf(_waiting(Q(priority=0, shuffle_key__gt=OuterRef("cursor")))),
            newest_pk=Subquery(newest.values("pk")[:1]),
            newest_n=Subquery(newest.values("n")[:1]),
            long_run=Exists(own.filter(submitted_at__range=long_ago)),
        )
    )


def _waiting(where: Q) -> QuerySet[Item, Any]:
    """Items with a place for her; called with the member as the outer row."""
    met = Lease.objects.filter(item=OuterRef("pk"), member=OuterRef(OuterRef("pk")))
    rows = Item.objects.filter(
        where, project=OuterRef("project"), state=ItemState.OPEN, live__lt=F("target")
    )
    return rows.filter(~Exists(met)).order_by().values("pk")[:COUNTED]


def _seat(row: Any) -> Seat:
    left = min(row.raised + row.ahead, COUNTED)
    progress = Progress(row.own_done, row.own_last or "", left)
    return Seat(row, progress, row.newest_pk, row.newest_n or 0, row.long_run)


def newest_guideline(project: int) -> Guideline | None:
    return Guideline.objects.filter(project=project).order_by("-n").first()
