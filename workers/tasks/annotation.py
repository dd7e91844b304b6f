"""Tasks of annotation: each carries an id, calls one service, and may run twice without harm."""

from celery import shared_task

from annotation.services import upkeep


@shared_task(name="workers.repair_annotation", time_limit=300)
def repair_annotation() -> None:
    """Recompute from rows what a lost message or a dead worker left behind."""
    upkeep.sweep_leases()
