"""Tasks of training: each carries an id, calls one service, and may run twice without harm."""

from celery import shared_task

from training.services import freezing, sealing


@shared_task(name="workers.freeze_dataset", time_limit=7200, soft_time_limit=7000)
def freeze_dataset(pk: int) -> None:
    freezing.run_freeze(pk=pk)


@shared_task(name="workers.repair_training", time_limit=300)
def repair_training() -> None:
    """Recompute from rows what a lost message or a dead worker left behind."""
    freezing.repair_freezes()
    sealing.keep_claimed_from_holdout()
