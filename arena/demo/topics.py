"""Topics of the demo: a question and the material from which the styles make their answers."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TASTING, OPEN = "tasting", "open"  # the unsealed round and the one to vote in


@dataclass(frozen=True)
class Topic:
    """`points` are (label, sentence); `block` is code, a formula or a table, or empty."""

    key: str
    language: str
    round: str
    category: str
    title: str
    turns: tuple[str, ...]
    short: str
    points: tuple[tuple[str, str], ...]
    deep: str
    plain: str
    analogy: str
    caveat: str
    block: str

    @property
    def messages(self) -> list[dict[str, str]]:
        """The turns as a conversation that the user begins and ends."""
        return [
            {"role": "assistant" if number % 2 else "user", "content": text}
            for number, text in enumerate(self.turns)
        ]


def load_topics() -> list[Topic]:
    """All topics of both languages, in the order of the files."""
    return [
        _topic(row, language)
        for language in ("en", "zh")
        for row in tomllib.loads((FOLDER / f"topics_{language}.toml").read_text("utf-8"))["topic"]
    ]


def _topic(row: dict[str, Any], language: str) -> Topic:
    fixed = {
        "language": language,
        "turns": tuple(row["turns"]),
        "points": tuple((label, sentence) for label, sentence in row["points"]),
        "block": row.get("block", "").strip(),
    }
    return Topic(**{**row, **fixed})
