"""The workshop: the toy world of the engine as files that the site imports. Pure.

Twelve corners, each with four things to do, asked in three ways by four people of its own. Nothing
is shared between corners, so that each goes into one split as a whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.engine.toy import world
from training.engine.toy.world import Ask

ACTIONS = 4  # of a corner
CATEGORY = "workshop"  # of all its prompts
OFTEN = 4  # of every action and object that training holds: rarer ones cannot be known elsewhere
SHARES = {"train": 66, "reward_model_gate": 9, "gate": 16, "edge": 9}  # 8, 1, 2 and 1 corners
NOISE, TIES, ALIKE = 0.05, 0.1, 0.7  # wrong labels; both good; only the defect differs
EXPERTISE = {"brief": "expert", "steps": "novice"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Rows a corner; `broken` is the share of broken answers among the instructions."""

    forms: int = 4  # good answers to each question of each person
    broken: float = 0.2
    quality: int = 300
    personalization: int = 100
    defects: int = 40  # counter-examples of each kind of defect
    swaps: int = 50  # clean pairs in both directions, where reward models are measured


DEMO = Sizes(quality=150)  # frozen in seconds
SMALL = Sizes(forms=1, quality=60, personalization=40, defects=8, swaps=20)


@dataclass(frozen=True)
class Person:
    name: str
    style: str
    summary: str

    def as_json(self) -> Row:
        features = {"expertise": EXPERTISE[self.style], "language": "en"}
        return {"pseudonym": self.name, "summary": self.summary, "features": features}


@dataclass(frozen=True)
class Corner:
    asks: tuple[Ask, ...]
    people: tuple[Person, ...]


def corners(
    seed: int = 1, objects: Sequence[str] = world.OBJECTS, named: str = CATEGORY
) -> list[Corner]:
    """The whole workshop: every action with every object once, so that no corner is special.

    Two corners an object; `named` is how the pseudonyms of its people begin.
    """
    rng = random.Random(seed)  # noqa: S311 - chance with a seed, no secrets
    verbs, nouns = list(world.TOOLS), list(objects)
    rng.shuffle(verbs)
    rng.shuffle(nouns)
    found = []
    for number in range(len(nouns) * len(verbs) // ACTIONS):
        turn, half = divmod(number, len(verbs) // ACTIONS)
        mine = verbs[half * ACTIONS : (half + 1) * ACTIONS]
        pairs = [(verb, nouns[(i + turn) % len(nouns)]) for i, verb in enumerate(mine)]
        people = [
            Person(f"{named}-{number + 1:02}-{style}-{i + 1}", style, summary)
            for style, summaries in world.PERSONAS.items()
            for i, summary in enumerate(summaries)
        ]
        found.append(Corner(tuple(world.asks(pairs)), tuple(people)))
    return found


def teaches_all(chosen: list[Corner]) -> bool:
    """Whether these corners, as training data, show every action and object often enough."""
    seen: Counter[str] = Counter()
    for corner in chosen:
        for verb, noun in {(ask.verb, ask.noun) for ask in corner.asks}:
            seen.update((verb, noun))
    return all(seen[word] >= OFTEN for word in (*world.TOOLS, *world.OBJECTS))


def instructions(corner: Corner, sizes: Sizes, rng: random.Random) -> Iterator[Row]:
    """Answers whose style has nothing to do with who asks: that is what reward must teach."""
    forms = [(style, form) for style, texts in world.FORMS.items() for form in range(len(texts))]
    for ask in corner.asks:
        for person in corner.people:
            for style, form in rng.sample(forms, sizes.forms):
                yield _told(ask, person, world.good(ask, style, rng, form))
                if rng.random() < sizes.broken / (1 - sizes.broken):
                    yield _told(ask, person, world.broken(ask, style, rng))


def _told(ask: Ask, person: Person, answer: str) -> Row:
    return {**_asked(ask), "completion": answer, "persona": person.as_json()}


def _asked(ask: Ask) -> Row:
    return {"prompt": ask.text, "language": "en", "category": CATEGORY}


def quality(corner: Corner, n: int, rng: random.Random, *, clean: bool) -> Iterator[Row]:
    """A good and a broken answer; while training, some wrong labels and some ties."""
    for _ in range(n):
        ask, style, form = rng.choice(corner.asks), rng.choice(list(world.FORMS)), rng.randrange(2)
        if not clean and rng.random() < TIES:
            styles = rng.sample(list(world.FORMS), 2)  # so that quality means no style
            better, worse = (world.good(ask, name, rng) for name in styles)
        else:
            better = world.good(ask, style, rng, form)
            worse = world.broken(ask, style, rng, form if rng.random() < ALIKE else None)
        if not clean and rng.random() < NOISE:
            better, worse = worse, better
        yield _pair(ask, None, better, worse, "quality", rng)


def personalization(corner: Corner, n: int, rng: random.Random, *, clean: bool) -> Iterator[Row]:
    """The same two answers for two people who want the opposite; some of both are broken alike."""
    brief, steps = (
        [person for person in corner.people if person.style == style] for style in world.PERSONAS
    )
    for _ in range(n // 2):
        ask = rng.choice(corner.asks)
        whole = clean or rng.random() < 0.75
        make = world.good if whole else rng.choice(list(world.DEFECTS.values()))
        texts = {style: make(ask, style, rng, None) for style in world.PERSONAS}
        for person in (rng.choice(brief), rng.choice(steps)):
            better, worse = texts[person.style], texts[world.OTHER[person.style]]
            if not clean and rng.random() < NOISE:
                better, worse = worse, better
            yield _pair(ask, person, better, worse, "personalization", rng)


def _pair(
    ask: Ask, person: Person | None, better: str, worse: str, axis: str, rng: random.Random
) -> Row:
    """As a file of judged pairs has it; which one stands first says nothing."""
    first = rng.random() < 0.5
    texts = (better, worse) if first else (worse, better)
    label = {"annotator": "workshop", "verdicts": {axis: "first" if first else "second"}}
    row = {**_asked(ask), "first": {"text": texts[0]}, "second": {"text": texts[1]}}
    persona: Mapping[str, Any] = {"persona": person.as_json()} if person else {}
    return {**row, **persona, "state": "open", "labels": [label]}


def defects(corner: Corner, each: int, rng: random.Random) -> Iterator[Row]:
    """Broken answers by kind of defect, each beside the good one."""
    for name, breaks in world.DEFECTS.items():
        for _ in range(each):
            ask, style, form = rng.choice(corner.asks), rng.choice(list(world.FORMS)), None
            bad, good = breaks(ask, style, rng, form), world.good(ask, style, rng, form)
            if bad != good:
                yield {**_asked(ask), "answer": bad, "better": good, "reason": name}
