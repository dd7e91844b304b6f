"""Tasks of the arena: each carries an id, calls one service, and may run twice without harm."""

from celery import shared_task

from arena.services import answering, answering_work, closing, ratings, screening


@shared_task(name="workers.make_answers", time_limit=3600)
def make_answers(pk: int) -> None:
    answering_work.run_job(pk)


@shared_task(name="workers.screen_round", time_limit=3600)
def screen_round(pk: int) -> None:
    screening.screen_round(pk)


@shared_task(name="workers.rate_round", time_limit=1800)
def rate_round(pk: int) -> None:
    ratings.rate_round(pk)


@shared_task(name="workers.repair_arena", time_limit=300)
def repair_arena() -> None:
    """Recompute from rows what a lost message or a dead worker left behind."""
    closing.close_due_rounds()
    answering.restart_stalled()
    screening.restart_stalled()
    ratings.restart_missing()
