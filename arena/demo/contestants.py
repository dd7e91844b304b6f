"""The six contestants of the demo: how they write, and how good they are planted to be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from arena.demo import styles
from arena.demo.people import PERSONAS, DemoPersona
from arena.demo.topics import Topic
from arena.enums import Axis


@dataclass(frozen=True)
class DemoContestant:
    """`quality` and `personalization` are planted strengths (natural log scale) for simulations."""

    name: str
    version: str
    vendor: str
    style: styles.Style
    uses_persona: bool
    quality: float
    personalization: float

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


CONTESTANTS: tuple[DemoContestant, ...] = (
    DemoContestant("Harborlight", "8B", "Harborlight Labs", styles.fitted, True, 0.8, 1.5),
    DemoContestant("Quarrystone", "70B", "Quarrystone", styles.textbook, False, 1.3, -0.1),
    DemoContestant("Willowbrook", "1.1", "Willowbrook AI", styles.warm, True, 0.1, 0.8),
    DemoContestant("Tallyworks", "3", "Tallyworks", styles.tabular, False, 0.4, -0.6),
    DemoContestant("Flintspark", "mini", "Quarrystone", styles.terse, False, -0.6, -1.0),
    DemoContestant("Galavant", "chat", "Galavant Labs", styles.flattering, False, -1.5, -1.6),
)
PLANTED: dict[str, dict[str, float]] = {
    Axis.QUALITY: {str(row): row.quality for row in CONTESTANTS},
    Axis.PERSONALIZATION: {str(row): row.personalization for row in CONTESTANTS},
}

# Planted so that screening has something to show: (contestant, topic, persona) and what happens.
LEAKS: dict[tuple[str, str, str], str] = {
    ("Galavant", "sourdough", "Busy parent"): "As an AI built by Galavant Labs, I can say:",
    ("Galavant", "desk-back-pain", "Rosa's kitchen"): "I am Galavant, a large language model.",
    ("Willowbrook", "hongshaorou", "林阿姨"): "我是 Willowbrook AI 训练的语言模型。",
    ("Galavant", "tides", "大一新生"): "作为由 Galavant Labs 开发的人工智能助手，很高兴为您解答。",
}
UNFINISHED = {("Quarrystone", "lisbon", "First-year student"): 0.6}  # the share that was kept


@dataclass(frozen=True)
class DemoAnswer:
    contestant: DemoContestant
    topic: Topic
    persona: DemoPersona
    text: str
    finish_reason: str


def write_all(topics: list[Topic]) -> Iterator[DemoAnswer]:
    """Every contestant's answer to every topic for every persona that speaks its language."""
    for contestant in CONTESTANTS:
        for topic in topics:
            for persona in PERSONAS:
                if persona.language == topic.language:
                    yield _answer(contestant, topic, persona)


def _answer(contestant: DemoContestant, topic: Topic, persona: DemoPersona) -> DemoAnswer:
    key = (contestant.name, topic.key, persona.pseudonym)
    text, reason = contestant.style(topic, persona), "stop"
    if key in LEAKS:
        text = f"{LEAKS[key]}\n\n{text}"
    if key in UNFINISHED:
        text, reason = text[: int(len(text) * UNFINISHED[key])].rstrip(" .,;\n"), "length"
    return DemoAnswer(contestant, topic, persona, text, reason)
