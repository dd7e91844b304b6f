"""Locks of this machine that the system lets go of when a process dies, however it dies."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings


def folder() -> Path:
    path = Path(settings.MEDIA_ROOT) / "locks"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def alive(name: str) -> Iterator[bool]:
    """Hold the lock of a run or job; False where a living process of this machine holds it."""
    lock = take(name)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.close()


def take(name: str) -> IO[str] | None:
    """The open lock file, which holds until it is closed; None where somebody else has it."""
    lock = (folder() / name).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


class Places:
    """At most `width` at once of what bears this name, over all processes of this machine."""

    def __init__(self, name: str, width: int) -> None:
        self.name, self.width = name, width

    def take(self) -> IO[str] | None:
        """A place, held until it is closed; None where all are taken."""
        for n in range(self.width):
            place = take(f"{self.name}-{n}")
            if place is not None:
                return place
        return None
