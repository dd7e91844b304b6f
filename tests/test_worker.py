"""The worker of the Procfile, on the filesystem broker, when a child of it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery.worker import state

from tests.migrated import NAME, copy
from tests.test_operations import environment
from tools.procfile import KEEP, ROOT, commands
from workers import pool

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
SEND = """
import django; django.setup()
from workers.app import app
for _ in range(12):
    app.send_task("workers.repair_arena")
"""


class Worker:
    """Kept as in the demo; `broker` holds what waits for it."""

    def __init__(self, home: Path) -> None:
        self.log, self.messages = home / "worker.log", home / "broker" / "messages"
        self.env = environment(home, SECRET_KEY="x" * 50)
        with self.log.open("wb") as log:
            self.keep = subprocess.Popen(
                [sys.executable, str(KEEP), "worker", "sh", "-c", f"exec {commands()['worker']}"],
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=log,
            )

    def main(self) -> int:
        found = children(self.keep.pid)
        return found[0] if found else 0

    def pool(self) -> list[int]:
        return children(self.main())

    def send(self) -> None:
        subprocess.run([sys.executable, "-c", SEND], cwd=ROOT, env=self.env, check=True)

    def waiting(self) -> int:
        return len(list(self.messages.glob("*.msg")))

    def wait(self, what: Callable[[], bool], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if what():
                return
            time.sleep(0.1)
        raise TimeoutError(self.log.read_text())


def children(parent: int) -> list[int]:
    """Pids, of those that live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(words[1]) == parent and words[0] != "Z":
            found.append(int(entry.name))
    return sorted(found)


@pytest.fixture
def worker(tmp_path: Path, empty_database: Path) -> Iterator[Worker]:
    copy(empty_database, tmp_path / NAME)
    found = Worker(tmp_path)
    yield found
    found.keep.terminate()
    found.keep.wait(15)


@linux
def test_a_worker_whose_children_are_killed_works_on(worker: Worker) -> None:
    """One of two idle children always holds the lock of the queue; here both are hit."""
    worker.send()
    worker.wait(lambda: worker.waiting() == 0 and len(worker.pool()) == 2)
    first = worker.main()
    for pid in worker.pool():
        os.kill(pid, signal.SIGKILL)
    worker.wait(lambda: worker.main() not in (0, first))
    assert "a child of the worker was killed" in worker.log.read_text()
    worker.send()
    worker.wait(lambda: worker.waiting() == 0)


class Ended(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(_code: int) -> None:
        raise Ended

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(state, "should_stop", None)
    monkeypatch.setattr(state, "should_terminate", None)


def child(code: int | None, *, told: bool = False) -> Any:
    return type("Child", (), {"exitcode": code, "_controlled_termination": told})()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_any_signal_that_ends_a_child_ends_the_worker(ends: None, number: signal.Signals) -> None:
    with pytest.raises(Ended):
        pool.end_with(child(-number))


@pytest.mark.parametrize("code", [None, 0, 1, 155])
def test_a_child_that_ends_by_itself_is_replaced(ends: None, code: int | None) -> None:
    pool.end_with(child(code))


def test_children_that_end_with_their_worker_are_none_of_its_business(
    ends: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "should_stop", 0)
    pool.end_with(child(-signal.SIGTERM))
    with pytest.raises(Ended):
        pool.end_with(child(-signal.SIGKILL))  # it may hold the lock all the same


def test_a_child_that_celery_ends_is_none_either(ends: None) -> None:
    pool.end_with(child(-signal.SIGTERM, told=True))
