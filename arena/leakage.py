"""Screening of answers before a round opens: who names himself, what is broken, what is double.

Pure. A ``Screener`` is compiled once per round from the names of its contestants and looks at
every text of the round with the same dictionary, so that masking is symmetric: a text loses the
same words whoever wrote it. Spans are code points of the original text. Hits never say who wrote
the text; excerpts show every name in them masked, because the text itself may name its maker.

Speed: substring tests decide which of the few hundred patterns look at a text at all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TypeVar

from arena.leakage_ending import is_unfinished
from arena.leakage_fold import Folded, fold
from arena.leakage_patterns import Matcher, contestant_matchers, self_reference_spans, vocabulary
from arena.leakage_terms import ERROR_PATTERNS, ERROR_TALK

K = TypeVar("K", bound=Hashable)

MASK = "▇▇▇"  # one width for all, so that its length says nothing


class ScreeningRule(StrEnum):
    """What was found in a text."""

    CONTESTANT = "contestant"  # names a contestant of this round
    MODEL = "model"  # names a known model
    VENDOR = "vendor"  # names a maker of models
    SELF_REFERENCE = "self_reference"  # says who the writer is or who made it
    ERROR_TEXT = "error_text"  # a service's error instead of an answer
    EMPTY = "empty"  # nothing that can be seen
    UNFINISHED = "unfinished"  # cut by a limit or in mid-sentence
    DUPLICATE = "duplicate"  # same text by two contestants in one context


class RulePolicy(StrEnum):
    """What a round does with the hits of a rule; fixed before screening."""

    MASK = "mask"  # show the text with the span masked (identity rules only)
    EXCLUDE = "exclude"  # the contestant has no entry in this context
    KEEP = "keep"  # show as it is


IDENTITY_RULES = frozenset(
    {
        ScreeningRule.CONTESTANT,
        ScreeningRule.MODEL,
        ScreeningRule.VENDOR,
        ScreeningRule.SELF_REFERENCE,
    }
)

DEFAULT_POLICY: Mapping[ScreeningRule, RulePolicy] = {
    ScreeningRule.CONTESTANT: RulePolicy.MASK,
    ScreeningRule.MODEL: RulePolicy.MASK,
    ScreeningRule.VENDOR: RulePolicy.MASK,
    ScreeningRule.SELF_REFERENCE: RulePolicy.MASK,
    ScreeningRule.ERROR_TEXT: RulePolicy.EXCLUDE,
    ScreeningRule.EMPTY: RulePolicy.EXCLUDE,
    ScreeningRule.UNFINISHED: RulePolicy.KEEP,
    # Two equal texts are honest evidence of equality, and each may still meet a third.
    ScreeningRule.DUPLICATE: RulePolicy.KEEP,
}


def allowed_policies(rule: ScreeningRule) -> tuple[RulePolicy, ...]:
    """Return the policies that make sense for ``rule``: a whole text is never masked."""
    if rule in IDENTITY_RULES:
        return tuple(RulePolicy)
    if rule is ScreeningRule.EMPTY:
        return (RulePolicy.EXCLUDE,)
    return (RulePolicy.EXCLUDE, RulePolicy.KEEP)


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """``rule`` applies to ``text[start:end]``; for rules about the whole text, to all of it."""

    start: int
    end: int
    rule: ScreeningRule


@dataclass(frozen=True, slots=True)
class ContestantNames:
    """The name of a contestant, its vendor, and further names that always give it away."""

    name: str
    vendor: str = ""
    aliases: tuple[str, ...] = ()


class Screener:
    """Screens texts with the vocabulary and the names of one round's contestants."""

    def __init__(self, contestants: Iterable[ContestantNames] = ()) -> None:
        own = sorted(set(contestants), key=lambda names: (names.name, names.vendor, names.aliases))
        matchers = [
            *contestant_matchers(
                [names.name for names in own],
                [names.vendor for names in own if names.vendor],
                [alias for names in own for alias in names.aliases],
            ),
            *vocabulary(),
        ]
        self._ascii: dict[str, list[Matcher]] = defaultdict(list)
        self._other: dict[str, list[Matcher]] = defaultdict(list)
        for matcher in matchers:
            by_anchor = self._ascii if matcher.anchor.isascii() else self._other
            by_anchor[matcher.anchor].append(matcher)
        self._plain = [matcher for matcher in matchers if not matcher.ambiguous]

    def screen(self, text: str, finish_reason: str = "") -> tuple[Hit, ...]:
        """Return the hits in ``text`` by position; identity spans do not overlap."""
        folded = fold(text)
        if not folded.low.strip():
            return (Hit(0, len(text), ScreeningRule.EMPTY),)
        hits = self._identity_hits(folded)
        if (span := _error_span(folded)) is not None:
            hits.append(Hit(*span, ScreeningRule.ERROR_TEXT))
        if is_unfinished(text, finish_reason):
            end = len(text.rstrip())
            start = max(0, end - len((text[:end].split() or [""])[-1]))
            hits.append(Hit(start, end, ScreeningRule.UNFINISHED))
        return tuple(sorted(hits))

    def mask(self, text: str) -> str:
        """Return ``text`` with every identity hit masked."""
        return mask(text, self.screen(text))

    def _identity_hits(self, folded: Folded) -> list[Hit]:
        low = folded.low
        matchers = [m for anchor, ms in self._ascii.items() if anchor in low for m in ms]
        if not low.isascii():
            matchers += [m for anchor, ms in self._other.items() if anchor in low for m in ms]
        found = [(*span, ScreeningRule(m.rule)) for m in matchers for span in m.plain_spans(low)]
        found += self._spaced_spans(low)
        plain = sorted((start, end) for start, end, _ in found)
        found += [
            (*span, ScreeningRule(m.rule)) for m in matchers for span in m.beside_spans(low, plain)
        ]
        found += [(*span, ScreeningRule.SELF_REFERENCE) for span in self_reference_spans(folded)]
        return [Hit(*folded.span(start, end), rule) for start, end, rule in _merged(found)]

    def _spaced_spans(self, low: str) -> list[tuple[int, int, ScreeningRule]]:
        """Find "C h a t G P T": runs of single letters that read as a plain term."""
        found = []
        for run in _SPACED.finditer(low):
            places = [i for i in range(run.start(), run.end()) if low[i].isalnum()]
            squeezed = "".join(low[i] for i in places)
            for matcher in self._plain:
                if matcher.anchor in squeezed:
                    for start, end in matcher.plain_spans(squeezed):
                        found.append(
                            (places[start], places[end - 1] + 1, ScreeningRule(matcher.rule))
                        )
        return found


