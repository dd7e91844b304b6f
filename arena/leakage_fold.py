"""Folding of text for matching, with the way back to the original positions.

Pure. Folding undoes what hides a name from a search but not from a reader: compatibility forms
(full-width, styled letters, ligatures), combining marks, invisible format characters, and letters
of other scripts that look Latin. Matches are found in the folded text; spans are reported in code
points of the original.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

# Cyrillic and Greek letters with a Latin twin (Unicode TR 39, the commonly abused ones).
_TWINS = str.maketrans(
    "аеорсухіѕјһԁԛԝвмнткАВЕКМНОРСТУХІЅЈοανρτικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ’‘ʼ′",
    "aeopcyxisjhdqwbmhtkABEKMHOPCTYXISJoavptikABEZHIKMNOPTYX''''",
)


@dataclass(frozen=True, slots=True)
class Folded:
    """``cased`` and ``low`` (its lower case) have equal length.

    ``origin[i]`` is the original position of folded character i; None: positions are the same.
    """

    cased: str
    low: str
    origin: Sequence[int] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Map a non-empty folded span to the original text."""
        if self.origin is None:
            return start, end
        return self.origin[start], self.origin[end - 1] + 1


@lru_cache(maxsize=65536)
def _fold_char(char: str) -> str:
    decomposed = unicodedata.normalize("NFKD", char)
    kept = (c for c in decomposed if unicodedata.category(c) not in ("Mn", "Me", "Cf"))
    return "".join(kept).translate(_TWINS)


def fold(text: str) -> Folded:
    """Fold ``text``; ASCII costs one lower(), other text one look-up per character."""
    if text.isascii():
        return Folded(text, text.lower(), None)
    pieces = {char: _fold_char(char) for char in set(text)}
    if all(len(piece) == 1 for piece in pieces.values()):
        cased = text.translate({ord(char): piece for char, piece in pieces.items()})
        return Folded(cased, _lower(cased), None)
    origin = [place for place, char in enumerate(text) for _ in pieces[char]]
    cased = "".join([pieces[char] for char in text])
    return Folded(cased, _lower(cased), origin)


def _lower(text: str) -> str:
    """Lower case without a change of length."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
