"""Where a project stands: its items by state and stratum, who works now, what is left to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from annotation.enums import HELD, ItemState, LeaseState
from annotation.forecast import Workload
from annotation.models import Lease, Project

SETTLED = (ItemState.DONE, ItemState.DISPUTED)
COUNTED = (*SETTLED, ItemState.OPEN)  # what a stratum's target is compared with


@dataclass(frozen=True)
class StratumCount:
    """`wanted` is the target, or all items of the stratum that may be labelled."""

    stratum: str
    states: Mapping[str, int]
    target: int | None

    @property
    def done(self) -> int:
        return self.states.get(ItemState.DONE, 0)

    @property
    def disputed(self) -> int:
        return self.states.get(ItemState.DISPUTED, 0)

    @property
    def open(self) -> int:
        return self.states.get(ItemState.OPEN, 0)

    @property
    def wanted(self) -> int:
        return self.target if self.target is not None else self.done + self.disputed + self.open


@dataclass(frozen=True)
class Counts:
    """`states`: items by state. `leased`: items that somebody holds now."""

    states: Mapping[str, int]
    strata: tuple[StratumCount, ...]
    leased: int
    at_work: tuple[str, ...] = ()
    today: int = 0
    hour: int = 0

    @property
    def done(self) -> int:
        return self.states.get(ItemState.DONE, 0)

    @property
    def total(self) -> int:
        """Items that are done, or to be."""
        return sum(self.states.get(state, 0) for state in COUNTED)


def count_items(project: Project) -> Counts:
    """In three statements, whatever the number of items: each goes along an index."""
    rows = project.items.order_by().values_list("state", "stratum").annotate(n=Count("*"))
    states: dict[str, int] = defaultdict(int)
    strata: dict[str, dict[str, int]] = defaultdict(dict)
    for state, stratum, n in rows:
        states[state] += n
        strata[stratum][state] = n
    for stratum in project.targets:
        strata[stratum] = strata[stratum]
    leases = _leases_now(project)
    today, hour = _labels_today(project)
    return Counts(
        states=dict(states),
        strata=tuple(
            StratumCount(name, found, project.targets.get(name))
            for name, found in sorted(strata.items())
        ),
        leased=len({item for item, _name in leases}),
        at_work=tuple(sorted({name for _item, name in leases})),
        today=today,
        hour=hour,
    )


def _leases_now(project: Project) -> list[tuple[int, str]]:
    """What somebody holds now: the item and who."""
    rows = Lease.objects.filter(
        member__project=project,
        state__in=HELD,
        expires_at__gt=timezone.now(),
        member__user__isnull=False,
    )
    return list(rows.values_list("item_id", "member__user__username"))


def _labels_today(project: Project) -> tuple[int, int]:
    """Labels given here since midnight, and in the last hour."""
    now = timezone.now()
    midnight = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    hour = now - timedelta(hours=1)
    rows = Lease.objects.filter(
        member__project=project,
        member__user__isnull=False,
        state=LeaseState.SUBMITTED,
        submitted_at__gte=min(midnight, hour),
    )
    found = rows.aggregate(
        today=Count("pk", filter=Q(submitted_at__gte=midnight)),
        hour=Count("pk", filter=Q(submitted_at__gte=hour)),
    )
    return found["today"], found["hour"]


def workload(project: Project) -> Workload:
    """What is left to do, in two statements over all items: for the job, not for a page."""
    by_done: dict[str, int] = {}
    needed = 0
    rows = project.items.filter(state=ItemState.OPEN).order_by().values_list("done")
    for done, n, places in rows.annotate(n=Count("*"), places=Sum(F("target") - F("done"))):
        by_done[str(done)] = n
        needed += places
    settled = project.items.filter(state__in=SETTLED).aggregate(n=Count("pk"), labels=Sum("done"))
    return Workload(
        by_done=by_done,
        needed=needed,
        settled=settled["n"],
        labels=settled["labels"] or 0,
        base=project.base_overlap,
        most=project.max_overlap,
    )