_SPACED = re.compile(r"(?<![^\W_])(?:[^\W_][ .\-_*·]{1,2}){2,}[^\W_](?![^\W_])")
_PRIORITY = (
    ScreeningRule.SELF_REFERENCE,
    ScreeningRule.CONTESTANT,
    ScreeningRule.MODEL,
    ScreeningRule.VENDOR,
)


def _merged(
    found: Iterable[tuple[int, int, ScreeningRule]],
) -> list[tuple[int, int, ScreeningRule]]:
    """Join overlapping spans under the most telling of their rules."""
    merged: list[tuple[int, int, ScreeningRule]] = []
    for start, end, rule in sorted(found):
        if merged and start < merged[-1][1]:
            first, last, other = merged[-1]
            merged[-1] = (first, max(last, end), min(rule, other, key=_PRIORITY.index))
        else:
            merged.append((start, end, rule))
    return merged


# --- broken and double texts ------------------------------------------------------------------

_ERROR = re.compile(
    r"[\s*#\[(>_`!⚠❌]*(?:error\W+|错误\W+)?(?P<error>"
    + "|".join(ERROR_PATTERNS)
    + rf")(?!{ERROR_TALK})"
)
_ERROR_AT_MOST = 2000  # a longer text is an answer, however it begins


def _error_span(folded: Folded) -> tuple[int, int] | None:
    """Find a service error that opens the text."""
    if len(folded.low) > _ERROR_AT_MOST or not (match := _ERROR.match(folded.low)):
        return None
    return folded.span(*match.span("error"))


def text_fingerprint(text: str) -> str:
    """Return a hex hash, equal for texts that read the same; "" if nothing can be seen."""
    words = fold(text).low.split()
    return sha256(" ".join(words).encode("utf-8", "surrogatepass")).hexdigest() if words else ""


def find_duplicates(entries: Iterable[tuple[K, str, str]]) -> list[tuple[K, ...]]:
    """Group the keys of ``(key, context, text)`` whose texts read the same in one context."""
    groups: dict[tuple[str, str], list[K]] = defaultdict(list)
    for key, context, text in entries:
        if fingerprint := text_fingerprint(text):
            groups[context, fingerprint].append(key)
    return [tuple(keys) for keys in groups.values() if len(keys) > 1]


# --- masking ----------------------------------------------------------------------------------


def mask(text: str, hits: Iterable[Hit]) -> str:
    """Replace the identity hits in ``text`` by ``MASK``; other hits leave it as it is."""
    return mask_spans(text, [(h.start, h.end) for h in hits if h.rule in IDENTITY_RULES])


def mask_spans(text: str, spans: Iterable[Sequence[int]]) -> str:
    """Replace each (start, end) of ``spans`` by ``MASK``; overlapping ones become one mask."""
    pieces, at = [], 0
    for start, end in sorted((start, end) for start, end in spans):
        if start >= at:
            pieces += [text[at:start], MASK]
        at = max(at, end)
    return "".join([*pieces, text[at:]])


def masked_excerpt(text: str, hits: Iterable[Hit], hit: Hit, radius: int = 40) -> str:
    """Return up to ``radius`` characters on each side of ``hit``, every name in them masked.

    ``hits`` are all hits of the text, whatever their policy. A name that the window cuts is masked
    as a whole. White space is folded to single spaces.
    """
    names = [h for h in hits if h.rule in IDENTITY_RULES]
    middle = min(hit.end, hit.start + 2 * radius)
    start, end = max(0, hit.start - radius), min(len(text), middle + radius)
    inside = [
        (max(name.start, start) - start, name.end - start)
        for name in names
        if name.start < end and name.end > start
    ]
    excerpt = " ".join(mask_spans(text[start:end], inside).split())
    return ("…" if start else "") + excerpt + ("…" if end < len(text) else "")
