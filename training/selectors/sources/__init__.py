"""Where rows come from: each source tells facts of all it has, and texts of what is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from training.enums import Source
from training.selectors.sources import annotation, arena, records
from training.selectors.sources.common import CHUNK, Candidate, Chooser, Fact

__all__ = ["Candidate", "Chooser", "Fact", "facts", "take"]
SOURCES: dict[str, ModuleType] = {
    Source.ANNOTATION: annotation,
    Source.ARENA: arena,
    Source.IMPORT: records,
}


def facts(kind: str, chooser: Chooser) -> Iterator[Fact]:
    """Every possible row of all sources of the filter, without texts, in a fixed order."""
    for name in sorted(chooser.spec.sources):
        yield from SOURCES[name].facts(kind, chooser)


def take(kind: str, chooser: Chooser, left: Counter[str]) -> Iterator[Candidate]:
    """The rows that may enter, with texts; `left` counts the others by reason."""
    for name in sorted(chooser.spec.sources):
        source = SOURCES[name]
        rows: Callable[[str, Chooser, Sequence[Fact]], Iterator[Candidate]] = source.rows
        kept: list[Fact] = []
        for fact in source.facts(kind, chooser):
            if fact.reason:
                left[fact.reason] += 1
                continue
            kept.append(fact)
            if len(kept) == CHUNK:
                yield from rows(kind, chooser, kept)
                kept = []
        if kept:
            yield from rows(kind, chooser, kept)
