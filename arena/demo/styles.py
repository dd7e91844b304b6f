"""Six ways of answering. Each takes a topic and a persona and writes a complete answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from arena.demo.people import DemoPersona
from arena.demo.topics import Topic
from arena.demo.words import WORDS, Words

Style = Callable[[Topic, DemoPersona], str]


def pick(options: Sequence[str], *salt: str) -> str:
    """One of the options, always the same for the same salt."""
    digest = hashlib.sha256("\x1f".join(salt).encode()).digest()
    return options[digest[0] % len(options)]


def _parts(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _numbered(points: Sequence[tuple[str, str]], words: Words) -> str:
    colon = words.colon + words.join
    return "\n".join(
        f"{number}. **{label}**{colon}{text}" for number, (label, text) in enumerate(points, 1)
    )


def fitted(topic: Topic, persona: DemoPersona) -> str:
    """Concise and fitted: everyday words for novices, the limits of the claim for experts."""
    words = WORDS[topic.language]
    if persona.is_expert:
        lead = words.join.join([topic.short, topic.deep][: 1 if persona.detail == "low" else 2])
        block = "" if persona.detail == "low" else topic.block
        return _parts(lead, block, topic.caveat)
    if persona.detail == "low":
        first = topic.points[0][1]
        return _parts(topic.plain, f"{words.first_step}{words.join}{first}")
    if persona.detail == "high":
        return _parts(topic.plain, _numbered(topic.points, words), topic.caveat)
    return _parts(words.join.join([topic.short, topic.plain]), topic.analogy)


def textbook(topic: Topic, persona: DemoPersona) -> str:
    """Complete and orderly, with headings, the same for everybody."""
    words = WORDS[topic.language]
    answer, steps, background, limits = words.heads
    lead = pick(words.summary, "textbook", topic.key, persona.pseudonym)
    comma = "，" if topic.language == "zh" else ": "
    return _parts(
        f"## {topic.title}",
        f"### {answer}\n\n{topic.short}",
        f"### {steps}\n\n{_numbered(topic.points, words)}",
        topic.block,
        f"### {background}\n\n{topic.deep}",
        f"### {limits}\n\n{topic.caveat}{words.join}{lead}{comma}{topic.plain}",
    )


def warm(topic: Topic, persona: DemoPersona) -> str:
    """Kind and unhurried, with an analogy."""
    words = WORDS[topic.language]
    hello = pick(words.warm_hello, "hello", topic.key, persona.pseudonym)
    goodbye = pick(words.warm_goodbye, "goodbye", topic.key, persona.pseudonym)
    body = words.join.join([topic.plain, topic.analogy])
    steps = words.join.join(text for _label, text in topic.points[:3])
    caveat = "" if persona.detail == "low" else topic.caveat
    return _parts(hello, body, steps, words.join.join(filter(None, [caveat, goodbye])))


def terse(topic: Topic, persona: DemoPersona) -> str:
    """The answer and hardly more."""
    words = WORDS[topic.language]
    first, last = topic.points[0][1], topic.points[-1][1]
    extra = pick(("", first, last), "terse", topic.key, persona.pseudonym)
    return words.join.join(filter(None, [topic.short, extra]))


def tabular(topic: Topic, persona: DemoPersona) -> str:
    """A sentence, then tables, code and formulas."""
    words = WORDS[topic.language]
    rows = [f"| {words.columns[0]} | {words.columns[1]} |", "|---|---|"]
    rows += [f"| {label} | {text} |" for label, text in topic.points]
    intro = pick(words.in_table, "tabular", topic.key, persona.pseudonym)
    last = topic.deep if persona.is_expert else topic.caveat
    return _parts(topic.short, intro, "\n".join(rows), topic.block, last)


def flattering(topic: Topic, persona: DemoPersona) -> str:
    """Praise and stock phrases around a thin answer."""
    words = WORDS[topic.language]
    salt = (topic.key, persona.pseudonym)
    return _parts(
        pick(words.praise, "praise", *salt),
        pick(words.filler, "filler", *salt),
        words.join.join([topic.points[0][1], topic.plain]),
        pick(words.stock_end, "end", *salt),
    )
