"""Chat completions: what counts as a reply, streams that nobody asked for, names of keys."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tests.core.test_outbound import Serve, answer
from tests.core.test_outbound import serve as serve
from webapp.core import chat
from webapp.core.chat import BadReply, ChatEndpoint, complete, read_reply
from webapp.core.errors import InvalidInput
from webapp.core.outbound import OutboundError, Permanent, Retryable

ASKED = [{"role": "user", "content": "Hello?"}]
SECRET = "sk-very-secret-value"


def body(text: Any, reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": reason}], **more}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({}, "shape"),
        ([], "shape"),
        ("text", "shape"),
        ({"choices": []}, "shape"),
        (body(None), "shape"),
        (body(" \n"), "blank"),
        (body("x", "content_filter"), "filtered"),
        (body("a\x00b"), "unstorable"),
        (body("a\ud83d"), "unstorable"),
        (body("a" * (chat.REPLY_LIMIT + 1)), "unstorable"),
    ],
)
def test_a_bad_reply_is_never_an_answer(said: object, code: str) -> None:
    with pytest.raises(BadReply) as error:
        read_reply(said)
    assert error.value.code == code


def test_text_reason_and_tokens_are_read() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": True}
    reply = read_reply(body(" Yes. \n", "length", usage=usage))
    assert reply == chat.Reply("Yes.", "length", 12, None)
    assert read_reply(body("Yes.", usage="none")).prompt_tokens is None


def stream(*parts: Any, end: str = "data: [DONE]\n\n") -> bytes:
    lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
    return ("".join(lines) + end).encode()


def delta(text: str, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def asked(serve: Serve, content: bytes, kind: str = "text/event-stream; charset=utf-8") -> Any:
    server = serve(answer("200 OK", content, f"Content-Type: {kind}"))
    return complete(ChatEndpoint(server.url("/v1/chat/completions"), "m"), ASKED)


def test_a_server_that_streams_all_the_same_is_understood(serve: Serve) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    reply = asked(serve, stream(delta("Grüß "), delta("dich"), delta("", "stop"), usage))
    assert reply == chat.Reply("Grüß dich", "stop", 3, 2)


def test_a_stream_that_breaks_off_is_tried_again(serve: Serve) -> None:
    with pytest.raises(Retryable) as error:
        asked(serve, stream(delta("half an ans"), end=""))
    assert error.value.code == "broken_answer"


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"data: {\xff}\n\n", "text/event-stream", "bad_utf8"),
        (b"data: {oops\n\n", "text/event-stream", "bad_json"),
        (b'{"choices": [{"message": {"content": "\xff"}}]}', "application/json", "bad_utf8"),
        (b"<html>busy</html>", "text/html", "bad_json"),
    ],
)
def test_garbage_is_named(serve: Serve, content: bytes, kind: str, code: str) -> None:
    with pytest.raises(Permanent) as error:
        asked(serve, content, kind)
    assert error.value.code == code


def test_the_key_is_read_when_it_is_used_and_told_to_nobody(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PALATE_KEY_TEST", SECRET)
    server = serve(answer("401 No", json.dumps({"error": {"message": "who?"}}).encode()))
    endpoint = ChatEndpoint(server.url(), "m", "PALATE_KEY_TEST")
    with caplog.at_level(logging.DEBUG), pytest.raises(OutboundError) as error:
        complete(endpoint, ASKED, explain=8)
    assert f"Authorization: Bearer {SECRET}".encode() in server.requests[0]
    assert error.value.body == b'{"error"'
    assert SECRET not in caplog.text + repr(error.value) + repr(endpoint)
    with pytest.raises(OutboundError) as silent:
        complete(endpoint, ASKED)
    assert silent.value.body == b""


def test_only_variables_of_ours_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_KEY", "PALATE_KEY", "palate_key_x", "XPALATE_KEY_A", "PALATE_KEY_A B"):
        monkeypatch.setenv(name, SECRET)
        assert not chat.authorization(name)
        with pytest.raises(InvalidInput) as error:
            chat.checked_endpoint("https://example.org/v1", "m", name)
        assert error.value.field == "key"
    monkeypatch.setenv("PALATE_KEY_A_1", SECRET)
    assert chat.authorization("PALATE_KEY_A_1") == {"Authorization": f"Bearer {SECRET}"}


def test_an_address_may_be_the_base_or_the_completions_themselves() -> None:
    for base in ("https://example.org/v1/", " https://example.org/v1/chat/completions "):
        found = chat.checked_endpoint(base, " m ", "")
        assert found == ChatEndpoint("https://example.org/v1/chat/completions", "m")
