"""What a filter would take, counted without reading a text: the same rules as the freeze."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from training.enums import Split
from training.filters import Filter
from training.refusals import LEFT_OUT
from training.selectors.claims import assign_splits
from training.selectors.sources import Chooser, Fact, facts
from training.splits import Cell, Clash, broken_groups, why_left
from webapp.catalog.strata import stratum_label

MISSED = 10  # points between the share that was asked for and what came of it


@dataclass
class Preview:
    """Counts as the page shows them. `empty`: splits that were asked for and would have no row."""

    rows: int = 0
    prompts: int = 0
    personas: int = 0
    strata: list[tuple[str, list[int], int]] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    left: list[tuple[str, int]] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    cut: int = 0
    empty: list[str] = field(default_factory=list)
    missed: list[tuple[str, int, int]] = field(default_factory=list)  # split, asked %, given %


def preview(kind: str, spec: Filter) -> Preview:
    """Rows by stratum and split, and why the others stay out."""
    left: Counter[str] = Counter()
    kept: list[Fact] = []
    for fact in facts(kind, Chooser(spec)):
        if fact.reason:
            left[fact.reason] += 1
        else:
            kept.append(fact)
    cells = Counter(_cell(fact) for fact in kept)
    strata = {str(fact.persona_id): fact.stratum for fact in kept if fact.persona_id}
    given = assign_splits(spec, cells, strata)
    counts = _count(kept, given.cells, left)
    found = Preview(
        rows=sum(counts.values()),
        prompts=len({fact.prompt_sha256 for fact in kept}),
        personas=len({fact.persona_id for fact in kept if fact.persona_id}),
        left=left_out(left),
        clashes=given.clashes,
        cut=given.cut,
    )
    _lay_out(found, spec, counts)
    return found


def left_out(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Reasons in words, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(str(LEFT_OUT.get(name, name)), n) for name, n in ordered]


def _cell(fact: Fact) -> Cell:
    return fact.prompt_sha256, str(fact.persona_id or "")


def _count(
    kept: list[Fact], given: dict[Cell, str], left: Counter[str]
) -> Counter[tuple[str, str]]:
    groups: dict[str, list[tuple[Cell, bool]]] = defaultdict(list)
    for fact in kept:
        if fact.group:
            groups[fact.group].append((_cell(fact), fact.synthetic))
    broken = broken_groups(groups, given)
    counts: Counter[tuple[str, str]] = Counter()
    for fact in kept:
        split = given[_cell(fact)]
        reason = why_left(split, fact.synthetic, fact.group in broken)
        if reason:
            left[reason] += 1
        else:
            counts[fact.stratum, split] += 1
    return counts


def _lay_out(found: Preview, spec: Filter, counts: Counter[tuple[str, str]]) -> None:
    """The table: strata down, splits across."""
    splits = [split for split in Split.values if split in spec.shares or _has(counts, split)]
    found.splits = [str(Split(split).label) for split in splits]
    found.totals = [sum(n for (_s, at), n in counts.items() if at == split) for split in splits]
    found.empty = [
        name for split, name in zip(splits, found.splits, strict=True)
        if split in spec.shares and not _has(counts, split)
    ]  # fmt: skip
    for split, name, n in zip(splits, found.splits, found.totals, strict=True):
        asked, given = spec.shares.get(split, 0), round(100 * n / max(1, found.rows))
        if n and abs(asked - given) > MISSED:
            found.missed.append((name, asked, given))
    for stratum in sorted({stratum for stratum, _split in counts}):
        row = [counts[stratum, split] for split in splits]
        found.strata.append((stratum_label(stratum), row, sum(row)))


def _has(counts: Counter[tuple[str, str]], split: str) -> bool:
    return any(at == split and n for (_stratum, at), n in counts.items())
