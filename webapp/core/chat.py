"""Chat completions of an OpenAI-compatible endpoint: address, key, request, reply.

The key is named by an environment variable that begins with PALATE_KEY_; the value is read when it
is used and never stored, logged or shown. Calls go through `outbound`, with its guards and its two
kinds of errors.

    complete(ChatEndpoint("https://example.org/v1/chat/completions", "m", "PALATE_KEY_X"), messages)

A reply that is no answer raises `BadReply`. Servers that stream although they were not asked to are
understood too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from webapp.core.errors import InvalidInput
from webapp.core.outbound import OutboundError, Permanent, Response, Retryable, check_url, post_json

KEY_NAME = re.compile(r"PALATE_KEY_[A-Z0-9_]{1,60}")
REPLY_LIMIT = 100_000  # characters
MODEL_LIMIT = 200
Messages = Sequence[Mapping[str, str]]


class BadReply(Exception):
    """An answer of the server that holds no usable text; `code` says why: shape (no choices, no
    text), blank, filtered (by the endpoint), unstorable (no database keeps it, or too long).
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Reply:
    """What the model said. Numbers of tokens are the server's, None where it gives none."""

    text: str
    finish_reason: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class ChatEndpoint:
    """Where to ask. `key` is the name of an environment variable, or empty."""

    url: str
    model: str
    key: str = ""
    timeout: float = 60.0  # seconds for everything together


def completions_url(base: str) -> str:
    """The address that is called: the base of an API, or its completions themselves."""
    base = base.strip().rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"


def checked_endpoint(url: str, model: str, key: str) -> ChatEndpoint:
    """The endpoint as it is kept. Raises InvalidInput naming the field: url, model or key.

    Nothing is resolved or called; a name that leads to a private address is refused by the call.
    """
    address, model, key = completions_url(url), model.strip(), key.strip()
    try:
        check_url(address)
    except OutboundError as error:
        raise InvalidInput(str(error), field="url", code=error.code) from None
    if not model or len(model) > MODEL_LIMIT:
        raise InvalidInput(_("Name the model that the endpoint shall use."), field="model")
    if key and not KEY_NAME.fullmatch(key):
        raise InvalidInput(
            _("The name of a variable that begins with PALATE_KEY_, not the key itself."),
            field="key",
        )
    if key and not os.environ.get(key):
        raise InvalidInput(
            _("The server has no variable of this name. Whoever runs it can set it."), field="key"
        )
    return ChatEndpoint(address, model, key)


def authorization(key: str) -> dict[str, str]:
    """The header for the key in this variable; none without a key or a value."""
    value = os.environ.get(key, "") if KEY_NAME.fullmatch(key) else ""
    return {"Authorization": f"Bearer {value}"} if value else {}


def complete(
    endpoint: ChatEndpoint,
    messages: Messages,
    options: Mapping[str, Any] | None = None,
    *,
    explain: int = 0,
) -> Reply:
    """Ask once. Raises outbound's Permanent or Retryable, or BadReply.

    `explain`: so many bytes of a refusal's body are kept in the error, to be shown to whoever sets
    the endpoint up.
    """
    answer = post_json(
        endpoint.url,
        {"model": endpoint.model, "messages": list(messages), **(options or {})},
        headers=authorization(endpoint.key),
        timeout=endpoint.timeout,
        explain=explain,
    )
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return read_reply(_joined(answer))
    return read_reply(answer.json())


def read_reply(body: Any) -> Reply:
    """The text of a chat completion. Raises BadReply; an empty answer is never one."""
    try:
        choice = body["choices"][0]
        said = choice["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise BadReply("shape") from None
    if not isinstance(said, str):
        raise BadReply("shape")
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise BadReply("filtered")
    said = said.strip()
    if not said:
        raise BadReply("blank")
    if len(said) > REPLY_LIMIT or "\x00" in said or said != said.encode("utf-8", "ignore").decode():
        raise BadReply("unstorable")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Reply(
        said,
        reason if isinstance(reason, str) else "",
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def _count(value: Any) -> int | None:
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if fine else None


def _joined(answer: Response) -> dict[str, Any]:
    """A stream of events as the one completion that it stands for.

    Raises Retryable where it ends before the model did.
    """
    said, reason, usage, ended = "", None, None, False
    for data in _events(answer):
        if data == "[DONE]":
            ended = True
            break
        part = _parsed(data)
        usage = part.get("usage") or usage
        for choice in _first_choice(part):
            delta = choice.get("delta")
            content = delta.get("content") if isinstance(delta, dict) else None
            said += content if isinstance(content, str) else ""
            reason = choice.get("finish_reason") or reason
    if not (ended or reason):
        raise Retryable("broken_answer", answer.status)
    return {
        "choices": [{"message": {"content": said}, "finish_reason": reason}],
        "usage": usage,
    }


def _events(answer: Response) -> Iterator[str]:
    try:
        text = answer.body.decode("utf-8")
    except UnicodeDecodeError:
        raise Permanent("bad_utf8", answer.status) from None
    for line in re.split(r"\r\n|\n|\r", text):
        if line.startswith("data:"):
            yield line.removeprefix("data:").strip()


def _parsed(data: str) -> dict[str, Any]:
    try:
        part = json.loads(data)
    except (ValueError, RecursionError):
        raise Permanent("bad_json") from None
    if not isinstance(part, dict):
        raise BadReply("shape")
    return part


def _first_choice(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The first of the answers that were asked for; a part without choices tells numbers only."""
    choices = part.get("choices")
    found = choices if isinstance(choices, list) else []
    return [c for c in found[:1] if isinstance(c, dict) and not c.get("index")]
