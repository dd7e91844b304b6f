"""Lists of runs: the queue with its devices, all runs with their progress, some to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from training.enums import ENDED, ON_DEVICE, RunKind, RunState
from training.models import TrainingRun
from training.selectors.queue import devices, waiting
from training.words.runs import BADGES, stage_of

RECENT = 20  # runs
QUIET = timedelta(minutes=5)  # without a sign of life


@dataclass(frozen=True)
class RunRow:
    """A run in a list. `position` is its place in the queue, `percent` its progress."""

    run: TrainingRun
    badge: str
    stage: str
    percent: int | None
    position: int | None
    first_metric: str  # from the click to the first metric
    took: str
    silent: str  # since the last sign of life


@dataclass(frozen=True)
class DeviceRow:
    name: str
    host: str
    run: TrainingRun | None
    taken_at: Any
    seen_at: Any
    quiet: bool


def runs(kind: str = "", state: str = "", dataset: int | None = None) -> QuerySet[TrainingRun]:
    """Pinned ones first, then the newest."""
    found = TrainingRun.objects.select_related("created_by").order_by("-pinned", "-pk")
    if kind in RunKind.values:
        found = found.filter(kind=kind)
    if state == "active":
        found = found.filter(state__in=(RunState.QUEUED, *ON_DEVICE))
    elif state in RunState.values:
        found = found.filter(state=state)
    if dataset is not None:
        found = found.filter(Q(inputs__dataset=dataset)).distinct()
    return found


def run_rows(page: Sequence[TrainingRun]) -> list[RunRow]:
    """Rows of one page; the queue is read once."""
    places = {pk: n for n, pk in enumerate(waiting().values_list("pk", flat=True), 1)}
    return [run_row(run, places.get(run.pk)) for run in page]


def run_row(run: TrainingRun, position: int | None) -> RunRow:
    return RunRow(
        run,
        BADGES.get(run.state, ""),
        stage_of(run.stage) if run.state in ON_DEVICE else "",
        percent(run),
        position,
        spoken(run.created_at, run.first_metric_at),
        spoken(run.started_at, run.ended_at or timezone.now()) if run.started_at else "",
        spoken(run.heartbeat_at, timezone.now()) if run.state in ON_DEVICE else "",
    )


def percent(run: TrainingRun) -> int | None:
    """Progress in whole percent; None where the number of steps is not known."""
    return min(100, 100 * run.step // run.steps) if run.steps else None


def usual_wait() -> str:
    """Median time from the click to the first metric, over the last runs that came so far (G16)."""
    rows = TrainingRun.objects.exclude(first_metric_at=None).order_by("-pk")
    ends = rows.values_list("created_at", "first_metric_at")[:RECENT]
    times = [first - asked for asked, first in ends if first]
    if not times:
        return ""
    now = timezone.now()
    return spoken(now, now + timedelta(seconds=median(t.total_seconds() for t in times)))


def device_rows() -> list[DeviceRow]:
    now = timezone.now()
    return [
        DeviceRow(
            d.name,
            d.host,
            d.run,
            d.taken_at,
            d.seen_at,
            d.seen_at is None or now - d.seen_at > QUIET,
        )
        for d in devices()
    ]


def spoken(start: datetime | None, end: datetime | None) -> str:
    """A time span in one or two units; empty where it has no ends."""
    if start is None or end is None:
        return ""
    seconds = max(0, round((end - start).total_seconds()))
    if seconds < 120:
        return ngettext("%(n)s second", "%(n)s seconds", seconds) % {"n": seconds}
    minutes = seconds // 60
    if minutes < 120:
        return _("%(minutes)s min %(seconds)s s") % {"minutes": minutes, "seconds": seconds % 60}
    return _("%(hours)s h %(minutes)s min") % {"hours": minutes // 60, "minutes": minutes % 60}


def left(run: TrainingRun) -> str:
    """Time that remains, from the pace since the first metric; empty where it cannot be told.

    A reward model counts the steps of each member anew, so nothing follows from them.
    """
    if run.kind not in (RunKind.SFT, RunKind.GRPO) or run.state != RunState.RUNNING:
        return ""
    if not (run.steps and run.step and run.first_metric_at):
        return ""
    now = timezone.now()
    done = (now - run.first_metric_at).total_seconds()
    if run.step < 3 or done <= 0:
        return ""
    return spoken(now, now + timedelta(seconds=done / run.step * (run.steps - run.step)))


def may_compare(chosen: Sequence[int]) -> list[TrainingRun]:
    """The runs of a comparison, in the order asked for; unknown ones are left out."""
    found = TrainingRun.objects.select_related("created_by").in_bulk(list(chosen))
    return [found[pk] for pk in chosen if pk in found]


def finished(run: TrainingRun) -> bool:
    return run.state in ENDED
