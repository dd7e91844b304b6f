"""Words and characters of English, Chinese and mixed texts.

A unit is a word where words have spaces between them, and one character in Chinese and Japanese.
"""

from __future__ import annotations

import re
import unicodedata

CJK = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff"
UNIT = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:['’\-.][^\W_{CJK}]+)*", re.UNICODE)
SENTENCE = re.compile(r"[^.!?。！？;；\n]+(?:\.(?=\d)[^.!?。！？;；\n]*)*[.!?。！？;；\n]*")
IS_CJK = re.compile(rf"[{CJK}]")


def fold(text: str) -> str:
    """One form for comparing: width, case and spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def units(text: str) -> list[str]:
    return UNIT.findall(fold(text))


def sentences(text: str) -> list[str]:
    """Sentences with their closing marks; empty ones are left out."""
    return [s.strip() for s in SENTENCE.findall(text) if UNIT.search(s)]


def is_cjk(unit: str) -> bool:
    return IS_CJK.match(unit) is not None


def join(pieces: tuple[str, ...] | list[str]) -> str:
    """Units as a person writes them: no spaces between Chinese characters."""
    text = ""
    for piece in pieces:
        gap = text and not (is_cjk(piece[0]) and is_cjk(text[-1]))
        text += (" " if gap else "") + piece
    return text


def contains(text: str, phrase: str) -> bool:
    """Whether the phrase occurs as whole units: “art” is not in “start”."""
    wanted = units(phrase)
    if not wanted:
        return False
    have = units(text)
    n = len(wanted)
    return any(have[i : i + n] == wanted for i in range(len(have) - n + 1))
