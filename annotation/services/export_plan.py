"""Which items an export takes, into which split, and why the others stay: the first of two passes.

It reads no text. What it keeps of an item is a few numbers, so that a hundred thousand items need a
few megabytes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from annotation.exports import splits
from annotation.exports.options import TRL_UNPAIRED, Options
from annotation.exports.rows import Facts
from annotation.exports.selection import choose
from annotation.models import Project
from annotation.selectors.exports import facts_of

Beat = Callable[[int], None]  # told how many items were looked at
EVERY = 2000
NOT_KEPT = 255


@dataclass
class Plan:
    """The items kept, in order of their ids, and the split of each (`NOT_KEPT`: left after all)."""

    options: Options
    items: array[int] = field(default_factory=lambda: array("q"))
    split: bytearray = field(default_factory=bytearray)
    seen: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    labels_left_out: Counter[str] = field(default_factory=Counter)
    by_split: Counter[str] = field(default_factory=Counter)
    components: int = 0
    largest: int = 0

    @property
    def kept(self) -> int:
        return sum(self.by_split.values())

    @property
    def rows(self) -> int:
        """Unpaired formats write two rows an item."""
        return self.kept * (2 if self.options.format == TRL_UNPAIRED else 1)

    def leave_out(self, reason: str, labels: int) -> None:
        self.left_out[reason] += 1
        self.labels_left_out[reason] += labels

    def chunks(self, size: int) -> Iterator[list[tuple[int, str]]]:
        """(item, split) of what is kept, `size` at a time."""
        names = self.options.splits
        kept: list[tuple[int, str]] = []
        for item, code in zip(self.items, self.split, strict=True):
            if code == NOT_KEPT:
                continue
            kept.append((item, names[code]))
            if len(kept) == size:
                yield kept
                kept = []
        if kept:
            yield kept


@dataclass
class _Kept:
    """Beside `Plan.items`: what splitting needs to know of each."""

    prompts: array[int] = field(default_factory=lambda: array("q"))
    personas: array[int] = field(default_factory=lambda: array("q"))
    keys: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("q"))
    synthetic: bytearray = field(default_factory=bytearray)
    pairs: dict[str, list[int]] = field(default_factory=dict)

    def add(self, facts: Facts, position: int) -> None:
        self.prompts.append(facts.prompt)
        self.personas.append(facts.persona)
        self.keys.append(facts.prompt_key)
        self.labels.append(facts.labels)
        self.synthetic.append(facts.synthetic)
        if facts.pair:
            self.pairs.setdefault(facts.pair, []).append(position)


def make_plan(project: Project, options: Options, beat: Beat | None = None) -> Plan:
    """Look at every item of the project once."""
    plan, kept = Plan(options), _Kept()
    for facts in facts_of(project):
        plan.seen += 1
        chosen = choose(facts, options)
        if chosen.reason:
            plan.leave_out(chosen.reason, facts.labels)
        else:
            kept.add(facts, len(plan.items))
            plan.items.append(facts.item)
            plan.split.append(0)
        if beat is not None and plan.seen % EVERY == 0:
            beat(plan.seen)
    if not options.own:
        _only_whole_pairs(plan, kept)
    _split(plan, kept)
    return plan


def _drop(plan: Plan, kept: _Kept, position: int, reason: str) -> None:
    plan.split[position] = NOT_KEPT
    plan.leave_out(reason, kept.labels[position])


def _only_whole_pairs(plan: Plan, kept: _Kept) -> None:
    """A counterfactual leaves in both directions or not at all: one alone teaches a bias (D8)."""
    for positions in kept.pairs.values():
        if len(positions) != 2:
            for position in positions:
                _drop(plan, kept, position, "partner")


def _split(plan: Plan, kept: _Kept) -> None:
    """Give every component one split. Synthetic items stand in no set for evaluation (F4)."""
    names = plan.options.splits
    found: dict[int, str] = {}
    components = splits.Components()
    if len(names) > 1:
        sizes = _sizes(plan, kept, components)
        found = splits.assign(sizes, plan.options.shares, plan.options.seed)
        plan.components = len(sizes.rows)
    for position, code in enumerate(plan.split):
        if code == NOT_KEPT:
            continue
        root = components.find(kept.prompts[position]) if found else 0
        name = found.get(root, names[0])
        if kept.synthetic[position] and name != names[0]:
            _drop(plan, kept, position, "evaluation")
            continue
        plan.split[position] = names.index(name)
        plan.by_split[name] += 1


def _sizes(plan: Plan, kept: _Kept, components: splits.Components) -> splits.Sizes:
    positions = [n for n, code in enumerate(plan.split) if code != NOT_KEPT]
    for n in positions:
        components.add(kept.prompts[n], kept.personas[n])
    sizes = splits.Sizes()
    members: Counter[int] = Counter()
    for n in positions:
        root = components.find(kept.prompts[n])
        sizes.count(root, kept.keys[n], 0 if kept.synthetic[n] else 1)
        members[root] += 1
    plan.largest = max(members.values(), default=0)
    return sizes


def described(plan: Plan) -> dict[str, Any]:
    """The plan as the report and the page say it."""
    shares = plan.options.shares
    return {
        "items": plan.seen,
        "kept": plan.kept,
        "rows": plan.rows,
        "left_out": dict(plan.left_out),
        "by_split": {name: plan.by_split[name] for name in shares},
        "shares": shares,
        "missed": splits.missed(plan.by_split, shares),
        "components": plan.components,
        "largest": plan.largest,
    }
