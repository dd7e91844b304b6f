"""The endpoint rewriter against a real server that answers well, badly, late or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.conf import settings as site

from annotation.enums import JobState
from annotation.models import CounterfactualJob
from annotation.rewriting.rules import rewrite
from annotation.rewriting.styles import STEPWISE
from annotation.services import counterfactuals
from tests.annotation.factories import Desk
from tests.annotation.test_counterfactuals import made, rated
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
SECRET = "sk-very-secret-value"


@dataclass
class Server:
    """Answers from a list of (status, headers, body); the last one again and again."""

    answers: list[tuple[int, dict[str, str], Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    sent: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def next(self, asked: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        n = min(len(self.asked), len(self.answers) - 1)
        self.asked.append(asked)
        status, headers, body = self.answers[n]
        if callable(body):
            body = body(asked)
        return status, headers, body if isinstance(body, bytes) else json.dumps(body).encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            state.sent.append(dict(self.headers))
            status, headers, body = state.next(json.loads(self.rfile.read(length)))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{made.server_port}/v1"
    monkeypatch.setattr(site, "OUTBOUND_ALLOW", ["127.0.0.1"])
    monkeypatch.setenv("PALATE_KEY_TEST", SECRET)
    yield state
    made.shutdown()
    made.server_close()


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the job waited between tries; nobody really waits."""
    found: list[float] = []
    monkeypatch.setattr(counterfactuals._Work, "pause", lambda work, s: found.append(s))
    return found


def chat(text: str, reason: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"message": message, "finish_reason": reason}]}


def good(asked: dict[str, Any]) -> dict[str, Any]:
    """What a willing model would say: the rules do its work."""
    system, user = (turn["content"] for turn in asked["messages"])
    text = user.split("<answer>\n")[1].removesuffix("\n</answer>")
    return chat(rewrite(text, STEPWISE if "beginner" in system else "concise"))


def run(desk: Desk, server: Server, **options: Any) -> CounterfactualJob:
    job = counterfactuals.start_job(
        actor=desk.manager,
        project=desk.project,
        rewriter="endpoint",
        options={"url": server.url, "model": "tiny", "key": "PALATE_KEY_TEST", **options},
        key="",
        send=False,
    )
    done = counterfactuals.run_job(job.pk)
    assert done is not None
    return done


def test_a_willing_endpoint_makes_pairs(server: Server, waited: list[float]) -> None:
    desk = rated(2)
    server.answers = [(200, {}, good)]
    job = run(desk, server)
    assert (job.state, job.refused, len(made(desk))) == (JobState.DONE, 0, 4), job.report
    assert server.asked[0]["model"] == "tiny"
    assert [turn["role"] for turn in server.asked[0]["messages"]] == ["system", "user"]
    assert server.sent[0]["Authorization"] == f"Bearer {SECRET}"
    details = made(desk)[0].origin.details
    assert details["rewriter"] == "endpoint:tiny"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, {}, b"<html>oops"), "call_bad_json"),
        ((200, {}, b"\xff\xfe"), "call_bad_utf8"),
        ((200, {}, {"error": "no"}), "reply_shape"),
        ((200, {}, chat("")), "reply_blank"),
        ((200, {}, chat(" \n\t ")), "reply_blank"),
        ((200, {}, chat("Half a sen", "length")), "reply_cut"),
        ((200, {}, chat("Sorry, I cannot help with that request at all.")), "content_numbers"),
        ((401, {}, {"error": "key"}), "call_refused_by_server"),
        ((302, {"Location": "http://127.0.0.1/"}, b""), "call_redirect"),
        ((200, {}, b" " * (1024 * 1024 + 1)), "call_too_large"),
    ],
)
def test_a_failure_is_counted_and_never_becomes_an_answer(
    server: Server, waited: list[float], answer: Any, reason: str
) -> None:
    desk = rated(1)
    server.answers = [answer]
    job = run(desk, server)
    assert job.report["refusals"] == {reason: 1}
    assert not made(desk)


def test_a_server_that_asks_to_wait_is_obeyed(server: Server, waited: list[float]) -> None:
    desk = rated(1)
    busy = {"Retry-After": "7"}
    server.answers = [(429, busy, {}), (503, {}, {}), (200, {}, good)]
    job = run(desk, server)
    assert (job.refused, waited) == (0, [7.0, 2.0])
    assert len(server.asked) == 3


def test_a_server_that_asks_for_too_long_a_wait_is_left(
    server: Server, waited: list[float]
) -> None:
    desk = rated(1)
    server.answers = [(429, {"Retry-After": "3600"}, {})]
    assert run(desk, server).report["refusals"] == {"call_busy": 1}
    assert waited == []


def test_an_endpoint_that_keeps_failing_ends_the_job(server: Server, waited: list[float]) -> None:
    desk = rated(8)
    server.answers = [(500, {}, {})]
    job = run(desk, server)
    assert (job.state, job.report["failure"], job.done) == (JobState.FAILED, "endpoint", 5)
    assert job.report["refusals"] == {"call_server_error": 5}
    assert not made(desk)


def test_the_key_is_in_no_row_and_no_log(
    server: Server, waited: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    desk = rated(2)
    server.answers = [(500, {}, {"error": f"bad key {SECRET}"})]
    job = run(desk, server)
    told = [job.options, job.report, job.message]
    told += [event.details for event in Event.objects.all()]
    assert SECRET not in json.dumps(told)
    assert SECRET not in caplog.text


def test_without_a_key_nothing_is_sent(server: Server, waited: list[float]) -> None:
    desk = rated(1)
    server.answers = [(200, {}, good)]
    run(desk, server, key="")
    assert "Authorization" not in server.sent[0]
