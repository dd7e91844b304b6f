"""The penalty L for saying nothing at length: stock phrases, repetition, endless sentences.

In [0, 1], higher is worse. It looks at form only and never at length as such: a long text in which
every sentence says something costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from training.engine.contracts import Parts, Rollout
from training.engine.rewards.phrases import CEREMONY, STOCK
from training.engine.rewards.units import fold, is_cjk, sentences, units

WORDS = 45  # in an English sentence
CHARACTERS = 90  # in a Chinese one
PHRASE_COST = 0.35
TOLERATED = 0.15  # share of repeated n-grams that any text has


@dataclass(frozen=True)
class Redundancy:
    phrases: float
    repetition: float
    sentences: float
    ceremony: float
    evidence: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        return min(1.0, self.phrases + self.repetition + 0.5 * self.sentences + 0.5 * self.ceremony)


def redundancy(text: str, more: Sequence[str] = ()) -> Redundancy:
    """Measure one answer; `more` are phrases beside the built-in ones."""
    evidence: list[str] = []
    hits = stock_phrases(text, more)
    evidence += [f"stock phrase: {hit}" for hit in hits]
    repeated = repetition(text)
    if repeated:
        evidence.append(f"repetition: {repeated:.0%}")
    long = overlong(text)
    if long:
        evidence.append(f"overlong sentences: {long:.0%} of the text")
    ceremony = ceremony_share(text)
    if ceremony:
        evidence.append(f"greeting or closing: {ceremony:.0%} of the text")
    cost = min(1.0, PHRASE_COST * len(hits))
    return Redundancy(cost, repeated, long, ceremony, tuple(evidence))


def stock_phrases(text: str, more: Sequence[str] = ()) -> list[str]:
    """Phrases that occur, as whole units, each counted once; a longer one covers its parts."""
    have = " ".join(units(text))
    found: list[str] = []
    folded = {" ".join(units(p)): p for p in [*STOCK, *more]}
    for key in sorted(folded, key=len, reverse=True):
        inside = any(key in " ".join(units(longer)) for longer in found)
        if key and not inside and f" {key} " in f" {have} ":
            found.append(folded[key])
    return found


def repetition(text: str) -> float:
    """Share of n-grams that occurred before, beyond what is normal. Words: 3, characters: 4."""
    have = units(text)
    n = 4 if sum(map(is_cjk, have)) * 2 > len(have) else 3
    grams = [tuple(have[i : i + n]) for i in range(len(have) - n + 1)]
    if len(grams) < 4:
        stuttered = sum(a == b for a, b in pairwise(have))
        return min(1.0, stuttered / 2) if len(have) > 2 else 0.0
    share = 1 - len(set(grams)) / len(grams)
    return max(0.0, (share - TOLERATED) / (1 - TOLERATED))


def overlong(text: str) -> float:
    """Share of the text that lies in sentences beyond the limit of its language."""
    lengths = []
    for sentence in sentences(text):
        have = units(sentence)
        limit = CHARACTERS if sum(map(is_cjk, have)) * 2 > len(have) else WORDS
        lengths.append((len(have), len(have) > limit))
    total = sum(n for n, _ in lengths)
    return sum(n for n, long in lengths if long) / total if total else 0.0


def ceremony_share(text: str) -> float:
    """Share of units in sentences that only greet or close."""
    total = ceremonial = 0
    for sentence in sentences(text):
        have = units(sentence)
        total += len(have)
        folded = fold(sentence)
        if len(have) <= 20 and any(folded.startswith(fold(opening)) for opening in CEREMONY):
            ceremonial += len(have)
    return ceremonial / total if total else 0.0


@dataclass(frozen=True)
class RedundancyScorer:
    """The penalty behind the scorer protocol; `redundancy` is a cost."""

    more: tuple[str, ...] = ()
    name: str = "redundancy"
    version: str = "1"

    def score(self, rollout: Rollout) -> Parts:
        found = redundancy(rollout.completion, self.more)
        return Parts({"redundancy": found.total}, found.evidence)
