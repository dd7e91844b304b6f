"""Who is asked at once, and when again: lanes of an answer job, and pauses. Reads no database."""

from __future__ import annotations

import hashlib
import random
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from arena.models import WantedAnswer
from webapp.catalog.answering.messages import messages_for
from webapp.catalog.answering.protocol import AnswerSource, Request
from webapp.catalog.models import Contestant
from webapp.core.holding import Places

LONGEST_BACKOFF_S = 60.0


@dataclass
class Lane:
    """Contestants that share one limit: an endpoint, or the place where models are loaded."""

    name: str
    places: Places
    in_turn: bool
    makers: list[int]
    queue: deque[WantedAnswer] = field(default_factory=deque)
    asked: int = 0  # questions on their way, or answered and not written yet
    loaded: int = 0  # the contestant in turn
    paused_until: float = 0.0  # by the monotonic clock
    looked_at: float = 0.0
    troubles: int = 0  # in a row: no connection, no place


def lanes_of(sources: Mapping[int, AnswerSource], pauses: Mapping[str, str]) -> list[Lane]:
    """Contestants by what they share. The narrowest of them sets the width."""
    found: dict[str, Lane] = {}
    for pk, source in sorted(sources.items()):
        name = hashlib.sha256(source.lane.encode()).hexdigest()[:16]
        lane = found.get(name)
        if lane is None:
            places = Places(f"lane-{name}", source.width)
            lane = found[name] = Lane(name, places, source.in_turn, [])
            lane.paused_until = time.monotonic() + _seconds_until(pauses.get(name))
        lane.makers.append(pk)
        lane.places.width = min(lane.places.width, source.width)
    return list(found.values())


def _seconds_until(text: str | None) -> float:
    return (datetime.fromisoformat(text) - timezone.now()).total_seconds() if text else 0.0


def backoff(tries: int) -> float:
    """Seconds to wait after so many tries: doubling from one, shaken, at most a minute."""
    most = min(2.0 ** (tries - 1), LONGEST_BACKOFF_S)
    return most * random.uniform(0.5, 1.0)  # noqa: S311 - so that calls part ways


def summary_of(row: WantedAnswer) -> str | None:
    """The persona summary of the context, empty for a bare prompt; None where it was erased."""
    version = row.context.persona_version
    if version is None:
        return ""
    if version.persona.withdrawn_at is not None or not hasattr(version, "text"):
        return None
    return version.text.summary


def request_for(maker: Contestant, row: WantedAnswer, summary: str) -> Request:
    turns = row.context.prompt.messages
    asked = messages_for(maker.system_prompt, maker.uses_persona, turns, summary)
    return Request(asked, row.draw)
