"""kill -9 of the worker and of the web server while a run trains: it neither dies nor doubles.

Real processes on SQLite and the filesystem broker; only the trainer is one that trains nothing.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_operations import ROOT, environment
from tools.procfile import commands
from training import processes

FAKE = ROOT / "tests" / "training" / "fake_trainer.py"
PREPARE = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from pathlib import Path
from tests.training.run_factories import instructions
instructions(Path({folder!r}))
"""


class Site:
    """A home with a database, and the processes that were started on it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = environment(
            home,
            SECRET_KEY="for this test",
            PALATE_TRAINER=f"{sys.executable} {FAKE}",
            RUN_WATCH_SECONDS="0.5",
            PORT="0",
        )
        self.started: list[subprocess.Popen[bytes]] = []

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """A process of the Procfile."""
        command = ["sh", "-c", f"exec {commands()[name]}"]
        process = subprocess.Popen(command, cwd=ROOT, env=self.env, start_new_session=True)
        self.started.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """The process and all its children, without a word."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)

    def read(self, query: str) -> Any:
        with sqlite3.connect(self.home / "palate.sqlite3", timeout=30) as database:
            return database.execute(query).fetchone()

    def until(self, holds: Callable[[], Any], patience: float = 300) -> Any:
        end = time.monotonic() + patience
        while not (found := holds()):
            assert time.monotonic() < end, self.read(RUN)
            time.sleep(0.2)
        return found


RUN = "SELECT state, pid, step, attempts, directory FROM training_trainingrun"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path)
    found.run("-c", PREPARE.format(folder=str(tmp_path)))
    yield found
    for process in found.started:
        if process.poll() is None:
            found.kill(process)
    row = found.read(RUN)
    if row and row[1]:
        processes.end(row[1], tmp_path / "runs" / row[4], kill=True)


def test_worker_and_web_may_be_killed_while_a_run_trains(site: Site) -> None:
    worker, beat, web = (site.start(name) for name in ("worker", "beat", "web"))
    launch = ["manage.py", "run_launch", "Long", "--kind", "sft", "--preset", "tiny"]
    site.run(*launch, "--input", "train=Instructions:train", "--set", "note=steps=2000 pause=0.1")
    site.until(lambda: site.read(RUN)[0] == "running" and site.read(RUN)[2] > 3)
    _state, pid, step, _attempts, name = site.read(RUN)
    folder = site.home / "runs" / name
    assert web.poll() is None
    for process in (worker, beat, web):
        site.kill(process)
    time.sleep(1)
    assert processes.is_alive(pid, folder)
    assert processes.is_locked(folder)
    site.start("worker")
    site.start("beat")
    site.until(lambda: site.read(RUN)[2] > step + 20)  # it is read again from where it was left
    assert site.read(RUN)[1:4:2] == (pid, 1)
    site.run("-c", CANCEL)
    site.until(lambda: site.read(RUN)[0] == "cancelled")
    assert site.read("SELECT count(*) FROM training_device WHERE run_id IS NOT NULL") == (0,)
    doubles = "SELECT count(*), count(DISTINCT step) FROM training_metricline"
    lines, steps = site.read(doubles)
    assert lines == steps > step
    assert site.read("SELECT count(*) FROM training_runevent WHERE kind = 'started'") == (1,)
    assert processes.session_of(pid) is None


CANCEL = """
import django; django.setup()
from training.models import TrainingRun
from training.services.runs import cancel
cancel(actor=None, run=TrainingRun.objects.get())
"""
