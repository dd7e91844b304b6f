"""Rewriters: rules, or a model behind an OpenAI-compatible endpoint. A failure is never an answer.

The key of an endpoint is the name of an environment variable that begins with PALATE_KEY_; the
value is read when it is used and never stored, logged or shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from annotation.enums import RewriterKind
from annotation.rewriting import requests, rules
from webapp.core.outbound import OutboundError, Permanent, Retryable, post_json

KEY_NAME = re.compile(r"PALATE_KEY_[A-Z0-9_]{1,60}")
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

    url: str
    model: str
    key: str
    pause: Pause
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, turns: Sequence[Mapping[str, str]], text: str, to: str) -> str:
        payload = {
            "model": self.model,
            "messages": requests.messages(turns, text, to),
            **self.options,
        }
        try:
            return requests.reply(self._post(payload))
        except requests.BadReplyError as bad:
            raise RewriteError(f"reply_{bad.code}", endpoint=bad.code == "shape") from None

    def _post(self, payload: dict[str, Any]) -> Any:
        """The decoded answer; tried again where the server asks for it or fails for a moment."""
        for n in range(TRIES):
            try:
                return post_json(
                    self.url, payload, headers=self._headers(), timeout=TIMEOUT_S
                ).json()
            except Retryable as error:
                if n == TRIES - 1:
                    raise RewriteError(_code(error), endpoint=True) from None
                wait = error.retry_after if error.retry_after is not None else 2.0**n
                if wait > LONGEST_PAUSE_S:
                    raise RewriteError(_code(error), endpoint=True) from None
                self.pause(wait)
            except Permanent as error:
                raise RewriteError(_code(error), endpoint=True) from None
        raise AssertionError

    def _headers(self) -> dict[str, str]:
        value = os.environ.get(self.key, "") if self.key else ""
        return {"Authorization": f"Bearer {value}"} if value else {}


def _code(error: OutboundError) -> str:
    return f"call_{error.code}"


def rewriter_of(kind: str, options: Mapping[str, Any], pause: Pause) -> Rewriter:
    if kind == RewriterKind.RULES:
        return by_rules
    return Endpoint(
        url=options["url"],
        model=options["model"],
        key=options.get("key", ""),
        pause=pause,
        options={"temperature": 0.3},
    )


def completions_url(base: str) -> str:
    """The address that is called: the base of an API, or its completions themselves."""
    base = base.strip().rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"
