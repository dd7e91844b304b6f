"""Finds the phrases that a policy learned to please with (mechanism E5).

Within a run it looks for n-grams that become more frequent while the reward rises and whose answers
earn more than others of the same step. They are proposals for the penalty list: a person decides.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from training.engine import numbers
from training.engine.numbers import Value
from training.engine.rewards.units import is_cjk, join, units

WORDS = range(2, 8)
CHARACTERS = range(4, 13)
TOGETHER = 0.5  # least correlation of frequency and reward over the windows
SURE = 3.5  # standard errors
MOST = 800  # answers looked at, evenly over the run
EDGE = 150  # units of a long answer's beginning and end


@dataclass(frozen=True)
class Sample:
    step: int
    reward: Value
    text: str


@dataclass(frozen=True)
class Phrase:
    text: str
    early: float  # share of answers with it, in the first windows
    late: float
    correlation: float  # of its frequency with the mean reward, over windows
    lift: float  # reward of answers with it minus the others of the window
    score: float


def mine(samples: Iterable[Sample], *, windows: int = 8, least: float = 0.1) -> list[Phrase]:
    """Candidates, best first. `least`: how much more frequent a phrase must have become."""
    scored = sorted((s for s in samples if s.reward is not None), key=lambda s: s.step)
    scored = scored[:: 1 + len(scored) // MOST]
    if len(scored) < 2 * windows:
        return []
    size = len(scored) / windows
    chunks = [scored[round(i * size) : round((i + 1) * size)] for i in range(windows)]
    grams = [[ngrams(s.text) for s in chunk] for chunk in chunks]
    rewards = [numbers.mean(s.reward for s in chunk) for chunk in chunks]
    late = Counter(
        g for window in grams[-max(1, windows // 4) :] for found in window for g in found
    )
    enough = least * sum(map(len, grams[-max(1, windows // 4) :]))
    phrases = []
    for gram, count in late.items():
        if count >= enough:
            found = _measure(gram, chunks, grams, rewards)
            if found and found.late - found.early >= least:
                phrases.append(found)
    return _longest(sorted(phrases, key=lambda p: (-p.score, -len(p.text))))


def ngrams(text: str) -> set[tuple[str, ...]]:
    """All n-grams of one answer, each once. Mixed ones count as words."""
    have = units(text)
    if len(have) > 2 * EDGE:  # rituals stand at the beginning and at the end
        return ngrams(join(have[:EDGE])) | ngrams(join(have[-EDGE:]))
    found = set()
    for n in {*WORDS, *CHARACTERS}:
        for i in range(len(have) - n + 1):
            gram = tuple(have[i : i + n])
            sizes = CHARACTERS if all(map(is_cjk, gram)) else WORDS
            if n in sizes:
                found.add(gram)
    return found


def _measure(
    gram: tuple[str, ...],
    chunks: Sequence[Sequence[Sample]],
    grams: Sequence[Sequence[set[tuple[str, ...]]]],
    rewards: Sequence[Value],
) -> Phrase | None:
    shares = [sum(gram in g for g in window) / len(window) for window in grams]
    quarter = max(1, len(shares) // 4)
    early, late = sum(shares[:quarter]) / quarter, sum(shares[-quarter:]) / quarter
    together = numbers.correlation(shares, rewards)
    n = quarter * len(grams[-1])
    if together is None or together < TOGETHER or not _grew(early, late, n):
        return None
    lift = _lift(gram, chunks, grams)
    score = (late - early) * together * (1 + max(0.0, lift))
    return Phrase(join(gram), early, late, together, lift, score)


def _grew(early: float, late: float, n: int) -> bool:
    """Whether a share rose by more than chance: two proportions of n answers each."""
    both = (early + late) / 2
    error = math.sqrt(max(1e-12, 2 * both * (1 - both) / max(1, n)))
    return (late - early) / error > SURE


def _lift(
    gram: tuple[str, ...],
    chunks: Sequence[Sequence[Sample]],
    grams: Sequence[Sequence[set[tuple[str, ...]]]],
) -> float:
    """Within windows: mean reward with the phrase minus without."""
    found = []
    for chunk, window in zip(chunks, grams, strict=True):
        split: dict[bool, list[Value]] = defaultdict(list)
        for sample, have in zip(chunk, window, strict=True):
            split[gram in have].append(sample.reward)
        inside, outside = numbers.mean(split[True]), numbers.mean(split[False])
        if inside is not None and outside is not None:
            found.append(inside - outside)
    return numbers.mean(found) or 0.0


def _longest(phrases: list[Phrase]) -> list[Phrase]:
    """Of phrases that contain one another and are about as frequent, the longest only."""
    kept: list[Phrase] = []
    for phrase in sorted(phrases, key=lambda p: -len(p.text)):
        inside = [k for k in kept if phrase.text in k.text]
        if not any(phrase.late <= k.late * 1.25 + 0.02 for k in inside):
            kept.append(phrase)
    return sorted(kept, key=lambda p: (-p.score, -len(p.text)))
