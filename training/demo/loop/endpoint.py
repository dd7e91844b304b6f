"""A model behind an OpenAI-compatible endpoint on the loopback address: a rival of the policy."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from webapp.catalog.answering.checkpoint import CheckpointSource
from webapp.catalog.answering.protocol import AnswerError, Request
from webapp.catalog.models import Contestant

AT_ONCE = 8


class Endpoint:
    """`with Endpoint(place, port, sampling):` answers below `url`; port 0 is any free one."""

    def __init__(self, place: str, port: int, sampling: dict[str, Any]) -> None:
        kept = {"place": place, "at_once": AT_ONCE}
        contestant = Contestant(kind="checkpoint", endpoint=kept, sampling=sampling)
        self.source = CheckpointSource(contestant)
        source = self.source

        class Handler(_Handler):
            model = source

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> Endpoint:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.source.close()


class _Handler(BaseHTTPRequestHandler):
    model: CheckpointSource

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, body = self.answer(asked)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        try:
            made = self.model.answer(Request(asked["messages"]))
        except AnswerError as error:
            return 500, {"error": {"message": error.code}}
        usage = {"prompt_tokens": made.prompt_tokens, "completion_tokens": made.completion_tokens}
        choice = {"message": {"content": made.text}, "finish_reason": made.finish_reason}
        return 200, {"choices": [choice], "usage": usage}

    def log_message(self, *args: Any) -> None:
        """Silent."""
