"""Making the answers of a round while the worker is killed: is every slot filled once?

    python -m bench.answering [--contestants 24] [--contexts 500] [--kills 2] [--postgres URL]

A real server answers on the loopback address; one request in five goes wrong: it streams, stalls,
drips, answers 429 with Retry-After, 500 and garbage, cuts connections, returns no choices, broken
UTF-8 or nothing. The worker runs as in the demo and is started again when it dies. Exit code 1
unless every slot holds one answer, the right one, or one recorded failure.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from typing import Any

from bench.site import Site
from tests.endpoints import Endpoint, nasty

LIMIT_S = 3600.0
PROMPTS = 20
BAD = (
    "waiting",
    "no_reason",
    "wrong_text",
    "twice",
    "counters_differ",
    "without_text_seal_or_cost",
)


def kill(site: Site) -> int:
    """kill -9 for every process of the worker. How many."""
    pids = site.pids("celery")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)


def answering(site: Site, contestants: int, contexts: int, kills: int) -> dict[str, Any]:
    site.env["OUTBOUND_ALLOW"] = "127.0.0.1"
    sizes = ("--contestants", contestants, "--personas", contexts // PROMPTS, "--prompts", PROMPTS)
    with Endpoint(nasty(1), stall=5.0) as server:
        made = site.ask_makers("make", server.url, *map(str, sizes))
        began = time.monotonic()
        site.start("worker", kept=True)
        site.start("beat", kept=True)
        killed = watch(site, server, made["wanted"], kills)
        took = time.monotonic() - began
        truth = site.ask_makers("check")
        return {
            **truth,
            "wanted": made["wanted"],
            "kills": killed,
            "seconds": round(took, 1),
            "asked": len(server.asked),
            "asked_again": len(server.asked) - truth["made"],
            "most_at_once": server.most,
            "behaved": dict(server.behaved),
            "locked": site.logged("database is locked"),
        }


def watch(site: Site, server: Endpoint, wanted: int, kills: int) -> int:
    """Kill at equal parts of the way, until the job says that it is done. Kills that hit."""
    killed, ends = 0, time.monotonic() + LIMIT_S
    while time.monotonic() < ends:
        if killed < kills and len(server.asked) > wanted * (killed + 1) // (kills + 1):
            killed += kill(site) > 0
        time.sleep(0.5)
        if server.now == 0 and killed == kills:
            if site.ask_makers("progress")["state"] == "done":
                break
            time.sleep(2.0)
    return killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contestants", type=int, default=24)
    parser.add_argument("--contexts", type=int, default=500, help="a multiple of 20")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--postgres", default="", help="a database that others are made beside")
    parser.add_argument("--redis", default="")
    given = parser.parse_args()
    with Site(postgres=given.postgres, redis=given.redis) as site:
        result = answering(site, given.contestants, given.contexts, given.kills)
    print(json.dumps(result))
    wrong = [name for name in BAD if result[name]]
    fine = result["slots"] == result["wanted"] and result["kills"] == given.kills
    return int(bool(wrong) or not fine)


if __name__ == "__main__":
    sys.exit(main())
