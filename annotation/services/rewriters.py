"""Rewriters: rules, or a model behind an OpenAI-compatible endpoint. A failure is never an answer.

How endpoints are asked stands in `webapp.core.chat`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from annotation.enums import RewriterKind
from annotation.rewriting import requests, rules
from webapp.core.chat import BadReply, ChatEndpoint, Messages, complete
from webapp.core.outbound import OutboundError, Permanent, Retryable

TIMEOUT_S, TRIES, LONGEST_PAUSE_S = 60.0, 3, 60.0
Pause = Callable[[float], None]


class RewriteError(Exception):
    """No rewrite; `code` is the reason that is counted. `endpoint`: the endpoint is to blame."""

    def __init__(self, code: str, *, endpoint: bool = False) -> None:
        super().__init__(code)
        self.code, self.endpoint = code, endpoint


class Rewriter(Protocol):
    def __call__(self, turns: Sequence[Mapping[str, str]], text: str, to: str) -> str: ...


def by_rules(turns: Sequence[Mapping[str, str]], text: str, to: str) -> str:
    said = rules.rewrite(text, to)
    if not said.strip():
        raise RewriteError("rules")
    return said


@dataclass
class Endpoint:
    """Chat completions. `pause` waits and keeps the job alive meanwhile."""

    endpoint: ChatEndpoint
    pause: Pause
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, turns: Sequence[Mapping[str, str]], text: str, to: str) -> str:
        """Tried again where the server asks for it or fails for a moment."""
        asked = requests.messages(turns, text, to)
        for n in range(TRIES):
            try:
                return self._ask(asked)
            except Retryable as error:
                wait = error.retry_after if error.retry_after is not None else 2.0**n
                if n == TRIES - 1 or wait > LONGEST_PAUSE_S:
                    raise RewriteError(_code(error), endpoint=True) from None
                self.pause(wait)
            except Permanent as error:
                raise RewriteError(_code(error), endpoint=True) from None
        raise AssertionError

    def _ask(self, messages: Messages) -> str:
        try:
            reply = complete(self.endpoint, messages, self.options)
        except BadReply as bad:
            raise RewriteError(f"reply_{bad.code}", endpoint=bad.code == "shape") from None
        if reply.finish_reason == "length":
            raise RewriteError("reply_cut")
        return reply.text


def _code(error: OutboundError) -> str:
    return f"call_{error.code}"


def rewriter_of(kind: str, options: Mapping[str, Any], pause: Pause) -> Rewriter:
    if kind == RewriterKind.RULES:
        return by_rules
    endpoint = ChatEndpoint(options["url"], options["model"], options.get("key", ""), TIMEOUT_S)
    return Endpoint(endpoint, pause, {"temperature": 0.3})
