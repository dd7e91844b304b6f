"""Files of imports on disk: the upload, its error file, the samples of its preview.

Everything of one import stands in MEDIA_ROOT/imports/<id>/. The upload holds texts together with
their makers, so it is deleted as soon as it is imported or cancelled.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from webapp.catalog.formats import HEAD, choose


def folder(pk: int) -> Path:
    return Path(settings.MEDIA_ROOT) / "imports" / str(pk)


def source_path(pk: int) -> Path:
    return folder(pk) / "source"


def errors_path(pk: int) -> Path:
    return folder(pk) / "errors.jsonl"


def clean_name(name: str) -> str:
    """The last part of a file name without control characters. For showing only, never a path."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(c if unicodedata.category(c)[0] != "C" else "�" for c in last)
    return kept.strip()[:200] or "upload"


def save_upload(pk: int, chunks: Iterable[bytes]) -> tuple[Path, int, str]:
    """Stream an upload to disk; its path, size and SHA-256."""
    path, size, digest = source_path(pk), 0, hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
            size += len(chunk)
            digest.update(chunk)
    return path, size, digest.hexdigest()


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def choose_format(path: Path, wanted: str) -> str:
    """The format of a file; raises FormatError where it is plainly another one."""
    with path.open("rb") as stream:
        return choose(stream.read(HEAD), wanted)


def discard(pk: int) -> None:
    """Delete the upload and the samples of its preview; the error file stays."""
    for path in (source_path(pk), samples_path(pk)):
        path.unlink(missing_ok=True)


def forget_check(pk: int) -> None:
    """Delete what a check left; the upload stays."""
    for path in (errors_path(pk), samples_path(pk)):
        path.unlink(missing_ok=True)


def discard_all(pk: int) -> None:
    shutil.rmtree(folder(pk), ignore_errors=True)


class ErrorFile:
    """Appends at the size that the database knows, so that a repeated batch overwrites itself."""

    def __init__(self, pk: int) -> None:
        self._path = errors_path(pk)

    def append(self, lines: list[dict[str, Any]], size: int) -> int:
        """Write lines from byte `size` on, dropping what stood there. Returns the new size."""
        if not lines and not self._path.exists():
            return size
        self._path.parent.mkdir(parents=True, exist_ok=True)
        body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode(
            errors="replace"
        )
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o640)
        try:
            os.ftruncate(descriptor, size)
            os.pwrite(descriptor, body, size)
            if body:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return size + len(body)


def samples_path(pk: int) -> Path:
    return folder(pk) / "samples.json"


def write_samples(pk: int, samples: list[dict[str, Any]]) -> None:
    path = samples_path(pk)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(samples, ensure_ascii=False))


def read_samples(pk: int) -> list[dict[str, Any]]:
    try:
        return list(json.loads(samples_path(pk).read_text()))
    except FileNotFoundError:
        return []


@contextmanager
def alive(pk: int) -> Iterator[bool]:
    """Hold the import's lock file; False where a living process of this machine holds it.

    The system lets go of it when a process dies, however it dies.
    """
    folder(pk).mkdir(parents=True, exist_ok=True)
    with (folder(pk) / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
