"""The household: everyday questions for a real small model, as files that the site imports. Pure.

Fourteen rooms of eight questions, each room with four people of its own: two experts who want one
short sentence, two beginners who want every step. No two people say so in the same words, so that
whoever is held out speaks in words that no model was trained on. Nothing is shared between rooms:
each goes into one split as a whole, and the last ones are for tastings alone.

What a right answer must name is a rule, and so is its length: no reward model is needed.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.demo.household_words import BEGINNER, EXPERT, ROOMS
from training.demo.world import Person
from training.engine.contracts import Rollout, Task
from training.engine.rewards.units import contains, units
from training.engine.rewards.verifier import SAID, detail

CATEGORY = "household"
# Who asks which question. The last two hang both halves of a room together: it is never parted.
ASKING = (*((0, 1), (2, 3)) * 3, (0, 3), (2, 1))
TASTED = 2  # rooms of tastings, in no dataset
EACH = 2  # people of each kind in a room
WANTED: Mapping[str, tuple[int, int]] = {"brief": (0, 20), "steps": (25, 0)}  # words
SHARES = {"train": 50, "reward_model_gate": 8, "gate": 33, "edge": 9}  # 6, 1, 4 and 1 rooms
WORDINGS = {"brief": EXPERT, "steps": BEGINNER}
STYLES = {text: style for style, texts in WORDINGS.items() for text in texts}
BABBLE = 0.25  # of the words that differ; fewer are the same word again and again
ENGLISH = 0.9  # of the characters that English is written in
CLOSE = 0.15  # detail that two answers may differ by and still suit alike
Row = dict[str, Any]

# A short and a long right answer to every question; columns are named like the people's styles.
ANSWERS_FILE = Path(__file__).with_name("household_answers.tsv")
WRONG = (
    "What a good question, many people ask this.",
    "It depends on a lot of things, and nobody can say.",
    "Sorry, that is nothing I can help with today.",
)


@dataclass(frozen=True)
class Room:
    name: str
    questions: Mapping[str, str]  # → the word that an answer must name
    people: tuple[Person, ...]  # an expert and a beginner by turns

    def asked(self) -> Iterator[tuple[str, str, Person]]:
        """Every question under one expert and one beginner, who stand together."""
        for pair, (question, word) in zip(ASKING, self.questions.items(), strict=True):
            for number in pair:
                yield question, word, self.people[number]


def rooms(seed: int = 1, named: str = CATEGORY) -> list[Room]:
    """All of them, those of tastings last; who lives where follows from the seed."""
    rng = random.Random(f"household {seed}")  # noqa: S311 - chance with a seed, no secrets
    names = list(ROOMS)
    rng.shuffle(names)
    said = {style: rng.sample(texts, len(texts)) for style, texts in WORDINGS.items()}
    found = []
    for number, name in enumerate(names):
        people = [
            Person(
                f"{named}-{number + 1:02}-{style}-{i + 1}", style, said[style][EACH * number + i]
            )
            for i in range(EACH)
            for style in WANTED
        ]
        found.append(Room(name, ROOMS[name], tuple(people)))
    return found


def divided(seed: int = 1, named: str = CATEGORY) -> tuple[list[Room], list[Room]]:
    """The rooms that datasets hold, and those of tastings."""
    found = rooms(seed, named)
    return found[:-TASTED], found[-TASTED:]


def task(word: str, person: Person) -> Row:
    """What this person wants of an answer to this question."""
    return {"entities": [word], "words": list(WANTED[person.style])}


def answers() -> dict[str, dict[str, str]]:
    """Question → style → a right answer of the length that this style wants."""
    with ANSWERS_FILE.open(encoding="utf-8", newline="") as lines:
        return {
            row.pop("question"): row
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        }


def instructions(chosen: Sequence[Room], category: str = CATEGORY) -> Iterator[Row]:
    """Short and long answers for everybody alike: length has nothing to do with who asks."""
    known = answers()
    for room in chosen:
        for question, word, person in room.asked():
            for style in WANTED:
                row = _asked(question, category) | {"persona": person.as_json()}
                yield row | {"completion": known[question][style], "task": task(word, person)}


def wrong_answers(chosen: Sequence[Room], category: str = CATEGORY) -> Iterator[Row]:
    """Answers that say nothing, beside right ones: rules are proved on them."""
    known = answers()
    for room in chosen:
        for number, (question, word, person) in enumerate(room.asked()):
            row = _asked(question, category) | {"persona": person.as_json()}
            better = known[question][person.style]
            row |= {"answer": WRONG[number % len(WRONG)], "better": better}
            yield row | {"reason": "says nothing", "task": task(word, person)}


def _asked(question: str, category: str) -> Row:
    return {"prompt": question, "language": "en", "category": category}


WORDS = {question: word for found in ROOMS.values() for question, word in found.items()}


def readable(text: str) -> bool:
    """English that is no babble: several words, most of them different, in plain letters."""
    words = units(text)
    if len(words) < SAID or len(set(words)) < BABBLE * len(words):
        return False
    letters = sum(c.isascii() and (c.isalpha() or c.isspace()) for c in text)
    return letters >= ENGLISH * sum(not _punctuation(c) for c in text)


def _punctuation(character: str) -> bool:
    return not (character.isalpha() or character.isspace())


def worth(axis: str, summary: str, question: str, answer: str) -> float:
    """What an answer is worth, from its text alone: 1 is best.

    Quality: readable, and the needed word is named. Personalization: the length that this person
    wants. Questions and summaries are those of this household; raises KeyError for others.
    """
    if axis == "quality":
        return float(readable(answer) and contains(answer, WORDS[question]))
    wanted = Task(words=WANTED[STYLES[summary]])
    return detail(wanted, Rollout((), answer)) if readable(answer) else 0.0


def opinion(axis: str, summary: str, question: str, texts: tuple[str, str]) -> str:
    """The verdict that the truth gives on a left and a right answer."""
    left, right = (worth(axis, summary, question, text) for text in texts)
    if abs(left - right) <= CLOSE:
        return "tie" if max(left, right) >= 0.5 else "both_bad"
    return "left" if left > right else "right"
