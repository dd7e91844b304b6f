"""Running it: settings that refuse, the health page, static files, logs without personal data."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOT_OURS = ("SECRET_KEY", "PALATE_DEMO", "DATABASE_URL", "REDIS_URL", "CELERY_EAGER", "LOG_LEVEL")


def environment(home: Path, **changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    bin_folder = str(Path(sys.executable).parent)
    return {
        **kept,
        "PALATE_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "PATH": os.pathsep.join([bin_folder, kept.get("PATH", "")]),
        **changes,
    }


def run(home: Path, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(home, **changes),
        capture_output=True,
        text=True,
        timeout=400,
    )


# Settings


def test_without_a_secret_nothing_starts(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", "import webapp.wsgi")
    assert done.returncode != 0
    assert "Set SECRET_KEY" in done.stderr


def test_a_demo_keeps_a_random_secret_of_its_own(tmp_path: Path) -> None:
    show = "from django.conf import settings; print(settings.SECRET_KEY)"
    first = run(tmp_path, "-c", show, PALATE_DEMO="1").stdout
    again = run(tmp_path, "-c", show, PALATE_DEMO="1").stdout
    other = run(tmp_path / "other", "-c", show, PALATE_DEMO="1").stdout
    assert len(first.strip()) > 40
    assert first == again
    assert first != other
    assert (tmp_path / "demo-secret").stat().st_mode & 0o077 == 0


# A real server


class Server:
    """granian with the command of the Procfile, on a data folder of its own."""

    def __init__(self, home: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.home, self.log = home, home / "server.log"
        line = (ROOT / "Procfile").read_text().splitlines()[0]
        env = environment(home, SECRET_KEY="x" * 50, PORT=str(self.port), LOG_LEVEL="INFO")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", "exec " + line.removeprefix("web:")],
                cwd=ROOT,
                env=env,
                stdout=log,
                stderr=log,
            )

    def get(self, path: str, **headers: str) -> tuple[int, Message, bytes]:
        address = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(address, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, response.headers, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def wait(self) -> None:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            try:
                self.get("/healthz")
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise TimeoutError(self.log.read_text())

    def lines(self) -> list[dict[str, object]]:
        """The log's lines as objects; a line that is not JSON fails the test."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if "{" in line]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("home")
    collect = ["manage.py", "collectstatic", "--no-input", "-v0", "-i", "rest_framework"]
    run(home, *collect, SECRET_KEY="x" * 50)
    running = Server(home)
    try:
        running.wait()
        yield running
    finally:
        running.process.terminate()
        try:
            running.process.wait(20)
        except subprocess.TimeoutExpired:  # a machine under load; stopping is tested elsewhere
            running.process.kill()
            running.process.wait(20)


def test_health_says_503_until_the_tables_are_there(server: Server) -> None:
    status, _headers, body = server.get("/healthz")
    assert status == 503
    assert "migrations" in json.loads(body)["status"]
    done = run(server.home, "manage.py", "migrate", "-v0", SECRET_KEY="x" * 50)
    assert done.returncode == 0, done.stderr
    status, _headers, body = server.get("/healthz")
    assert status == 200
    assert json.loads(body) == {"status": "ok"}


def test_static_files_are_compressed_and_kept_for_ever(server: Server) -> None:
    manifest = json.loads((server.home / "static" / "staticfiles.json").read_text())
    path = "/static/" + manifest["paths"]["css/palate.css"]
    status, headers, body = server.get(path, **{"Accept-Encoding": "gzip"})
    assert status == 200
    assert headers["Content-Encoding"] == "gzip"
    assert "immutable" in headers["Cache-Control"]
    assert len(body) < len(gzip.decompress(body)) / 2
    _status, headers, _body = server.get(path, **{"Accept-Encoding": "br"})
    assert headers["Content-Encoding"] == "br"


def test_logs_are_json_without_people_paths_or_queries(server: Server) -> None:
    server.get("/rounds/987654321/?who=somebody")
    server.get("/accounts/invitation/very-secret-token/")
    rows = [row for row in server.lines() if row.get("message") == "request"]
    assert rows
    assert {"at", "level", "logger", "method", "route", "status", "ms"} <= set(rows[-1])
    text = server.log.read_text()
    for trace in ("987654321", "somebody", "very-secret-token"):
        assert trace not in text
    for line in text.splitlines():
        assert not line.startswith("Traceback")


# Keeping processes alive, and ending them


def alive(pids: list[int]) -> list[int]:
    """Those that still run; a zombie does not."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        found += [pid] if state != "Z" else []
    return found


def gone(pids: list[int]) -> bool:
    """Whether none of them runs, at the latest in a while: a signal needs a moment to be heard."""
    deadline = time.monotonic() + 240
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not alive(pids)


def wait_for_lines(file: Path, count: int) -> list[int]:
    """The numbers in the file, once there are so many."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        lines = file.read_text().split() if file.exists() else []
        if len(lines) >= count:
            return [int(line) for line in lines]
        time.sleep(0.05)
    raise TimeoutError(f"{file} has {lines}")


# Starts a child of its own, notes both process ids, and waits.
FAMILY = "sleep 300 & echo $$ $! >> {file}; wait"
# Runs a script for which the start of a process takes two seconds: the process is there before.
SLOW_START = """
import runpy, subprocess, sys, time
start = subprocess.Popen.__init__
def slow(*args, **options):
    start(*args, **options)
    time.sleep(2)
subprocess.Popen.__init__ = slow
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_a_killed_process_comes_back_and_nothing_survives_the_end(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = FAMILY.format(file=file)
    keep = subprocess.Popen(
        [sys.executable, str(ROOT / "tools" / "keep.py"), "web", "/bin/sh", "-c", script],
        stdout=subprocess.DEVNULL,
    )
    first = wait_for_lines(file, 2)
    os.kill(first[0], signal.SIGKILL)
    both = wait_for_lines(file, 4)
    assert gone(first)
    assert alive(both[2:]) == both[2:]
    keep.terminate()
    assert keep.wait(60) == 0
    assert gone(both)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_an_end_that_comes_while_the_command_is_started_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    command = [str(ROOT / "tools" / "keep.py"), "web", "/bin/sh", "-c", FAMILY.format(file=file)]
    keep = subprocess.Popen([sys.executable, "-c", SLOW_START, *command])
    family = wait_for_lines(file, 2)
    keep.terminate()
    assert keep.wait(60) == 0
    assert gone(family)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_nothing_survives_the_death_of_the_parent(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    keep = [sys.executable, str(ROOT / "tools" / "keep.py"), "web", "/bin/sh", "-c"]
    start = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    parent = subprocess.Popen([sys.executable, "-c", start, *keep, FAMILY.format(file=file)])
    family = wait_for_lines(file, 2)
    parent.kill()
    parent.wait()
    assert gone(family)
