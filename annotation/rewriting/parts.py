"""Taking a text apart: code, list items, headings, sentences. Pure.

Code, inline code and addresses are never touched by a rule; they count as one word of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
FENCE = re.compile(r"^(?P<mark>```+|~~~+)[^\n]*\n.*?(?:^(?P=mark)[ \t]*$|\Z)", re.M | re.S)
PROTECTED = re.compile(
    r"`+[^`\n]+`+|https?://[^\s)>\]，。；]*[^\s)>\]，。；.,;:!?]|\$[^$\n]+\$|\$\$.+?\$\$", re.S
)
LIST_LINE = re.compile(
    r"^[ \t]*(?:[-*+•]\s+|\d{1,3}[.)]\s+|\d{1,3}[、)]\s*|[一二三四五六七八九十]{1,3}、\s*)"
)
HEADING = re.compile(r"^#{1,6}\s+")
_CJK_ONE = re.compile(rf"[{CJK}]")
_WIDE = re.compile(rf"[{CJK}\u3000-\u303f\uff00-\uffef]")
_LETTER = re.compile(r"[^\W\d_]")
# A sentence ends at . ! ? before a space (not after a single letter or e.g.), or at 。！？
_END = re.compile(
    r"(?<![A-Z])(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)(?<!Dr)(?<!Mr)[.!?]+(?=\s)|[。！？]+"
)
_HELD = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Block:
    """`kind` is code, heading, item (of a list) or text."""

    kind: str
    text: str


def blocks(text: str) -> Iterator[Block]:
    """The parts of a text in order; a paragraph is one block, a list item, too."""
    at = 0
    for fence in FENCE.finditer(text):
        yield from _prose(text[at : fence.start()])
        yield Block("code", fence.group().rstrip("\n"))
        at = fence.end()
    yield from _prose(text[at:])


def _prose(text: str) -> Iterator[Block]:
    lines: list[str] = []
    kind = "text"
    for line in [*text.split("\n"), ""]:
        marker = LIST_LINE.match(line)
        heading = HEADING.match(line)
        if (marker or heading or not line.strip()) and lines:
            yield Block(kind, " ".join(lines))
            lines, kind = [], "text"
        if marker:
            lines, kind = [line[marker.end() :].strip()], "item"
        elif heading:
            yield Block("heading", line[heading.end() :].strip())
        elif line.strip():
            lines.append(line.strip())


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph. Code and addresses in it hold none."""
    held = PROTECTED.findall(text)
    numbers = iter(range(len(held)))
    covered = PROTECTED.sub(lambda _m: f"\ue000{next(numbers)}\ue001", text)
    found, at = [], 0
    for end in _END.finditer(covered):
        found.append(covered[at : end.end()])
        at = end.end()
    found.append(covered[at:])
    return [
        _HELD.sub(lambda m: held[int(m[1])], sentence).strip()
        for sentence in found
        if sentence.strip()
    ]


def outside_code(text: str) -> str:
    """The text with fenced code, inline code and addresses taken out."""
    return PROTECTED.sub(" ", FENCE.sub("\n", text))


def is_chinese(text: str) -> bool:
    """Whether its prose is mainly in Han or kana characters."""
    return han_share(text) > 0.3


def han_share(text: str) -> float:
    prose = outside_code(text)
    letters = len(_LETTER.findall(prose))
    return len(_CJK_ONE.findall(prose)) / letters if letters else 0.0


def joined(parts: list[str]) -> str:
    """Sentences as one paragraph; no space where Han characters or their signs meet."""
    told = ""
    for part in parts:
        apart = told and part and not (_WIDE.match(told[-1]) and _WIDE.match(part[0]))
        told += f" {part}" if apart else part
    return told
