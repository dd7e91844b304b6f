"""Many raters voting at once over HTTP, against the production server.

    python -m bench.http_voting [--only sqlite|postgres] [--think SECONDS]

50 raters and 5,000 votes on PostgreSQL, 20 raters and 1,000 votes on SQLite. Every rater logs in,
loads the real page, prefetches, votes with its CSRF token; some votes are sent twice at once (a
double click). Afterwards the database is compared with what the raters were told. Exit code 1 if a
vote was lost or doubled, a pair came twice to a rater, or the database was locked.
The load comes from the same machine, so it takes its share of the processors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from bench.site import DATABASE_URL, Site
from bench.voters import Rater, Record, everybody, show_requests, timings

DOUBLE_CLICKS = 0.03
BAD = ("lost", "double", "told_twice", "pair_twice", "not_told", "live_differs", "locked", "errors")


def measure(name: str, site: Site, raters: int, votes: int, think: float) -> dict[str, Any]:
    """Set up a round, let everybody vote, compare."""
    world = site.ask("round", "--raters", str(raters), "--votes", str(votes + votes // 10 + raters))
    site.start("web")
    record = Record()
    seconds = asyncio.run(
        everybody(
            Rater,
            site.address,
            record,
            world["round"],
            world["raters"],
            world["password"],
            amount=votes // raters,
            double_clicks=DOUBLE_CLICKS,
            think=think,
        )
    )
    file = site.home / "receipts.txt"
    file.write_text("\n".join(record.receipts))
    truth = site.ask("check", str(world["round"]), str(file))
    requests = sum(len(values) for values in record.seconds.values())
    return {
        "run": name,
        "raters": raters,
        "seconds": round(seconds, 1),
        "requests_per_s": round(requests / seconds, 1),
        "votes_per_s": round(truth["votes"] / seconds, 1),
        "double_clicks": record.doubled,
        **truth,
        "locked": site.logged("database is locked"),
        "errors": len(record.errors),
        "first_errors": sorted(set(record.errors))[:5],
        "requests": timings(record, seconds),
    }


def show(result: dict[str, Any]) -> None:
    print(
        f"\n{result['run']}: {result['raters']} raters, {result['votes']:,} votes in "
        f"{result['seconds']} s: {result['votes_per_s']} votes/s, "
        f"{result['requests_per_s']} requests/s, {result['double_clicks']} double clicks"
    )
    print("  " + ", ".join(f"{name} {result[name]}" for name in BAD))
    show_requests(result["requests"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    parser.add_argument("--postgres", default=DATABASE_URL, help="a server to make a database on")
    parser.add_argument("--votes", type=int, help="instead of 5,000 and 1,000")
    parser.add_argument("--think", type=float, default=0.0, help="seconds of reading, on average")
    given = parser.parse_args()
    results = []
    if given.only != "sqlite":
        with Site(postgres=given.postgres, web_workers=2) as site:
            results.append(measure("PostgreSQL", site, 50, given.votes or 5000, given.think))
        show(results[-1])
    if given.only != "postgres":
        with Site() as site:
            results.append(measure("SQLite", site, 20, given.votes or 1000, given.think))
        show(results[-1])
    print(json.dumps(results, ensure_ascii=False))
    return int(any(result[name] for result in results for name in BAD))


if __name__ == "__main__":
    sys.exit(main())
