"""Rounds of the blindness test whose answers are made here, by voices dealt to contestants.

A voice has its texts, its tokens, its speed, and one context in which it fails: all of it is dealt
with the texts, so that whatever a page told of it beside a name would differ between the worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from unittest import mock

from django.utils import timezone

from arena.models import Assignment, Round
from arena.services import screening, sealing
from tests.arena.factories import World, draft_round, make_prompt, vote_all
from tests.arena.makers import endpoint_contestant, finished, start
from webapp.catalog.answering.protocol import Final, Made, Request
from webapp.catalog.models import Contestant

NAMES = ("Lantern", "Orchard", "Willow")
FIXED = datetime(2030, 1, 1, tzinfo=UTC)  # however often a job looks at the clock


class Voices:
    """The source of every endpoint; one question at a time, so that ids come in the same order."""

    lane, width, in_turn = "voices", 1, False
    dealing: Sequence[int] = (0, 1, 2)

    def __init__(self, style: int) -> None:
        self.style = style

    @classmethod
    def source(cls, contestant: Contestant, *, timeout: float | None = None) -> Voices:
        return cls(cls.dealing[NAMES.index(contestant.name)])

    def answer(self, request: Request) -> Made:
        question = request.messages[-1]["content"]
        summary = request.messages[0]["content"]
        if f"fails {self.style}" in question and "persona-0" in summary:
            raise Final("reply_blank")
        said = f"{summary} asks: {question} " + "So it is. " * (1 + 3 * self.style)
        return Made(said, "stop", 10 + self.style, 100 + self.style, 1000 * (self.style + 1))

    def close(self) -> None:
        """Nothing is held."""


def made_here(
    world: World, dealing: Sequence[int], choose: Callable[[Assignment], dict[str, str]]
) -> list[Round]:
    """A draft whose answers are made, a screened round, and an open one with votes."""
    Voices.dealing = dealing
    imported, world.contestants = world.contestants, []
    world.contestants = [
        endpoint_contestant(world.admin, name, "https://example.org/v1", uses_persona=True)
        for name in NAMES
    ]
    draft, screened, opened = (_answered(world, n) for n in range(3))
    for round_ in (screened, opened):
        screening.start_screening(actor=world.admin, round_=round_)
        screening.screen_round(round_.pk)
        round_.refresh_from_db()
    opened = sealing.open_round(actor=world.admin, round_=opened)
    vote_all(opened, world.raters, choose, limit=4)
    world.contestants = imported
    return [draft, screened, opened]


def _answered(world: World, n: int) -> Round:
    """Each voice fails in one of the four contexts."""
    prompts = [make_prompt(f"Made {n}, fails 0, fails 1?"), make_prompt(f"Made {n}, fails 2?")]
    round_ = draft_round(
        world, name=f"Made {n}", prompts=[prompt.pk for prompt in prompts], planned_votes=6
    )
    job = start(world, round_, failure_limit=50)
    with mock.patch.object(timezone, "now", return_value=FIXED):
        job = finished(job)
    assert (job.made, job.failed) == (9, 3)
    return round_
