"""Files of exports on disk: MEDIA_ROOT/exports/<id>/, written aside and renamed when complete."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from django.conf import settings


def folder(pk: int) -> Path:
    return Path(settings.MEDIA_ROOT) / "exports" / str(pk)


def fresh_work_folder(pk: int) -> Path:
    """Empty: what a process that died left behind is deleted."""
    discard(pk)
    path = folder(pk) / "work"
    path.mkdir(parents=True)
    return path


def publish(work: Path, made: Path, pk: int, name: str) -> tuple[Path, int, str]:
    """Rename a complete file to where it is downloaded from; its path, size and SHA-256."""
    with made.open("rb+") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    path = folder(pk) / name
    made.replace(path)
    shutil.rmtree(work, ignore_errors=True)
    return path, path.stat().st_size, digest


def discard(pk: int) -> None:
    shutil.rmtree(folder(pk), ignore_errors=True)
