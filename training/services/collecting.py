"""The first half of a freeze: rows from the sources into working files, each with its split."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from training import filters, spool
from training.balance import Balance, Direction
from training.enums import Split
from training.filters import Filter
from training.mix import Mix
from training.models import Dataset
from training.rows import spoken, text_of
from training.selectors.claims import assign_splits
from training.selectors.limits import balance_limits
from training.selectors.sources import Candidate, Chooser, take
from training.splits import Assignment, Cell, broken_groups, why_left
from training.spool import Spooled
from training.tasks import judged_axes
from webapp.catalog.texts import canonical_json, excerpt, sha256

Beat = Callable[[], None]
EVERY = 200  # rows between two signs of life


class FreezeRefused(Exception):
    """The rows may not become a dataset as they are. `report` goes onto the page."""

    def __init__(self, code: str, report: dict[str, Any] | None = None, **params: Any) -> None:
        super().__init__(code)
        self.code, self.params, self.report = code, params, report or {}


class Gathered:
    """What the first pass over the rows finds out, without keeping their texts."""

    def __init__(self) -> None:
        self.cells: Counter[Cell] = Counter()
        self.groups: dict[str, list[tuple[Cell, bool]]] = defaultdict(list)
        self.left: Counter[str] = Counter()
        self.strata: dict[str, str] = {}
        self.tasks: dict[str, str] = {}  # hash of prompt and summary → task

    def note_task(self, candidate: Candidate) -> None:
        """One prompt under one summary wants one thing, or the freeze is refused."""
        row = candidate.row
        if not row.get("task"):
            return
        key = sha256(canonical_json([candidate.fact.prompt_sha256, row["persona"]]))
        if self.tasks.setdefault(key, row["task"]) != row["task"]:
            raise FreezeRefused("task_clash", prompt=excerpt(spoken(row["prompt"]), 80))


class Origins:
    """Where the rows that stay come from."""

    def __init__(self) -> None:
        self.rows: dict[str, Counter[int]] = defaultdict(Counter)
        self.contexts: set[int] = set()

    def add(self, row: Spooled) -> None:
        self.rows[row.origin][row.origin_id] += 1
        if row.context:
            self.contexts.add(row.context)


def collect(dataset: Dataset, *, beat: Beat) -> None:
    """Write the working files of a freeze, or raise FreezeRefused."""
    spec = filters.parse(dataset.kind, dataset.filter)
    gathered = Gathered()
    rows = _gather(dataset.kind, spec, gathered, beat)
    spool.write_rows(spool.collected(dataset.pk), rows)
    if not gathered.cells:
        raise FreezeRefused("empty", report={"left": dict(gathered.left)})
    given = assign_splits(spec, gathered.cells, gathered.strata)
    if given.clashes and not spec.cut:
        clashes = [asdict(clash) for clash in given.clashes]
        count = sum(n for cell, n in gathered.cells.items() if not given.cells[cell])
        raise FreezeRefused("clash", report={"clashes": clashes}, count=count)
    _choose(dataset, spec, gathered, given, beat)
    spool.collected(dataset.pk).unlink()


def _gather(kind: str, spec: Filter, gathered: Gathered, beat: Beat) -> Iterator[Spooled]:
    """First pass: every row once, counted by prompt and persona."""
    seen: set[bytes] = set()
    for number, candidate in enumerate(take(kind, Chooser(spec), gathered.left)):
        row = _spooled(kind, candidate)
        digest = bytes.fromhex(row.sha256)
        if digest in seen:
            gathered.left["duplicate"] += 1
            continue
        seen.add(digest)
        gathered.note_task(candidate)
        gathered.cells[row.cell] += 1
        if row.group:
            gathered.groups[row.group].append((row.cell, row.synthetic))
        if row.persona:
            gathered.strata[str(row.persona)] = row.stratum
        if number % EVERY == 0:
            beat()
        yield row


def _spooled(kind: str, candidate: Candidate) -> Spooled:
    fact = candidate.fact
    line, digest = text_of(kind, candidate.row)
    return Spooled(
        sha256=digest,
        line=line,
        prompt=fact.prompt_sha256,
        persona=fact.persona_id,
        stratum=fact.stratum,
        source=fact.source,
        decided=fact.decided,
        synthetic=fact.synthetic,
        simulated=bool(candidate.row.get("simulated")),
        group=fact.group,
        ref=candidate.ref,
        origin=fact.origin[0],
        origin_id=fact.origin[1],
        context=candidate.context_id,
    )


def _choose(
    dataset: Dataset, spec: Filter, gathered: Gathered, given: Assignment, beat: Beat
) -> None:
    """Second pass: splits, counts and balance; rows that fit into no split are left out."""
    mix, directions, origins = Mix(), Balance(), Origins()
    broken = broken_groups(gathered.groups, given.cells)
    rows = _with_splits(dataset, gathered, given, broken, beat)
    count = spool.write_rows(spool.chosen(dataset.pk), _counted(rows, mix, directions, origins))
    counts = {
        **mix.as_json(),
        "left": dict(gathered.left.most_common()),
        "cut": given.cut,
        "clashes": [asdict(clash) for clash in given.clashes],
        "balance": directions.as_json() if dataset.kind in filters.PAIRS else [],
    }
    try:
        check_splits(spec, gathered, mix, counts)
        check_balance(dataset.kind, spec, directions, counts)
    except FreezeRefused:
        spool.chosen(dataset.pk).unlink()
        raise
    spool.write_facts(
        dataset.pk,
        {
            "rows": count,
            "counts": counts,
            "origins": {name: dict(found) for name, found in origins.rows.items()},
            "contexts": sorted(origins.contexts),
        },
    )


def _with_splits(
    dataset: Dataset,
    gathered: Gathered,
    given: Assignment,
    broken: set[str],
    beat: Beat,
) -> Iterator[Spooled]:
    for number, row in enumerate(spool.read_rows(spool.collected(dataset.pk))):
        row.split = given.cells[row.cell]
        reason = why_left(row.split, row.synthetic, row.group in broken)
        if number % EVERY == 0:
            beat()
        if reason:
            gathered.left[reason] += 1
        else:
            yield row


def _counted(
    rows: Iterator[Spooled], mix: Mix, directions: Balance, origins: Origins
) -> Iterator[Spooled]:
    for row in rows:
        _count(row, mix, directions)
        origins.add(row)
        yield row


def _count(row: Spooled, mix: Mix, directions: Balance) -> None:
    columns = json.loads(row.line)
    mix.add(
        {
            "split": row.split,
            "stratum": row.stratum,
            "language": columns["language"],
            "category": columns["category"],
            "source": row.source,
            "decided": row.decided,
        },
        {
            "synthetic": row.synthetic,
            "simulated": row.simulated,
            "owner": columns.get("owner_votes", 0) > 0,
        },
    )
    if "task" in columns:
        mix.add_task(row.split, judged_axes(json.loads(columns["task"])))
    if "messages" in columns:
        mix.add_text("trace", spoken(columns["messages"]))
        return
    mix.add_text("prompt", spoken(columns["prompt"]))
    if "completion" in columns:
        mix.add_text("completion", spoken(columns["completion"]))
        return
    chosen = mix.add_text("chosen", spoken(columns["chosen"]))
    rejected = mix.add_text("rejected", spoken(columns["rejected"]))
    mix.add_change(chosen["characters"] - rejected["characters"])
    if row.split == Split.TRAIN:
        directions.add(chosen, rejected)


def check_splits(spec: Filter, gathered: Gathered, mix: Mix, counts: dict[str, Any]) -> None:
    """Every split that was asked for has rows."""
    if not mix.rows:
        raise FreezeRefused("empty", report={"left": counts["left"]})
    for split in spec.shares:
        if not counts["groups"]["split"].get(split):
            raise FreezeRefused(
                "empty_split",
                report={"left": counts["left"]},
                split=split,
                prompts=len({prompt for prompt, _persona in gathered.cells}),
                personas=len({persona for _prompt, persona in gathered.cells if persona}),
            )


def check_balance(kind: str, spec: Filter, found: Balance, counts: dict[str, Any]) -> None:
    """Pairs about what suits a person go in both directions (M7, D-24)."""
    limits = balance_limits(kind, spec.axis)
    if limits is None:
        return
    lopsided: list[Direction] = found.lopsided(limits)
    if lopsided:
        worst = max(lopsided, key=lambda row: abs(50 - (row.percent_more or 0)))
        raise FreezeRefused(
            "one_directional",
            report={"left": counts["left"], "balance": counts["balance"]},
            feature=worst.feature,
            more=worst.more,
            differing=worst.differing,
            percent=worst.percent_more,
            low=limits.low,
            high=limits.high,
        )
