"""Tasks of annotation: each carries an id, calls one service, and may run twice without harm."""

from celery import shared_task

from annotation.services import counterfactuals, decisions, deliveries, exports, statistics, upkeep


@shared_task(name="workers.repair_annotation", time_limit=300)
def repair_annotation() -> None:
    """Recompute from rows what a lost message or a dead worker left behind."""
    upkeep.sweep_leases()
    upkeep.settle_all_ready()
    exports.repair_exports()
    counterfactuals.repair_jobs()
    upkeep.release_claims()
    statistics.refresh_stale()
    deliveries.repair_deliveries()


@shared_task(name="workers.settle_ready", time_limit=300)
def settle_ready(pk: int) -> None:
    """Settle the items of a project that asks for fewer labels now."""
    decisions.settle_ready(pk=pk)


@shared_task(name="workers.run_counterfactuals", time_limit=3500)
def run_counterfactuals(pk: int) -> None:
    counterfactuals.run_job(pk)


@shared_task(name="workers.run_export", time_limit=3500)
def run_export(pk: int) -> None:
    exports.run_export(pk=pk)


@shared_task(name="workers.deliver_webhook", time_limit=120)
def deliver_webhook(pk: int) -> None:
    deliveries.deliver_due(pk=pk)


@shared_task(name="workers.annotation_statistics", time_limit=900)
def annotation_statistics(pk: int) -> None:
    statistics.compute_statistics(pk=pk)
