"""Whether a rewrite says the same: numbers, code, names, keywords, length, language. Pure.

Anchors are what must not get lost or come up new: numbers, code, addresses, quoted words and names.
Numbers of list items are none.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from annotation.rewriting.parts import CJK, FENCE, LIST_LINE, PROTECTED, han_share, outside_code

NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:[.,:/]\d+)*%?")
_STEP = re.compile(r"\b(?:step|steps)\s+\d+|第\s*[\d一二三四五六七八九十]+\s*步", re.I)
QUOTED = re.compile(r"《[^》\n]{1,60}》|「[^」\n]{1,60}」|“[^”\n]{1,60}”|\"[^\"\n]{1,60}\"")
# Words with a capital that is not only there because a sentence begins, or with inner capitals.
NAME = re.compile(
    r"(?<=[a-z,;:(’'0-9] )[A-Z][\w+#-]*[a-z0-9][\w+#-]*|\b[A-Z]{2,}[A-Z0-9+#-]*\b"
    r"|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z]+[A-Z]\w*\b"
)
WORD = re.compile(rf"[{CJK}]|[^\W\d_{CJK}]{{4,}}")
SHORTEST, LONGEST = 0.15, 8.0  # times the length of the original
KEYWORDS_KEPT = 0.5  # share of the shorter text's words that the longer one has
LANGUAGE_DRIFT = 0.3
NEW_NAMES = 1


@dataclass(frozen=True)
class Finding:
    """`code` is the check, `detail` what it found; it never holds more than a few short words."""

    code: str
    detail: str = ""


def anchors(text: str) -> set[str]:
    """Everything in a text that a rewrite has to keep."""
    return set(numbers(text)) | set(spans(text)) | set(names(text))


def numbers(text: str) -> Counter[str]:
    lines = (LIST_LINE.sub("", line) for line in outside_code(text).split("\n"))
    return Counter(NUMBER.findall(_STEP.sub(" ", "\n".join(lines))))


def code(text: str) -> Counter[str]:
    return Counter(fence.group().strip() for fence in FENCE.finditer(text))


def spans(text: str) -> Counter[str]:
    """Inline code and addresses."""
    return Counter(PROTECTED.findall(FENCE.sub("\n", text)))


def names(text: str) -> Counter[str]:
    prose = outside_code(text)
    return Counter([*NAME.findall(prose), *QUOTED.findall(prose)])


def keywords(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(outside_code(text))}


def findings(original: str, rewritten: str) -> list[Finding]:
    """What is wrong with a rewrite; an empty list says that its content is kept."""
    if not rewritten.strip():
        return [Finding("empty")]
    found = [
        *_lost("numbers", set(numbers(original)), set(numbers(rewritten))),
        *_new("numbers_new", set(numbers(original)), set(numbers(rewritten)), 0),
        *_lost("code", set(code(original)), set(code(rewritten))),
        *_new("code_new", set(code(original)), set(code(rewritten)), 0),
        *_lost("spans", set(spans(original)), set(spans(rewritten))),
        *_lost("names", set(names(original)), _said(rewritten)),
        *_new("names_new", _said(original), set(names(rewritten)), NEW_NAMES),
    ]
    ratio = len(rewritten) / max(len(original), 1)
    if not SHORTEST <= ratio <= LONGEST:
        found.append(Finding("length", f"{ratio:.2f}"))
    if abs(han_share(original) - han_share(rewritten)) > LANGUAGE_DRIFT:
        found.append(Finding("language"))
    share = _kept_share(original, rewritten)
    if share < KEYWORDS_KEPT:
        found.append(Finding("keywords", f"{share:.2f}"))
    return found


def _said(text: str) -> set[str]:
    """Names as they may stand at the beginning of a sentence, too, and quoted words."""
    prose = outside_code(text)
    return set(re.findall(r"[\w+#-]+", prose)) | set(names(text))


def _lost(code_: str, before: set[str], after: set[str]) -> list[Finding]:
    missing = sorted(before - after)
    return [Finding(code_, ", ".join(part[:40] for part in missing[:3]))] if missing else []


def _new(code_: str, before: set[str], after: set[str], most: int) -> list[Finding]:
    added = sorted(after - before)
    if len(added) <= most:
        return []
    return [Finding(code_, ", ".join(part[:40] for part in added[:3]))]


def _kept_share(one: str, two: str) -> float:
    """Share of the words of the text with fewer of them that the other one has, too."""
    few, many = sorted((keywords(one), keywords(two)), key=len)
    return len(few & many) / len(few) if few else 1.0
