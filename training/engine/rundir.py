"""A run directory: where everything lies, and how it is written so that a crash loses nothing.

    config.json      in: what to do               data/…       in: snapshots, named with their hash
    metrics.jsonl    one line a step              samples.jsonl  completions with their parts
    events.jsonl     what happened                heartbeat.json process, time, step
    checkpoints/     to resume from               model/, members/  what the run made
    manifest.json    written last: outcome, hashes, versions. Without it the run was killed

Lines are appended whole. After a resume a step may occur again: the later line counts.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STOP_FILE = "stop"
RESERVE = ".reserve"
RESERVED = 1 << 18  # bytes


def clean(value: Any) -> Any:
    """The same without what JSON does not know: infinities and NaN become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    return value


def dumps(value: Any) -> str:
    return json.dumps(clean(value), ensure_ascii=False, allow_nan=False, sort_keys=True)


def write_json(path: Path, value: Any) -> None:
    """Replace the file at once: a reader sees the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as out:
            out.write(dumps(value) + "\n")
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file that may still be written, or ended in the middle of one."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                row = json.loads(line)
            except ValueError:
                continue  # half a line of a killed process, closed by its successor
            if isinstance(row, dict):
                yield row


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_json(value: Any) -> str:
    return hashlib.sha256(dumps(value).encode()).hexdigest()


@dataclass(frozen=True)
class RunDir:
    """The paths of one run, and its append-only files.

    Of several processes (one per GPU) only the main one writes.
    """

    path: Path
    main: bool = True

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def samples(self) -> Path:
        return self.path / "samples.jsonl"

    @property
    def heartbeat(self) -> Path:
        return self.path / "heartbeat.json"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def stop_requested(self) -> bool:
        return (self.path / STOP_FILE).exists()

    def append(self, path: Path, row: Mapping[str, Any]) -> None:
        """One whole line; half a line of a killed process before it is closed first."""
        if not self.main:
            return
        data = (dumps(row) + "\n").encode()
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data
            while data:
                data = data[os.write(fd, data) :]
        finally:
            os.close(fd)

    def event(self, kind: str, **facts: Any) -> None:
        self.append(self.events, {"at": round(time.time(), 3), "kind": kind, **facts})

    def beat(self, step: int, stage: str) -> None:
        """Called where work progresses, never by a timer: a run that hangs must not look alive."""
        if not self.main:
            return
        row = {"pid": os.getpid(), "at": round(time.time(), 3), "step": step, "stage": stage}
        write_json(self.heartbeat, row)

    def history(self) -> dict[int, dict[str, float | None]]:
        """Metrics by step; where a step was run again after a resume, the later line."""
        found: dict[int, dict[str, float | None]] = {}
        for row in read_lines(self.metrics):
            if isinstance(row.get("step"), int) and isinstance(row.get("metrics"), dict):
                found.setdefault(row["step"], {}).update(row["metrics"])
        return dict(sorted(found.items()))

    def reserve(self) -> None:
        """Room for the last words: on a full disk, the manifest still fits."""
        if self.main and not (self.path / RESERVE).exists():
            (self.path / RESERVE).write_bytes(os.urandom(RESERVED))

    def release(self) -> None:
        """Give that room free, and what an interrupted save holds: it cannot be resumed from."""
        if not self.main:
            return
        (self.path / RESERVE).unlink(missing_ok=True)
        for folder in self.checkpoints.rglob("checkpoint-*"):
            if folder.is_dir() and not _is_complete(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def last_checkpoint(self) -> Path | None:
        """The newest complete one; an interrupted save is passed over."""
        for folder in sorted(self.checkpoints.glob("checkpoint-*"), key=_step, reverse=True):
            if _is_complete(folder):
                return folder
        return None


def _is_complete(folder: Path) -> bool:
    """The trainer writes its state last; in the file of a full disk, half of it."""
    if (folder / "checkpoint-is-incomplete.txt").exists():
        return False
    try:
        return bool(read_json(folder / "trainer_state.json"))
    except (OSError, ValueError):
        return False


def _step(folder: Path) -> int:
    tail = folder.name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else -1
