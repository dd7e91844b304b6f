"""Files made from rows and kept, because making them is dear. Deleting them loses nothing.

A name says everything that the content depends on, so that a file is right or not there. Whoever
erases a text forgets all kept files: one of them may hold it.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

Write = Callable[[BinaryIO], None]


def kept_file(group: str, name: str, write: Write) -> BinaryIO:
    """The file open at its beginning. `write` makes it when it is first asked for, once.

    Other files of the group are outdated then and go: a group is one thing, such as a bundle.
    """
    path = _root() / group / name
    with suppress(FileNotFoundError):
        return path.open("rb")
    path.parent.mkdir(parents=True, exist_ok=True)
    locks = Path(settings.MEDIA_ROOT) / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / group).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            return path.open("rb")
        return _make(path, write)


def _make(path: Path, write: Write) -> BinaryIO:
    """In full or not at all. The open file stays good even where it is forgotten meanwhile."""
    part = path.with_name(f"{path.name}.part")
    made = part.open("w+b")
    try:
        write(made)
        made.flush()
    except BaseException:
        made.close()
        part.unlink(missing_ok=True)
        raise
    with suppress(FileNotFoundError):
        part.replace(path)
    for other in path.parent.iterdir():
        if other != path:
            other.unlink(missing_ok=True)
    made.seek(0)
    return made


def forget_kept_files() -> None:
    """Delete them all; the folders stay, because somebody may be writing into one."""
    for path in _root().rglob("*"):
        if path.is_file():
            path.unlink(missing_ok=True)


def _root() -> Path:
    return Path(settings.MEDIA_ROOT) / "kept"
