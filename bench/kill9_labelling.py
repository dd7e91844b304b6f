"""kill -9 of the web server and of the worker while people label: is anything lost?

    python -m bench.kill9_labelling [--kills 5] [--labels 60]

The processes run as in the demo: they are started again when they die. Annotators send a label
again when the connection breaks, as the page's script does. A webhook of the project listens
meanwhile: every label must have been told to it at least once, whatever died in between. Exit code
1 if a label was lost or doubled, a counter or an outcome is wrong, or an event was never told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from bench.annotators import Annotator
from bench.http_labelling import BAD, compare
from bench.site import Site
from bench.voters import Record

PEOPLE = 8
QUIET_S, LIMIT_S = 45.0, 240.0  # the repair task comes every 30 seconds


class Listener:
    """A receiver of webhooks that remembers which deliveries came, and how often."""

    def __init__(self) -> None:
        self.got: dict[str, int] = {}
        self.labels: set[str] = set()
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                listener.got[said["id"]] = listener.got.get(said["id"], 0) + 1
                if said["event"] == "label.submitted":
                    listener.labels.add(said["id"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/"


def kill(site: Site, word: str) -> int:
    pids = site.pids(word)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)


def labelling(site: Site, kills: int, labels: int) -> dict[str, Any]:
    listener = Listener()
    site.env["OUTBOUND_ALLOW"] = "127.0.0.1"
    world = site.ask_desk("make", "--people", str(PEOPLE), "--items", str(PEOPLE * labels))
    site.ask_desk("listen", str(world["project"]), listener.url)
    site.start("web", kept=True)
    site.start("worker", kept=True)
    site.start("beat", kept=True)
    record = Record()
    killed = asyncio.run(label_and_kill(site, record, world, kills, labels))
    truth = compare(site, record, world)
    told = wait_for_events(listener, truth["labels"])
    return {
        **killed,
        "resent": record.resent,
        **truth,
        "events_told": told,
        "events_lost": truth["labels"] - told,
        "events_again": sum(count > 1 for count in listener.got.values()),
    }


def wait_for_events(listener: Listener, wanted: int) -> int:
    """How many labels were told; waits while something still comes in."""
    started = changed = time.monotonic()
    seen = len(listener.labels)
    while len(listener.labels) < wanted and time.monotonic() - started < LIMIT_S:
        time.sleep(0.5)
        if len(listener.labels) != seen:
            seen, changed = len(listener.labels), time.monotonic()
        if time.monotonic() - changed > QUIET_S + 130:  # a dead job holds the webhook for 2 minutes
            break
    return len(listener.labels)


async def label_and_kill(
    site: Site, record: Record, world: dict[str, Any], kills: int, labels: int
) -> dict[str, int]:
    clients = [httpx.AsyncClient(base_url=site.address, timeout=30) for _name in world["people"]]
    people = [
        Annotator(
            client, record, world["project"], name, world["password"], 0.05, patience=90, think=0.1
        )
        for client, name in zip(clients, world["people"], strict=True)
    ]
    for person in people:
        await person.log_in()
    work = asyncio.gather(*(person.work(labels) for person in people), return_exceptions=True)
    killed = {"web_kills": 0, "worker_kills": 0}
    while not work.done() and killed["web_kills"] < kills:
        before = len(record.receipts)
        while not work.done() and len(record.receipts) < before + 25:
            await asyncio.sleep(0.05)
        if not work.done():
            killed["web_kills"] += kill(site, "granian") > 0
            killed["worker_kills"] += kill(site, "celery") > 0
    results = await work
    record.errors += [repr(result) for result in results if isinstance(result, BaseException)]
    for client in clients:
        await client.aclose()
    return killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--labels", type=int, default=40, help="of each of the 8 annotators")
    given = parser.parse_args()
    with Site() as site:
        result = labelling(site, given.kills, given.labels)
    print(json.dumps(result))
    return int(any(result[name] for name in (*BAD, "events_lost")))


if __name__ == "__main__":
    sys.exit(main())
