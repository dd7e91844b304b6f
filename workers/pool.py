"""The worker's pool, without children that wait for a lock which a dead one holds.

Without Redis, the children of a worker share one pipe, and take turns at its lock. A child that
SIGKILL hits, perhaps from a kernel short of memory, takes the lock with it: the others wait for
ever, and the worker looks alive. So the worker ends as a whole then, and is started again by what
keeps it; what was at work is taken up again from its rows. With Redis each child has pipes of its
own, and Celery replaces the one that is gone.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import billiard
from billiard.pool import Pool
from celery.concurrency import prefork
from celery.worker import state

logger = logging.getLogger("palate.worker")


class Child(Protocol):
    """A process of the pool that has ended."""

    _controlled_termination: bool  # Celery itself has ended it

    @property
    def exitcode(self) -> int | None: ...  # minus the signal's number, if one ended it


class BlockingPool(Pool):
    """The pool that is used where the broker is the filesystem."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "on_process_down": end_with})


class TaskPool(prefork.TaskPool):
    BlockingPool = BlockingPool


def end_with(child: Child) -> None:
    """End this worker at once, if a signal ended its child that nobody had asked for.

    SIGTERM lets a child give its locks back; so whom Celery ends with it needs no other's end.
    """
    code = child.exitcode
    if code is None or code >= 0 or child._controlled_termination:
        return
    asked = state.should_stop is not None or state.should_terminate is not None
    if asked and code == -signal.SIGTERM:
        return
    logger.error("a child of the worker was killed; the worker ends, to be started again",
                 extra=told(-code))  # fmt: skip
    for other in billiard.active_children():
        if other.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(other.pid, signal.SIGKILL)
    os._exit(1)


def told(number: int) -> Mapping[str, str]:
    """The signal by name, for the log."""
    with suppress(ValueError):
        return {"signal": signal.Signals(number).name}
    return {"signal": str(number)}
