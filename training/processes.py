"""The process of a run on this machine: starting it detached, seeing whether it lives, ending it.

A run that is being executed holds the lock on `run.lock` in its directory. Between its start and
that lock it is known by its process id and its command line.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.conf import settings

from training import detach

LOG = "log.txt"
# All that a trainer gets to see: no database, no broker, no secret of the site (V24).
PASSED = (
    "PATH", "HOME", "LANG", "TMPDIR", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "PALATE_JUDGE_KEY",
)  # fmt: skip
PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "HF_", "TORCH_", "PYTORCH_", "VLLM_", "TRITON_")


def host() -> str:
    """The name by which this machine is known in runs and devices."""
    return socket.gethostname()[:120]


def environment(*, threads: int, gpus: str = "") -> dict[str, str]:
    """Environment of a trainer. `threads` 0 lets torch decide; `gpus` as CUDA counts them."""
    found = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED or name.startswith(PREFIXES)
    }
    found["PYTHONUNBUFFERED"] = "1"
    # Threads that wait must not spin: two trainers on one machine took twice as long.
    found |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
    if threads:
        found["OMP_NUM_THREADS"] = str(threads)
    if gpus:
        found["CUDA_VISIBLE_DEVICES"] = gpus
    return found


def command(directory: Path, processes: int) -> list[str]:
    """What executes a run directory; several processes are started by accelerate."""
    trainer: list[str] = settings.PALATE_TRAINER
    if processes > 1:
        launcher = ["-m", "accelerate.commands.launch", "--num_processes", str(processes)]
        trainer = [trainer[0], *launcher, *trainer[1:]]
    return [*trainer, "run", str(directory)]


def start(directory: Path, *, processes: int, env: Mapping[str, str]) -> int:
    """Start the trainer detached; its process id. Raises OSError where it could not be started."""
    starter = [sys.executable, "-I", "-S", detach.__file__, str(directory / LOG)]
    done = subprocess.run(
        [*starter, *command(directory, processes)],
        cwd=settings.BASE_DIR,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode or not done.stdout.strip().isdigit():
        raise OSError(f"the trainer could not be started: {done.stderr.strip()[-300:]}")
    return int(done.stdout)


def is_locked(directory: Path) -> bool:
    """Whether a process executes this directory. A shared lock is tried and given back at once."""
    try:
        with (directory / "run.lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def is_alive(pid: int | None, directory: Path) -> bool:
    """Whether this process is the trainer of this directory: numbers are given out again."""
    return bool(pid) and str(directory) in _arguments(Path(f"/proc/{pid}"))


def trainers(directory: Path) -> list[int]:
    """All processes of a run: of several, each GPU has one, in a session of its own."""
    found = [p for p in Path("/proc").glob("[0-9]*") if str(directory) in _arguments(p)]
    return [int(process.name) for process in found]


def _arguments(process: Path) -> list[str]:
    """The command line; empty for a process that is gone, or a zombie."""
    try:
        return (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\x00")
    except OSError:
        return []


def end(pid: int | None, directory: Path, *, kill: bool) -> bool:
    """SIGTERM to the trainer and what shares its session, or SIGKILL to all; whether it lived."""
    lives = is_alive(pid, directory)
    asked = trainers(directory) if kill else [pid] if pid and lives else []
    for number in asked:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            group = os.getpgid(number)
            if group != os.getpgrp():
                os.killpg(group, signal.SIGKILL if kill else signal.SIGTERM)
    return lives or bool(asked)


def end_orphans(pid: int | None) -> int:
    """Kill what a dead trainer left in its session, for example a model server; how many."""
    if not pid or session_of(pid) is not None:  # the number belongs to somebody who lives
        return 0
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        if session_of(int(folder.name)) == pid:
            with contextlib.suppress(OSError):
                os.kill(int(folder.name), signal.SIGKILL)
                found += 1
    return found


def session_of(pid: int) -> int | None:
    """The session of a living process; None for a dead one."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if said[0] in "ZX" else int(said[3])


@contextlib.contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Hold a lock file of this machine; False where another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def last_lines(directory: Path, lines: int = 40, size: int = 8000) -> str:
    """The end of the log, without the key of the judge."""
    try:
        with (directory / LOG).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            text = file.read().decode("utf-8", "replace").replace("\x00", "")
    except OSError:
        return ""
    key = os.environ.get("PALATE_JUDGE_KEY", "")
    text = text.replace(key, "…") if key else text
    return "\n".join(text.splitlines()[-lines:])
