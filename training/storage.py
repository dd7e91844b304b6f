"""Where the directories of runs lie: under `PALATE_RUNS`, a folder that all machines share."""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings

GB = 1e9
ATTEMPT = "attempt.json"  # written last when a start is prepared


def folder() -> Path:
    return Path(settings.PALATE_RUNS)


def directory(name: str) -> Path:
    """The directory of a run; `name` is its column `directory`."""
    return folder() / name


def is_of(attempt: int, path: Path) -> bool:
    """Whether manifest and heartbeat in a directory are of this attempt, not of an earlier one."""
    try:
        return (path / ATTEMPT).read_text(encoding="utf-8").strip() == str(attempt)
    except OSError:
        return False


def free_gb() -> float:
    """Free space where runs are stored."""
    where = folder()
    while not where.exists():
        where = where.parent
    return shutil.disk_usage(where).free / GB


def size_of(path: Path) -> int:
    """Bytes of a file, or of everything under a folder; 0 where nothing is."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
