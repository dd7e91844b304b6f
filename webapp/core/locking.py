"""What PostgreSQL ends because two transactions wait for each other is tried again.

Services lock in one order (ARCHITECTURE.md, Locking), so this is rare; it is the net below.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection

log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

AGAIN = ("40P01", "40001")  # deadlock_detected, serialization_failure
ATTEMPTS = 5
PAUSE = 0.05  # seconds, growing


def retry_deadlocks(service: Callable[P, R]) -> Callable[P, R]:
    """Run a service again if its transaction was chosen to end a deadlock.

    Everything that such a transaction did is undone, so the second run is the first. Inside
    somebody else's transaction the error goes on to where that began.
    """

    @wraps(service)
    def patient(*args: P.args, **kwargs: P.kwargs) -> R:
        if connection.in_atomic_block:
            return service(*args, **kwargs)
        for attempt in range(1, ATTEMPTS):
            try:
                return service(*args, **kwargs)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) not in AGAIN:
                    raise
                log.warning("deadlock, trying again", extra={"service": service.__qualname__})
            time.sleep(random.uniform(0, PAUSE * attempt))  # noqa: S311 - so that they part ways
        return service(*args, **kwargs)

    return patient
