"""Which source answers for a kind of contestant."""

from __future__ import annotations

from typing import Protocol

from webapp.catalog.answering.checkpoint import CheckpointSource
from webapp.catalog.answering.endpoint import EndpointSource
from webapp.catalog.answering.protocol import AnswerSource
from webapp.catalog.enums import ContestantKind
from webapp.catalog.models import Contestant


class MakeSource(Protocol):
    def __call__(self, contestant: Contestant, *, timeout: float | None = None) -> AnswerSource: ...


SOURCES: dict[str, MakeSource] = {
    ContestantKind.ENDPOINT: EndpointSource,
    ContestantKind.CHECKPOINT: CheckpointSource,
}


def source_of(contestant: Contestant, *, timeout: float | None = None) -> AnswerSource:
    """The contestant's source; it may be unsaved. Nothing is called or loaded yet.

    `timeout`: seconds that an answer may take, if less than the contestant's own.
    """
    return SOURCES[contestant.kind](contestant, timeout=timeout)
