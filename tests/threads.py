"""Several callers at the same moment, each with a database connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections

from webapp.core.errors import PalateError


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run the calls in threads of their own, all starting together; refusals are results too."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(timeout=120)
        try:
            return call()
        except PalateError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
