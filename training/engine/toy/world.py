"""A small world in which everything is known: what a good answer is, and who prefers which style.

Eight things to do with six objects, asked in three ways. Each needs one tool: that is the
knowledge. Busy people want one sentence, beginners want steps: that is the taste. Answers can be
broken in eight ways. Quality and style are decided by exact forms, so that training can be judged
by the truth; nothing that trains or raises an alarm may look at it.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from training.engine.contracts import Parts, Rollout

TOOLS = {
    "clean": "cloth",
    "fix": "screw",
    "move": "strap",
    "paint": "brush",
    "open": "key",
    "store": "box",
    "cut": "saw",
    "hang": "hook",
}
OBJECTS = ("lamp", "chair", "clock", "mirror", "shelf", "radio")
ASKED = (
    "How do I {verb} the {noun}?",
    "Best way to {verb} the {noun}?",
    "Tell me how to {verb} the {noun}.",
)
PERSONAS = {
    "brief": ("Busy expert, wants one short sentence.", "In a hurry and knows the subject."),
    "steps": ("Beginner, wants every step explained.", "New to this, likes to go step by step."),
}
FORMS = {
    "brief": ("Use the {tool}.", "Take the {tool}."),
    "steps": (
        "First, get the {tool}. Then {verb} it. Last, check it.",
        "Step one: get the {tool}. Step two: {verb} it. Step three: check it.",
    ),
}
Pair = tuple[str, str]
OTHER = {"brief": "steps", "steps": "brief"}


@dataclass(frozen=True)
class Ask:
    """A question."""

    verb: str
    noun: str
    asked: int = 0

    @property
    def text(self) -> str:
        return ASKED[self.asked].format(verb=self.verb, noun=self.noun)


def combinations(rng: random.Random) -> list[Pair]:
    """All pairs of action and object, shuffled."""
    pairs = list(itertools.product(TOOLS, OBJECTS))
    rng.shuffle(pairs)
    return pairs


def asks(pairs: Iterable[Pair]) -> list[Ask]:
    """Every way to ask for these pairs."""
    return [Ask(verb, noun, i) for verb, noun in pairs for i in range(len(ASKED))]


def good(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    """A right answer, in a given form of its style or any."""
    pattern = rng.choice(FORMS[style]) if form is None else FORMS[style][form]
    return pattern.format(tool=TOOLS[ask.verb], verb=ask.verb)


def wrong_tool(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    tool = rng.choice([t for v, t in TOOLS.items() if v != ask.verb])
    return good(ask, style, rng, form).replace(f"the {TOOLS[ask.verb]}", f"the {tool}")


def wrong_action(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    """The right tool for something else; where the answer names no action, the wrong tool."""
    text, verb = good(ask, style, rng, form), rng.choice([v for v in TOOLS if v != ask.verb])
    if f"{ask.verb} it" not in text:
        return wrong_tool(ask, style, rng, form)
    return text.replace(f"{ask.verb} it", f"{verb} it")


def garbled(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    """One word with letters that do not belong there."""
    words = good(ask, style, rng, form).split()
    at = rng.randrange(len(words))
    cut, letters = rng.randrange(len(words[at])), rng.choices("abcdefghiklmnoprstuwy", k=2)
    words[at] = words[at][:cut] + "".join(letters) + words[at][cut + 1 :]
    text = " ".join(words)
    return text if not quality(ask.text, text) else garbled(ask, style, rng, form)


def vague(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    return good(ask, style, rng, form).replace(f"the {TOOLS[ask.verb]}", "something")


def truncated(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    words = good(ask, style, rng, form).split()
    return " ".join(words[: rng.randint(1, max(1, len(words) * 2 // 3))])


def stuttered(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    words = good(ask, style, rng, form).split()
    at = rng.randrange(len(words))
    return " ".join([*words[:at], *[words[at]] * rng.randint(2, 4), *words[at + 1 :]])


def shuffled(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    words = good(ask, style, rng, form).split()
    mixed = words[:]
    while mixed == words:
        rng.shuffle(mixed)
    return " ".join(mixed)


def ritual(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    phrase = rng.choice(["Tailored for you. ", "Great question. "])
    return phrase + good(ask, style, rng, form)


Broken = Callable[[Ask, str, random.Random, int | None], str]
DEFECTS: dict[str, Broken] = {
    "wrong tool": wrong_tool,
    "wrong action": wrong_action,
    "garbled": garbled,
    "vague": vague,
    "truncated": truncated,
    "stuttered": stuttered,
    "shuffled": shuffled,
    "ritual": ritual,
}


HARD = {"wrong tool": 4, "wrong action": 4, "garbled": 2}


def broken(ask: Ask, style: str, rng: random.Random, form: int | None = None) -> str:
    """One defect; those that need knowledge are commoner, because they are harder to see."""
    names = list(DEFECTS)
    weights = [HARD.get(name, 1) for name in names]
    return DEFECTS[rng.choices(names, weights)[0]](ask, style, rng, form)


def understand(question: str) -> Ask | None:
    """The question behind a text of this world."""
    for i, form in enumerate(ASKED):
        pattern = re.escape(form).replace(r"\{verb\}", "(.+)").replace(r"\{noun\}", "(.+)")
        found = re.fullmatch(pattern, question.strip())
        if found:
            return Ask(found.group(1), found.group(2), i)
    return None


def style_of(answer: str) -> str:
    """Which style an answer has, right or wrong; empty where it has neither."""
    text = answer.strip()
    if text.startswith(("First", "Step")):
        return "steps"
    return "brief" if text.startswith(("Use ", "Take ")) else ""


def wanted_style(persona: str) -> str:
    return next((style for style, texts in PERSONAS.items() if persona in texts), "")


def quality(question: str, answer: str) -> float:
    """1 for exactly a good answer to this question, else 0."""
    ask = understand(question)
    if ask is None or ask.verb not in TOOLS:
        return 0.0
    forms = itertools.chain.from_iterable(FORMS.values())
    fits = {f.format(tool=TOOLS[ask.verb], verb=ask.verb) for f in forms}
    return float(answer.strip() in fits)


@dataclass(frozen=True)
class Truth:
    """The truth of this world behind the scorer protocol. For looking, never for training."""

    name: str = "truth"
    version: str = "1"

    def score(self, rollout: Rollout) -> Parts | None:
        wanted = wanted_style(rollout.persona)
        match = float(style_of(rollout.completion) == wanted) if wanted else None
        return Parts({"quality": quality(rollout.question, rollout.completion), "match": match})
