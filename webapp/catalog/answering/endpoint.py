"""Answers from an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from webapp.catalog.answering.protocol import Final, Made, Request, TryAgain
from webapp.catalog.models import Contestant
from webapp.core.chat import BadReply, ChatEndpoint, complete
from webapp.core.outbound import OutboundError, Permanent, Retryable

EXPLAIN = 2048  # bytes of a refusal that are read, for whoever sets the endpoint up
SAID = 300  # characters of it that are shown
GARBLED = ("bad_json", "bad_utf8")
TIMEOUT, TIMEOUT_MOST, AT_ONCE = 120.0, 600.0, 4
TRIES, BUSY_TRIES, GARBLED_TRIES = 6, 40, 3
FINISH = {"stop": "stop", "length": "length"}


class EndpointSource:
    """One contestant's endpoint. What the model said is final; garbage is asked about again."""

    in_turn = False

    def __init__(self, contestant: Contestant, *, timeout: float | None = None) -> None:
        kept = contestant.endpoint
        wait = min(float(kept.get("timeout", TIMEOUT)), timeout or TIMEOUT_MOST)
        self.endpoint = ChatEndpoint(kept["url"], kept["model"], kept.get("key", ""), wait)
        self.lane = kept["url"]
        self.width = int(kept.get("at_once", AT_ONCE))
        self.sampling = dict(contestant.sampling)

    def answer(self, request: Request) -> Made:
        if self.endpoint.key and not os.environ.get(self.endpoint.key):
            raise Final("key_missing", blame=True)
        began = time.monotonic()
        try:
            reply = complete(
                self.endpoint,
                request.messages,
                options_for(self.sampling, request.draw),
                explain=EXPLAIN,
            )
        except BadReply as bad:
            if bad.code == "shape":
                raise TryAgain("reply_shape", tries=GARBLED_TRIES) from None
            raise Final(f"reply_{bad.code}") from None
        except Retryable as error:
            raise self._again(error) from None
        except Permanent as error:
            raise self._final(error) from None
        return Made(
            reply.text,
            FINISH.get(reply.finish_reason, ""),
            reply.prompt_tokens,
            reply.completion_tokens,
            round(1000 * (time.monotonic() - began)),
        )

    def _again(self, error: Retryable) -> TryAgain:
        return TryAgain(
            error.code,
            wait=error.retry_after,
            tries=BUSY_TRIES if error.code == "busy" else TRIES,
            http_status=error.http_status,
            said=self._said(error),
        )

    def _final(self, error: Permanent) -> Final | TryAgain:
        if error.code in GARBLED:
            return TryAgain(error.code, tries=GARBLED_TRIES, http_status=error.http_status)
        blame = error.code != "too_large"
        return Final(error.code, http_status=error.http_status, blame=blame, said=self._said(error))

    def _said(self, error: OutboundError) -> str:
        """The server's own words on one line, without the key, should it repeat it."""
        text = error.body.decode("utf-8", "replace")
        key = os.environ.get(self.endpoint.key, "") if self.endpoint.key else ""
        text = _message(text)
        if key:
            text = text.replace(key, "▇▇▇")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:SAID]

    def close(self) -> None:
        """Nothing is held between calls."""


def options_for(sampling: Mapping[str, Any], draw: int) -> dict[str, Any]:
    """Sampling settings as the endpoint takes them. A fixed seed moves on with each draw."""
    options = dict(sampling)
    if "seed" in options:
        options["seed"] += draw
    return options


def _message(text: str) -> str:
    """What stands in {"error": {"message": …}}, else the text as it is."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    error = said.get("error", said) if isinstance(said, dict) else said
    message = error.get("message", error) if isinstance(error, dict) else error
    return message if isinstance(message, str) else text
