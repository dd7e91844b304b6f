"""Arithmetic on texts, without Django: hashes, what can be stored, style features."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

Message = dict[str, str]

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+(?:['’\-][^\W{_CJK}]+)*")
_LIST_LINE = re.compile(
    r"[ \t]*(?:[-*+•]\s|\d{1,3}[.)]\s|\d{1,3}[、)]|[一二三四五六七八九十]{1,3}、)"
)
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)|[。！？]+")
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def canonical_json(value: object) -> str:
    """One text per value: sorted keys, no spaces, no escapes that could be left out."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def prompt_hash(messages: Sequence[Message]) -> str:
    """SHA-256 over the canonical JSON of role and content of every turn."""
    return sha256(canonical_json([{"role": m["role"], "content": m["content"]} for m in messages]))


def unstorable(text: str) -> tuple[str, int] | None:
    """("nul" or "surrogate", position from 1) of the first character no database can keep."""
    at = text.find("\x00")
    if at >= 0:
        return "nul", at + 1
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return "surrogate", error.start + 1
    return None


def is_blank(text: str) -> bool:
    """Nothing to read: spaces and characters without width only."""
    return not text.strip().strip(_INVISIBLE).strip()


def excerpt(text: str, length: int = 160) -> str:
    """The beginning of a text on one line."""
    flat = " ".join(text[: length * 4].split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def style_features(text: str) -> dict[str, int | float]:
    """Characters, words (each Han or kana character is one), share of list lines and questions.

    `lists` is the share of non-empty lines that begin like a list item, `questions` the share of
    sentence ends that ask; both from 0 to 1, rounded to 3 digits.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    listed = sum(1 for line in lines if _LIST_LINE.match(line))
    ends = _SENTENCE_END.findall(text)
    asked = sum(1 for end in ends if "?" in end or "？" in end)
    return {
        "characters": len(text),
        "words": len(_WORD.findall(text)),
        "lists": round(listed / len(lines), 3) if lines else 0.0,
        "questions": round(asked / len(ends), 3) if ends else 0.0,
    }
