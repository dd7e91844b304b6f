"""A site of its own for a benchmark: own data folder and database, the Procfile's commands."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from tools.procfile import commands

ROOT = Path(__file__).resolve().parent.parent
DATABASE_URL = "postgres://postgres@127.0.0.1:5432/test"


class Site:
    """`with Site() as site:` migrates, and stops and removes everything at the end."""

    def __init__(
        self, *, postgres: str = "", redis: str = "", web_workers: int = 1, threads: int = 4
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="palate-bench-"))
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.postgres, self.database = postgres, f"palate_bench_{os.getpid()}"
        self.log = self.home / "log.txt"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        kept = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
        self.env = {
            **kept,
            "PALATE_HOME": str(self.home),
            "SECRET_KEY": secrets.token_urlsafe(40),
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "LOG_LEVEL": "WARNING",
            "OPENBLAS_NUM_THREADS": "1",
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "WEB_WORKERS": str(web_workers),
            "WEB_THREADS": str(threads),
            "PYTHONPATH": str(ROOT),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        self.env.pop("PALATE_DEMO", None)
        if redis:
            self.env["REDIS_URL"] = redis

    def __enter__(self) -> Self:
        if self.postgres:
            self._on_server(f"CREATE DATABASE {self.database}")
            parts = urlsplit(self.postgres)
            self.env["DATABASE_URL"] = urlunsplit(parts._replace(path=f"/{self.database}"))
        self.manage("migrate", "-v0")
        self.manage("collectstatic", "--no-input", "-v0", "-i", "rest_framework")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for name in list(self.processes):
            self.stop(name)
        if self.postgres:
            self._on_server(f"DROP DATABASE {self.database} WITH (FORCE)")
        shutil.rmtree(self.home, ignore_errors=True)

    def _on_server(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(statement.encode())

    def manage(self, *arguments: str) -> None:
        command = [sys.executable, "manage.py", *arguments]
        subprocess.run(command, cwd=ROOT, env=self.env, check=True)

    def ask(self, *arguments: str) -> Any:
        """Run `bench.world` beside the site; what it prints last is JSON."""
        return self._ask("bench.world", *arguments)

    def ask_desk(self, *arguments: str) -> Any:
        """The same with `bench.desk`."""
        return self._ask("bench.desk", *arguments)

    def ask_makers(self, *arguments: str) -> Any:
        """The same with `bench.makers`."""
        return self._ask("bench.makers", *arguments)

    def _ask(self, module: str, *arguments: str) -> Any:
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.env, check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout.decode().strip().splitlines()[-1])

    def start(self, name: str, *, kept: bool = False) -> None:
        """Start a line of the Procfile; `kept`: started again when it dies, as in the demo."""
        command = commands()[name]
        keep = f"{sys.executable} tools/keep.py {name} " if kept else ""
        with self.log.open("ab") as log:
            self.processes[name] = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {keep}{command}"],
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if name == "web":
            self.wait()

    def wait(self, seconds: float = 60.0) -> None:
        """Until the web server answers."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.address}/healthz", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError(f"the web server does not answer; see its log:\n{self.log.read_text()}")

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)

    def pids(self, word: str) -> list[int]:
        """Processes of this site whose command holds the word, `keep.py` aside."""
        mine = f"PALATE_HOME={self.home}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes()
                variables = (folder / "environ").read_bytes().split(b"\0")
                if word.encode() in command and b"keep.py" not in command and mine in variables:
                    found.append(int(folder.name))
            except OSError:
                continue
        return sorted(found)

    def logged(self, text: str) -> int:
        """How often the log holds the text."""
        return self.log.read_text(errors="replace").count(text) if self.log.exists() else 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
