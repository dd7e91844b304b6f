"""Every check and test, in one go; a table at the end says what passed, failed or was left out.

    make test                         everything
    make test TESTS="tests/arena -x"  pytest alone, with these arguments, on the embedded defaults

The suite runs once on SQLite and the filesystem broker. Tests marked `postgres` run again where
PostgreSQL and Redis are reachable, beside it, as the checks of the code do; tests marked `browser`
where a Chromium is found:

    TEST_DATABASE_URL   default postgres://postgres@127.0.0.1:5432/test (makes its own database)
    TEST_REDIS_URL      default redis://127.0.0.1:6379/15 (emptied by the tests!)
    PALATE_CHROMIUM     path of a Chromium or Chrome
    PALATE_TEST_REQUIRE "all", or some of "servers,chromium": what is missing is a failure
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TYPED = ("webapp", "arena", "annotation", "training", "workers", "tests", "bench", "tools")
DATABASE_URL = "postgres://postgres@127.0.0.1:5432/test"
REDIS_URL = "redis://127.0.0.1:6379/15"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Two processes; each begins with a half in the order of the files, so that what a file sets up once
# is set up once, and takes from the other when it is done.
TWO = ("-n", "2", "--dist", "worksteal")
NO_TESTS = 5  # pytest's exit code when nothing was collected


@dataclass
class Report:
    """What happened, step by step. A quiet one shows what a step said when the step is over."""

    rows: list[tuple[str, str, float]] = field(default_factory=list)
    failed: bool = False
    quiet: bool = False

    def run(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        fine: Sequence[int] = (0,),
    ) -> None:
        if not self.quiet:
            print(f"\n=== {name}", flush=True)
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE if self.quiet else None,
            stderr=subprocess.STDOUT if self.quiet else None,
            text=True,
        )
        if self.quiet:
            print(f"\n=== {name}\n{done.stdout}", end="", flush=True)
        passed = "passed" if done.returncode in fine else "FAILED"
        self.add(name, passed, time.monotonic() - started)

    def add(self, name: str, outcome: str, seconds: float = 0.0) -> None:
        self.rows.append((name, outcome, seconds))
        self.failed |= outcome.startswith("FAILED")

    def skip(self, name: str, reason: str, *, required: bool) -> None:
        """Say that something was left out; a failure where it was insisted on."""
        outcome = f"FAILED: {reason}" if required else f"left out: {reason}"
        print(f"\n=== {name}\n{outcome}", flush=True)
        self.add(name, outcome)

    def show(self) -> None:
        print("\n" + "=" * 78)
        for name, outcome, seconds in self.rows:
            print(f"{name:<34} {seconds:6.1f} s  {outcome}")
        print("=" * 78 + "\n" + ("Something failed." if self.failed else "All passed."), flush=True)


Part = Callable[[Report], None]


def side_by_side(report: Report, shown: Part, *beside: Part) -> None:
    """Run one part in sight and others beside it, so that no core waits for another."""
    reports = [Report(quiet=True) for _part in beside]
    with ThreadPoolExecutor(len(beside)) as pool:
        waiting = [pool.submit(part, own) for part, own in zip(beside, reports, strict=True)]
        shown(report)
        for part in waiting:
            part.result()
    for own in reports:
        report.rows += own.rows
        report.failed |= own.failed


def tool(name: str) -> str:
    return str(BIN / name)


def required(what: str) -> bool:
    wanted = os.environ.get("PALATE_TEST_REQUIRE", "").split(",")
    return "all" in wanted or what in wanted


def compile_messages(report: Report) -> None:
    """First: every test may meet a page."""
    if (ROOT / "tools" / "messages.py").exists():
        report.run("message catalogues", [sys.executable, "tools/messages.py", "compile"])


def check_code(report: Report) -> None:
    """What can be said without running the site."""
    typed = [name for name in TYPED if any((ROOT / name).glob("**/*.py"))]
    report.run("ruff", [tool("ruff"), "check", "."])
    report.run("mypy --strict", [tool("mypy"), *typed])
    report.run("import contracts", [tool("lint-imports")])
    django = {"SECRET_KEY": "only-for-tests", "DJANGO_SETTINGS_MODULE": "tests.settings"}
    report.run(
        "migrations are complete",
        [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"],
        django,
    )


def run_suite(report: Report) -> None:
    """The whole suite on SQLite and the filesystem broker; the slowest tests are named."""
    report.run("suite on the embedded defaults", [tool("pytest"), *TWO, "-q", "--durations=15"])


def run_on_servers(report: Report) -> None:
    name = "tests on PostgreSQL and Redis"
    database = os.environ.get("TEST_DATABASE_URL") or DATABASE_URL
    redis = os.environ.get("TEST_REDIS_URL") or REDIS_URL
    trouble = why_no_database(database) or why_no_redis(redis)
    if trouble:
        report.skip(name, trouble, required=required("servers"))
        return
    env = {"DATABASE_URL": own_database(database), "REDIS_URL": redis}
    command = [tool("pytest"), "-q", "-m", "postgres and not browser", "--create-db"]
    report.run(name, command, env, fine=(0, NO_TESTS))


def own_database(url: str) -> str:
    """The same server, a database name of this run, so that two runs do not meet."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path}_{os.getpid()}"))


def why_no_database(url: str) -> str:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.Error as error:
        reason = (str(error).splitlines() or ["no answer"])[0]
        return f"PostgreSQL is not reachable ({reason})"
    return ""


def why_no_redis(url: str) -> str:
    import redis

    try:
        redis.Redis.from_url(url, socket_connect_timeout=3).ping()
    except redis.RedisError as error:
        return f"Redis is not reachable ({error})"
    return ""


def run_in_browser(report: Report) -> None:
    name = "tests in a Chromium"
    chromium = find_chromium()
    if not chromium:
        reason = "no Chromium found; set PALATE_CHROMIUM"
        report.skip(name, reason, required=required("chromium"))
        return
    env = {"PALATE_CHROMIUM": chromium}
    report.run(name, [tool("pytest"), *TWO, "-q", "-m", "browser"], env, fine=(0, NO_TESTS))


def find_chromium() -> str:
    """The path of a Chromium, or empty."""
    given = os.environ.get("PALATE_CHROMIUM", "")
    if given:
        return given if Path(given).exists() else ""
    return next(filter(None, map(shutil.which, CHROMIUMS)), "")


def main(arguments: Sequence[str]) -> int:
    if arguments:
        return subprocess.run([tool("pytest"), *arguments], cwd=ROOT).returncode
    for name in ("DATABASE_URL", "REDIS_URL", "PALATE_HOME"):
        os.environ.pop(name, None)  # whatever the shell has set: the suite makes its own
    report = Report()
    compile_messages(report)
    side_by_side(report, run_suite, check_code, run_on_servers)
    run_in_browser(report)
    report.show()
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
