"""Computing a project's statistics: a snapshot for the pages, soft labels for the export."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from datetime import timedelta
from time import monotonic
from typing import Any

import numpy as np
from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import Count, Q
from django.utils import timezone

from annotation import policies
from annotation.enums import LeaseState
from annotation.models import Label, Lease, Project, SoftLabel, StatisticsSnapshot
from annotation.selectors.label_table import read_labels
from annotation.selectors.statistics import newest_snapshot
from annotation.selectors.workload import workload
from annotation.statistics import Soft, make_report
from annotation.tables import Bools, Ints
from webapp.core.jobs import enqueue

log = logging.getLogger(__name__)

JOB = "annotation_statistics"
KEEP = 50  # snapshots of a project
STALE_SECONDS = 30
REST = 10  # times as long as it took, a job of a large project waits for its next turn
BUSY_SECONDS = 600
SETTLING = timedelta(seconds=5)  # a younger label may not be committed yet
MOVED = 0.01  # a soft label is written again when a probability moves by more
ENOUGH_TIMES = 10  # labels with a time, before leases go by their median
CHUNK = 1000


def request_statistics(*, actor: Any, project: Project) -> None:
    """Have the statistics computed anew, as soon as a worker is free."""
    policies.check_manage(actor)
    with transaction.atomic():
        enqueue(JOB, project.pk)


def compute_statistics(*, pk: int) -> StatisticsSnapshot | None:
    """Write a snapshot and the soft labels of a project. None: another process is at it."""
    if not cache.add(f"{JOB}:{pk}", 1, BUSY_SECONDS):
        return None
    try:
        return _compute(Project.objects.get(pk=pk))
    finally:
        cache.delete(f"{JOB}:{pk}")


def _compute(project: Project) -> StatisticsSnapshot:
    started, seen = monotonic(), newest_label()
    report, soft = make_report(read_labels(project))
    report["workload"] = asdict(workload(project))
    _add_unanswered(project, report["people"])
    for row in soft:
        write_soft_labels(project, row)
    report["took_s"] = round(monotonic() - started, 2)
    times = report["everybody"]
    with transaction.atomic():
        snapshot = StatisticsSnapshot.objects.create(
            project=project, labels_seen=seen, report=report
        )
        if times["timed"] >= ENOUGH_TIMES:
            Project.objects.filter(pk=project.pk).update(median_active_ms=times["median_ms"])
        kept = project.statistics.values_list("pk", flat=True)[:KEEP]
        project.statistics.exclude(pk__in=list(kept)).delete()
    return snapshot


def newest_label() -> int:
    """The newest label that surely is committed, of any project."""
    settled = Label.objects.filter(at__lt=timezone.now() - SETTLING)
    return settled.order_by("-pk").values_list("pk", flat=True).first() or 0


def _add_unanswered(project: Project, people: list[dict[str, Any]]) -> None:
    """How often each annotator skipped, and let a lease run out."""
    rows = Lease.objects.filter(
        member__project=project, state__in=[LeaseState.SKIPPED, LeaseState.EXPIRED]
    ).order_by()
    counts = {
        row["member"]: row
        for row in rows.values("member").annotate(
            skipped=Count("pk", filter=Q(state=LeaseState.SKIPPED)),
            expired=Count("pk", filter=Q(state=LeaseState.EXPIRED)),
        )
    }
    for person in people:
        row = counts.get(person["member"])
        person["skipped"] = row["skipped"] if row else 0
        person["expired"] = row["expired"] if row else 0


def write_soft_labels(project: Project, soft: Soft) -> int:
    """Bring the soft labels of an axis up to date; what hardly moved stays. Number written."""
    moved, gone = _changes(project, soft)
    for start in range(0, len(gone), CHUNK):
        SoftLabel.objects.filter(pk__in=gone[start : start + CHUNK].tolist()).delete()
    places = np.flatnonzero(moved)
    for start in range(0, len(places), CHUNK):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(_UPSERT, _rows(soft, places[start : start + CHUNK]))
    return len(places)


# Half the work of the job would be making objects of these rows.
_UPSERT = """
INSERT INTO annotation_softlabel (item_id, axis, posterior, updated_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (item_id, axis)
DO UPDATE SET posterior = excluded.posterior, updated_at = excluded.updated_at
"""


def _rows(soft: Soft, places: Ints) -> list[tuple[int, str, str, Any]]:
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    rounded = soft.posterior[places].round(4).tolist()
    return [
        (pk, soft.axis, json.dumps(dict(zip(soft.classes, row, strict=True))), now)
        for pk, row in zip(soft.items[places].tolist(), rounded, strict=True)
    ]


def _changes(project: Project, soft: Soft) -> tuple[Bools, Ints]:
    """Which items to write (N,), and the rows of items that have no soft label any more."""
    held = SoftLabel.objects.filter(item__project=project, axis=soft.axis).order_by()
    columns = [("pk", "i8"), ("item", "i8"), *((name, "f8") for name in soft.classes)]
    rows = held.values_list("pk", "item_id", "posterior").iterator(CHUNK)
    before = np.fromiter(
        ((pk, item, *(p.get(name, -1.0) for name in soft.classes)) for pk, item, p in rows),
        dtype=columns,
    )
    at = np.minimum(np.searchsorted(soft.items, before["item"]), max(len(soft.items) - 1, 0))
    known = soft.items[at] == before["item"] if len(soft.items) else np.zeros(len(before), bool)
    moved = np.ones(len(soft.items), dtype=np.bool_)
    far = np.zeros(int(known.sum()), dtype=np.bool_)
    for number, name in enumerate(soft.classes):
        far |= np.abs(soft.posterior[at[known], number] - before[name][known]) > MOVED
    moved[at[known]] = far
    return moved, before["pk"][~known]


def refresh_stale() -> int:
    """Send the job for every project with labels that its newest snapshot has not seen."""
    sent, seen = 0, newest_label()
    for project in Project.objects.order_by("pk"):
        snapshot = newest_snapshot(project)
        if snapshot is None:
            stale = Lease.objects.filter(
                member__project=project, state=LeaseState.SUBMITTED
            ).exists()
        else:
            stale = _has_news(project, snapshot, seen)
        if stale:
            enqueue(JOB, project.pk)
            sent += 1
    return sent


def _has_news(project: Project, snapshot: StatisticsSnapshot, seen: int) -> bool:
    """Whether it is time again. Where nothing happened, the next look begins from here."""
    rest = max(STALE_SECONDS, REST * snapshot.report.get("took_s", 0))
    if timezone.now() - snapshot.created_at < timedelta(seconds=rest):
        return False
    newer = Label.objects.filter(pk__gt=snapshot.labels_seen, member__project=project)
    if newer.exists():
        return True
    if seen > snapshot.labels_seen:
        StatisticsSnapshot.objects.filter(pk=snapshot.pk).update(labels_seen=seen)
    return False
