"""kill -9 of the web server during voting and of the worker during an import: is anything lost?

    python -m bench.kill9 [--kills 5] [--rows 20000]

The processes run as in the demo: they are started again when they die. Raters send a vote again
when the connection breaks, as the page's script does. Exit code 1 if a vote or an answer was lost
or doubled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

from bench.http_voting import BAD
from bench.imports import rows
from bench.site import Site
from bench.voters import Rater, Record

RATERS, VOTES_EACH = 10, 60
LIMIT = 600.0


def kill(site: Site, word: str) -> int:
    """kill -9 for every process of the site whose command has the word. How many."""
    pids = site.pids(word)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)


def voting(site: Site, kills: int) -> dict[str, Any]:
    """Raters vote while the web server dies again and again."""
    world = site.ask("round", "--raters", str(RATERS), "--votes", str(RATERS * (VOTES_EACH + 8)))
    site.start("web", kept=True)
    record = Record()
    killed = asyncio.run(vote_and_kill(site, record, world, kills))
    file = site.home / "receipts.txt"
    file.write_text("\n".join(record.receipts))
    truth = site.ask("check", str(world["round"]), str(file))
    return {
        "kills": killed,
        "resent": record.resent,
        **truth,
        "locked": site.logged("database is locked"),
        "errors": len(record.errors),
        "first_errors": sorted(set(record.errors))[:5],
    }


async def vote_and_kill(site: Site, record: Record, world: dict[str, Any], kills: int) -> int:
    clients = [httpx.AsyncClient(base_url=site.address, timeout=20) for _name in world["raters"]]
    people = [
        Rater(client, record, world["round"], name, world["password"], 0.05, patience=60, think=0.1)
        for client, name in zip(clients, world["raters"], strict=True)
    ]
    for person in people:
        await person.log_in()
    voting = asyncio.gather(*(person.work(VOTES_EACH) for person in people), return_exceptions=True)
    killed = 0
    while not voting.done() and killed < kills:
        before = len(record.receipts)
        while not voting.done() and len(record.receipts) < before + 25:
            await asyncio.sleep(0.05)
        if not voting.done():
            kill(site, "granian")
            killed += 1
    results = await voting
    record.errors += [repr(result) for result in results if isinstance(result, BaseException)]
    for client in clients:
        await client.aclose()
    return killed


def importing(site: Site, count: int) -> dict[str, Any]:
    """The worker dies in the middle of an import and once more after it began again."""
    file = site.home / "answers.jsonl"
    write_rows(file, count)
    before = site.ask("upload", str(file))["run"]
    site.start("worker", kept=True)
    site.start("beat", kept=True)
    wait_for(site, before, "done")
    run = site.ask("start", str(before))["run"]
    killed, resumed = 0, []
    for share in (0.2, 0.5):
        at = wait_for(site, run, "rows_done", count * share)
        if at["state"] == "running":
            killed += kill(site, "celery") > 0
            resumed.append(at["rows_done"])
    done = wait_for(site, run, "done")
    again = site.ask("start", str(wait_for_check(site, file)))["run"]
    second = wait_for(site, again, "done")
    return {
        "kills": killed,
        "killed_after_rows": resumed,
        "rows": count,
        "added": done["added"],
        "answers": done["answers"],
        "lost": count - done["answers"],
        "second_import_added": second["added"],
    }


def wait_for_check(site: Site, file: Path) -> int:
    run = int(site.ask("upload", str(file))["run"])
    wait_for(site, run, "done")
    return run


def write_rows(file: Path, count: int) -> None:
    with file.open("w", encoding="utf-8") as out:
        for row in islice(rows(count), count):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def wait_for(site: Site, run: int, what: str, least: float = 0) -> dict[str, Any]:
    """Until the run is done, or has come so far."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        now: dict[str, Any] = site.ask("run", str(run))
        if now["state"] != "running" or (what == "rows_done" and now["rows_done"] >= least):
            return now
    raise TimeoutError(f"import {run} did not end within {LIMIT:.0f} s: {now}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5, help="of the web server")
    parser.add_argument("--rows", type=int, default=40_000, help="of the import")
    parser.add_argument("--only", choices=["voting", "import"])
    given = parser.parse_args()
    results: dict[str, Any] = {}
    if given.only != "import":
        with Site() as site:
            results["voting"] = voting(site, given.kills)
        print("voting:", json.dumps(results["voting"]), flush=True)
    if given.only != "voting":
        with Site() as site:
            results["import"] = importing(site, given.rows)
        print("import:", json.dumps(results["import"]), flush=True)
    print(json.dumps(results))
    votes, answers = results.get("voting", {}), results.get("import", {})
    wrong = any(votes.get(name) for name in BAD)
    wrong |= any(answers.get(name) for name in ("lost", "second_import_added"))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
