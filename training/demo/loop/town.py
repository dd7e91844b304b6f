"""Where the loop takes place: a workshop whose last corners nobody trains on. Pure.

Corners that datasets may hold come first; the others are for tastings, so that votes are cast on
questions and people that no model has met. What a good answer is, and who wants which form, is
known (`training.engine.toy.world`): the simulated people judge texts by it and make mistakes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from training.demo import world
from training.demo.world import Corner, Sizes
from training.engine.rundir import sha256_json
from training.engine.toy import world as toy

OBJECTS = (*toy.OBJECTS, "table", "door")
TASTINGS = 2  # rounds, each on corners of its own
EACH = 2  # corners of a round
NAMED = "loop"
RARE = 2  # of every object, at the least, among what is trained on
Row = dict[str, Any]

FULL = Sizes(forms=4, quality=180, personalization=80, swaps=50, defects=40)
SHORT = replace(world.SMALL, quality=24, personalization=24, swaps=8)


@dataclass(frozen=True)
class Town:
    """The corners that datasets hold, and those of each tasting."""

    trained: list[Corner]
    tastings: list[list[Corner]]


def town(seed: int) -> Town:
    """Everything follows from the seed."""
    found = world.corners(seed, OBJECTS, NAMED)
    known = len(found) - TASTINGS * EACH
    rest = found[known:]
    return Town(found[:known], [rest[i * EACH : (i + 1) * EACH] for i in range(TASTINGS)])


def teaches(chosen: list[Corner]) -> bool:
    """Whether these corners show every action often, and every object."""
    asked = [(ask.verb, ask.noun) for corner in chosen for ask in corner.asks if ask.asked == 0]
    verbs, nouns = [verb for verb, _ in asked], [noun for _, noun in asked]
    often = all(verbs.count(verb) >= world.OFTEN for verb in toy.TOOLS)
    return often and all(nouns.count(noun) >= RARE for noun in OBJECTS)


def pairs(corner: Corner, axis: str, sizes: Sizes, rng: random.Random, *, clean: bool) -> list[Row]:
    """Pairs that nobody has judged yet; `clean` ones measure reward models."""
    if axis == "quality":
        count = min(sizes.quality, 2 * sizes.swaps) if clean else sizes.quality
        rows = world.quality(corner, count, rng, clean=clean)
    else:
        count = 2 * sizes.swaps if clean else sizes.personalization
        rows = world.personalization(corner, count, rng, clean=clean)
    return [unjudged(row) for row in rows]


def unjudged(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("labels", "state")}


def distinct(rows: Iterable[Row]) -> list[Row]:
    """The same row twice is one."""
    return list({sha256_json(row): row for row in rows}.values())


def people(corners: list[Corner]) -> Iterator[world.Person]:
    for corner in corners:
        yield from corner.people


def questions(corners: list[Corner]) -> Iterator[str]:
    for corner in corners:
        for ask in corner.asks:
            yield ask.text


def worth(axis: str, summary: str, question: str, answer: str) -> float:
    """What an answer is worth to this person: 1 where it is right, or has the wanted form."""
    if axis == "quality":
        return toy.quality(question, answer)
    return float(toy.style_of(answer) == toy.wanted_style(summary) != "")


def opinion(axis: str, summary: str, question: str, texts: tuple[str, str]) -> str:
    """The verdict that the truth gives on a left and a right answer."""
    left, right = (worth(axis, summary, question, text) for text in texts)
    if left == right:
        return "tie" if left else "both_bad"
    return "left" if left > right else "right"
