"""Many annotators at once over HTTP, against the production server.

    python -m bench.http_labelling [--only sqlite|postgres] [--think SECONDS] [--labels N]

50 annotators and 5,000 labels on PostgreSQL and Redis, 20 annotators and 1,000 labels on SQLite.
Everybody logs in, loads the real page, prefetches, submits with its CSRF token; some submissions
are sent twice at once (a double click); gold and repeats are among the items. Afterwards the
database is compared with what people were told. Exit code 1 if a label was lost or doubled, an
item has too many, a counter or an outcome is wrong, or the database was locked.
The load comes from the same machine, so it takes its share of the processors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import Any

from bench.annotators import Annotator
from bench.site import DATABASE_URL, Site
from bench.voters import Record, everybody, show_requests, timings

REDIS_URL = "redis://127.0.0.1:6379/9"
DOUBLE_CLICKS = 0.03
BAD = (
    "lost", "double", "seat_twice", "not_told", "over", "live_differs", "outcome_differs",
    "deadlocks", "locked", "errors",
)  # fmt: skip


def measure(name: str, site: Site, people: int, labels: int, think: float) -> dict[str, Any]:
    """Set up a project, let everybody label, compare."""
    world = site.ask_desk("make", "--people", str(people), "--items", str(labels))
    site.start("web")
    record = Record()
    seconds = asyncio.run(
        everybody(
            Annotator,
            site.address,
            record,
            world["project"],
            world["people"],
            world["password"],
            amount=labels // people,
            double_clicks=DOUBLE_CLICKS,
            think=think,
        )
    )
    truth = compare(site, record, world)
    requests = sum(len(values) for values in record.seconds.values())
    return {
        "run": name,
        "people": people,
        "seconds": round(seconds, 1),
        "requests_per_s": round(requests / seconds, 1),
        "labels_per_s": round(truth["labels"] / seconds, 1),
        "double_clicks": record.doubled,
        **truth,
        "load": round(os.getloadavg()[0], 1),
        "requests": timings(record, seconds),
    }


def compare(site: Site, record: Record, world: dict[str, Any]) -> dict[str, Any]:
    """What people were told against what the database holds."""
    file = site.home / "told.txt"
    file.write_text("\n".join(record.receipts))
    return {
        **site.ask_desk("check", str(world["project"]), str(file)),
        "deadlocks": site.logged("deadlock"),
        "locked": site.logged("database is locked"),
        "errors": len(record.errors),
        "first_errors": sorted(set(record.errors))[:5],
    }


def show(result: dict[str, Any]) -> None:
    print(
        f"\n{result['run']}: {result['people']} annotators, {result['labels']:,} labels in "
        f"{result['seconds']} s: {result['labels_per_s']} labels/s, "
        f"{result['requests_per_s']} requests/s, {result['double_clicks']} double clicks, "
        f"{result['gold']} on gold, {result['repeats']} repeats, load {result['load']}"
    )
    print("  " + ", ".join(f"{name} {result[name]}" for name in BAD))
    show_requests(result["requests"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    parser.add_argument("--postgres", default=DATABASE_URL, help="a server to make a database on")
    parser.add_argument("--redis", default=REDIS_URL)
    parser.add_argument("--labels", type=int, help="instead of 5,000 and 1,000")
    parser.add_argument("--think", type=float, default=0.0, help="seconds of reading, on average")
    given = parser.parse_args()
    results = []
    if given.only != "sqlite":
        with Site(postgres=given.postgres, redis=given.redis, web_workers=2) as site:
            labels = given.labels or 5000
            results.append(measure("PostgreSQL and Redis", site, 50, labels, given.think))
        show(results[-1])
    if given.only != "postgres":
        with Site() as site:
            results.append(measure("SQLite", site, 20, given.labels or 1000, given.think))
        show(results[-1])
    print(json.dumps(results, ensure_ascii=False))
    return int(any(result[name] for result in results for name in BAD))


if __name__ == "__main__":
    sys.exit(main())
