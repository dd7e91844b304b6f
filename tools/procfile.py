"""The processes that the Procfile lists, each started again when it dies (tools/keep.py)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROCFILE = ROOT / "Procfile"
KEEP = ROOT / "tools" / "keep.py"
PATIENCE = 30.0


def commands() -> dict[str, str]:
    """Name and shell command of each line."""
    lines = PROCFILE.read_text("utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


@contextmanager
def running(names: Sequence[str] = ()) -> Iterator[None]:
    """These processes, or all of them, ended with the block."""
    found = commands()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.extend(_start(name, found[name]) for name in names or found)
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            _wait(process)


def _start(name: str, command: str) -> subprocess.Popen[bytes]:
    kept = [sys.executable, str(KEEP), name, "sh", "-c", f"exec {command}"]
    return subprocess.Popen(kept, cwd=ROOT)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
