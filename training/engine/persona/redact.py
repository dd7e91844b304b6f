"""Takes out of a text what could name a person: addresses, numbers, links, given names.

Patterns, not understanding: what is removed is certain to be of the kind; a name that nobody
listed stays. So profiles are allow-listed fields and this is the second line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "▇"
PATTERNS = (
    re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),  # e-mail
    re.compile(r"https?://\S+|www\.\S+", re.IGNORECASE),
    re.compile(r"(?<!\d)\d{17}[\dXx](?!\d)"),  # Chinese identity number
    re.compile(
        r"(?<![A-Za-z0-9.])\+?\d(?:[ ()/.-]{0,2}\d){8,14}(?!\d)"
    ),  # telephone, also 11 digits in a row
    re.compile(r"(?<!\w)@[A-Za-z0-9_]{3,}"),  # handles
    re.compile(r"(?:微信|QQ|wechat|weixin)\s*(?:号)?\s*[:：]?\s*[A-Za-z0-9_-]{5,}", re.IGNORECASE),
)


def redact(text: str, names: Iterable[str] = ()) -> str:
    """The text with every hit replaced by one mark; redacting twice changes nothing more."""
    for pattern in PATTERNS:
        text = pattern.sub(MARK, text)
    for name in sorted({n.strip() for n in names if len(n.strip()) > 1}, key=len, reverse=True):
        text = _name_pattern(name).sub(MARK, text)
    return text


def _name_pattern(name: str) -> re.Pattern[str]:
    """Latin names only as whole words; Chinese has no spaces."""
    edge = r"\b" if name.isascii() else ""
    return re.compile(edge + re.escape(name) + edge, re.IGNORECASE)
