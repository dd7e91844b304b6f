"""Who waits for a device, and who holds one."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from training.enums import ON_DEVICE, RunState
from training.models import Device, TrainingRun


def devices() -> QuerySet[Device]:
    """Every device that a worker has announced, with the run that holds it."""
    return Device.objects.select_related("run")


def waiting() -> QuerySet[TrainingRun]:
    """Queued runs, the next one first."""
    return TrainingRun.objects.filter(state=RunState.QUEUED).order_by("queued_at", "pk")


def queue_position(run: TrainingRun) -> int | None:
    """1 for the next one; None where it does not wait."""
    if run.state != RunState.QUEUED:
        return None
    earlier = Q(queued_at__lt=run.queued_at) | Q(queued_at=run.queued_at, pk__lt=run.pk)
    return waiting().filter(earlier).count() + 1


def running() -> QuerySet[TrainingRun]:
    """Runs that hold a device."""
    return TrainingRun.objects.filter(state__in=ON_DEVICE).order_by("started_at", "pk")
