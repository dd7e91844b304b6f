"""A real OpenAI-compatible server on the loopback address that behaves well, badly, or not at all.

    with Endpoint(plan) as server: server.url …

`plan(n, asked)` names what happens to the n-th request (from 0): one of BEHAVIOURS. It also runs by
itself, for trials across processes: `python -m tests.endpoints PORT SEED`.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Asked = dict[str, Any]
Plan = Callable[[int, Asked], str]
STALL_S = 30.0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))
        behaviour = self.server.endpoint.note(asked, dict(self.headers))
        self.close_connection = True
        try:
            BEHAVIOURS[behaviour](self, asked)
        except OSError:
            pass
        finally:
            self.server.endpoint.done()

    def send(self, status: int, body: bytes, kind: str = "application/json", **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Silent."""


def reply_to(asked: Asked) -> str:
    """A text of its own for every conversation and model; says whether a persona was seen."""
    said = json.dumps(asked["messages"], sort_keys=True) + asked.get("model", "")
    system = asked["messages"][0]["content"] if asked["messages"][0]["role"] == "system" else ""
    return f"An answer ({hashlib.sha256(said.encode()).hexdigest()[:16]}). {system}".strip()


def completion(text: Any, reason: str = "stop") -> bytes:
    return json.dumps(
        {
            "choices": [{"message": {"content": text}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 21, "completion_tokens": 7},
        }
    ).encode()


def good(handler: Handler, asked: Asked) -> None:
    time.sleep(handler.server.endpoint.delay)
    handler.send(200, completion(reply_to(asked)))


def cut_short(handler: Handler, asked: Asked) -> None:
    handler.send(200, completion(reply_to(asked), "length"))


def streams(handler: Handler, asked: Asked) -> None:
    """Server-sent events in pieces, although nobody asked for them."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for word in (*reply_to(asked).split(" "), None):
        delta = {"content": f"{word} "} if word is not None else {}
        choice = {"index": 0, "delta": delta, "finish_reason": None if word else "stop"}
        _chunk(handler, f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
    _chunk(handler, b"data: [DONE]\n\n")
    _chunk(handler, b"")


def _chunk(handler: Handler, data: bytes) -> None:
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def stalls(handler: Handler, asked: Asked) -> None:
    """Takes the question and says nothing."""
    handler.server.endpoint.closed.wait(handler.server.endpoint.stall)


def drips(handler: Handler, asked: Asked) -> None:
    """One byte at a time, for ever: no single read takes long."""
    handler.send_response(200)
    handler.end_headers()
    ends = time.monotonic() + handler.server.endpoint.stall
    while time.monotonic() < ends:
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def busy(handler: Handler, asked: Asked) -> None:
    handler.server.endpoint.told_busy()
    handler.send(429, b'{"error": {"message": "slow down"}}', Retry_After="1")


def broken(handler: Handler, asked: Asked) -> None:
    handler.send(500, b"oops")


def garbage(handler: Handler, asked: Asked) -> None:
    handler.send(200, b"<html>It works!</html>", "text/html")


def bad_utf8(handler: Handler, asked: Asked) -> None:
    handler.send(200, completion("x").replace(b'"x"', b'"\xff\xfe"'))


def no_choices(handler: Handler, asked: Asked) -> None:
    handler.send(200, b'{"choices": []}')


def blank(handler: Handler, asked: Asked) -> None:
    handler.send(200, completion(" \n"))


def refuses(handler: Handler, asked: Asked) -> None:
    said = f"bad key {handler.headers.get('Authorization', '')}"
    handler.send(401, json.dumps({"error": {"message": said}}).encode())


def too_long(handler: Handler, asked: Asked) -> None:
    handler.send(400, b'{"error": {"message": "context length exceeded"}}')


def redirects(handler: Handler, asked: Asked) -> None:
    handler.send(307, b"", Location=f"{handler.server.endpoint.url}/elsewhere")


def cuts(handler: Handler, asked: Asked) -> None:
    """Half of what was announced, then a reset."""
    body = completion(reply_to(asked))
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.wfile.flush()
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()


BEHAVIOURS: dict[str, Callable[[Handler, Asked], None]] = {
    action.__name__: action
    for action in (
        good, cut_short, streams, stalls, drips, busy, broken, garbage, bad_utf8, no_choices, blank,
        refuses, too_long, redirects, cuts,
    )
}  # fmt: skip


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    endpoint: Endpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients leave; that is nothing to print."""


class Endpoint:
    """The server and what it saw: requests, headers, the most at once, times of "busy"."""

    def __init__(
        self, plan: Plan | None = None, *, port: int = 0, delay: float = 0.0, stall: float = STALL_S
    ) -> None:
        self.plan = plan or (lambda n, asked: "good")
        self.delay, self.stall = delay, stall
        self.asked: list[Asked] = []
        self.headers: list[dict[str, str]] = []
        self.at: list[float] = []
        self.busy_at: list[float] = []
        self.behaved: Counter[str] = Counter()
        self.now, self.most = 0, 0
        self.lock, self.closed = threading.Lock(), threading.Event()
        self.server = _Server(("127.0.0.1", port), Handler)
        self.server.endpoint = self
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def note(self, asked: Asked, headers: dict[str, str]) -> str:
        with self.lock:
            behaviour = self.plan(len(self.asked), asked)
            self.asked.append(asked)
            self.headers.append(headers)
            self.at.append(time.monotonic())
            self.behaved[behaviour] += 1
            self.now += 1
            self.most = max(self.most, self.now)
        return behaviour

    def told_busy(self) -> None:
        self.busy_at.append(time.monotonic())

    def done(self) -> None:
        with self.lock:
            self.now -= 1

    def __enter__(self) -> Endpoint:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()


def nasty(seed: int, share: float = 0.2) -> Plan:
    """One request in five goes wrong in some way, the same ways every time for one seed."""
    wrong = [name for name in BEHAVIOURS if name not in ("good", "refuses", "redirects")]

    def plan(n: int, asked: Asked) -> str:
        chance = random.Random(f"{seed}:{n}")
        return chance.choice(wrong) if chance.random() < share else "good"

    return plan


def main() -> None:
    port, seed = int(sys.argv[1]), int(sys.argv[2])
    with Endpoint(nasty(seed), port=port, stall=5.0) as server:
        print(server.url, flush=True)
        sys.stdin.read()
        print(json.dumps({"behaved": server.behaved, "most": server.most}), flush=True)


if __name__ == "__main__":
    main()
