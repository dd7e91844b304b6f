"""Tasks of training: each carries an id, calls one service, and may run twice without harm."""

from celery import shared_task

from training.services import along, chains, freezing, running, sealing, verdicts, watching


@shared_task(name="workers.freeze_dataset", time_limit=7200, soft_time_limit=7000)
def freeze_dataset(pk: int) -> None:
    freezing.run_freeze(pk=pk)


@shared_task(name="workers.repair_training", time_limit=300)
def repair_training() -> None:
    """Recompute from rows what a lost message or a dead worker left behind."""
    freezing.repair_freezes()
    sealing.keep_claimed_from_holdout()
    verdicts.decide_ready()
    along.gates_due()


@shared_task(name="workers.start_runs", time_limit=1800)
def start_runs(pk: int = 0) -> None:
    """Start whoever is next in the queue; `pk` only says why the task was sent."""
    running.start_next()


@shared_task(name="workers.decide_gates", time_limit=600)
def decide_gates(pk: int = 0) -> None:
    """Decide every gate whose evaluations have ended."""
    verdicts.decide_ready()


@shared_task(name="workers.gate_when_done", time_limit=600)
def gate_when_done(pk: int) -> None:
    """Base, middle and end of a run go through the gate that it names."""
    along.gate_when_done(pk=pk)


@shared_task(name="workers.advance_chains", time_limit=900)
def advance_chains(pk: int = 0) -> None:
    """Move on what is under way; `pk` only says why the task was sent."""
    chains.advance_all()


@shared_task(name="workers.repair_chains", time_limit=900)
def repair_chains() -> None:
    """Begin the chains whose hour came, and move on those that lost a message."""
    chains.start_due()
    chains.advance_all()


@shared_task(name="workers.watch_runs", time_limit=1800)
def watch_runs(pk: int = 0) -> None:
    """Read, stop, reap, and start the next; what a lost message left behind is found here."""
    watching.watch_runs()
