"""Which split a row belongs to: disjoint by prompt and by persona, over all datasets. Pure.

Rows that share a prompt or a persona hang together; what hangs together goes into one split. What
was given to a split before (`fixed`) stays there. Where nearly everything hangs together (every
prompt answered for every persona) a component is cut: its personas and its prompts are shared out
apart, and rows whose persona and prompt went different ways are left out, as rounds do with
contexts that are half held out.

Everything follows from the rows, the shares, the seed and what is fixed: no randomness.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Node = tuple[str, str]  # ("prompt", hash) or ("persona", id)
Cell = tuple[str, str]  # prompt hash, persona id ("" for none)
PROMPT, PERSONA, TRAIN = "prompt", "persona", "train"
EXAMPLES = 5


@dataclass(frozen=True)
class Clash:
    """A row that cannot go anywhere: its prompt and its persona belong to different splits."""

    prompt: str
    persona: str
    prompt_split: str
    persona_split: str


@dataclass
class Assignment:
    """`cells`: the split of each prompt-persona pair; "" is left out. `clashes`: examples of these.

    `cut`: number of components that were cut.
    """

    cells: dict[Cell, str] = field(default_factory=dict)
    clashes: list[Clash] = field(default_factory=list)
    cut: int = 0


def assign(
    rows: Mapping[Cell, int],
    *,
    shares: Mapping[str, int],
    seed: int,
    fixed: Mapping[Node, str] | None = None,
    cut: bool = True,
    strata: Mapping[str, str] | None = None,
) -> Assignment:
    """Splits for all cells. `rows` counts the rows of each cell, `shares` are percentages.

    Without `cut`, a component that holds two fixed splits is left out and reported as clashes.
    `strata` (by persona id): every stratum is shared out alike, as far as it has parts enough.
    """
    fixed = fixed or {}
    found = Assignment()
    room = _Room(rows, shares, strata or {})
    loose: list[list[Cell]] = []
    for cells in components(rows):
        kept = {fixed[node] for cell in cells for node in nodes(cell) if node in fixed}
        size = sum(rows[cell] for cell in cells)
        if cut and (len(kept) > 1 or (size > room.limit and _movable(cells, fixed))):
            _cut(cells, rows, room, seed, fixed, found)
        elif len(kept) > 1:
            _refuse(cells, fixed, found)
        elif kept:
            _put(cells, kept.pop(), rows, room, found)
        else:
            loose.append(cells)
    parts = [_Part("".join(min(cells)), _count(cells, rows, room)) for cells in loose]
    for cells, split in zip(loose, room.share_out(parts, seed), strict=True):
        _put(cells, split, rows, None, found)
    return found


def _count(cells: Iterable[Cell], rows: Mapping[Cell, int], room: _Room) -> Counter[str]:
    """Rows by stratum."""
    found: Counter[str] = Counter()
    for cell in cells:
        found[room.stratum(cell)] += rows[cell]
    return found


def nodes(cell: Cell) -> list[Node]:
    prompt, persona = cell
    return [(PROMPT, prompt), (PERSONA, persona)] if persona else [(PROMPT, prompt)]


def components(cells: Iterable[Cell]) -> list[list[Cell]]:
    """What hangs together through shared prompts and personas, in an order of its own."""
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = parent[above]
            node = above
        return node

    listed = sorted(cells)
    for cell in listed:
        first, *rest = nodes(cell)
        for other in rest:
            parent[root(other)] = root(first)
    groups: dict[Node, list[Cell]] = defaultdict(list)
    for cell in listed:
        groups[root((PROMPT, cell[0]))].append(cell)
    return list(groups.values())


@dataclass(frozen=True)
class _Part:
    """Something that goes into one split as a whole: its name, and its rows by stratum."""

    name: str
    rows: Counter[str]

    @property
    def size(self) -> int:
        return self.rows.total()

    @property
    def stratum(self) -> str:
        """The one that most of its rows are of."""
        return max(sorted(self.rows), key=lambda name: self.rows[name])


class _Room:
    """How many rows each split still wants, in all and of every stratum."""

    def __init__(
        self, rows: Mapping[Cell, int], shares: Mapping[str, int], strata: Mapping[str, str]
    ) -> None:
        self.shares = {split: share / 100 for split, share in shares.items() if share}
        self._strata = strata
        self.totals: Counter[str] = Counter()
        for cell, count in rows.items():
            self.totals[self.stratum(cell)] += count
        self.taken: dict[str, Counter[str]] = {split: Counter() for split in self.shares}
        # A component beyond this leaves the other splits less than half of what they want.
        largest = max(self.shares.values(), default=1.0)
        self.limit = self.totals.total() * (1 + largest) / 2

    def stratum(self, cell: Cell) -> str:
        return self._strata.get(cell[1], "")

    def within(self, rows: Mapping[Cell, int]) -> _Room:
        """The same wishes for some of the rows only."""
        return _Room(rows, {s: round(100 * v) for s, v in self.shares.items()}, self._strata)

    def forget_strata(self) -> None:
        """Count everything together."""
        self.totals = Counter({"": self.totals.total()})
        self.taken = {split: Counter({"": c.total()}) for split, c in self.taken.items()}

    def take(self, split: str, stratum: str, size: int) -> None:
        if split in self.taken:
            self.taken[split][stratum] += size

    def share_out(self, parts: Sequence[_Part], seed: int) -> list[str]:
        """A split for each part, stratum by stratum, the largest parts first.

        A part goes to whoever lacks most; the last ones to splits that would stay empty. Strata
        with fewer parts than there are splits are shared out together.
        """
        groups: dict[str, list[int]] = defaultdict(list)
        for index, part in enumerate(parts):
            groups[part.stratum].append(index)
        many = {name for name, found in groups.items() if len(found) >= len(self.shares)}
        chosen = [""] * len(parts)
        for name in sorted(many):
            self._share_group(parts, groups[name], {name}, seed, chosen)
        rest = [index for name in sorted(set(groups) - many) for index in groups[name]]
        self._share_group(parts, rest, set(self.totals), seed, chosen)
        return chosen

    def _share_group(
        self, parts: Sequence[_Part], group: list[int], strata: set[str], seed: int, to: list[str]
    ) -> None:
        order = sorted(group, key=lambda i: (-parts[i].size, _draw(seed, parts[i].name)))
        for place, index in enumerate(order):
            empty = [split for split in self.shares if not self._of(split, strata)]
            last = len(order) - place <= len(empty)
            among = empty if last and empty else list(self.shares)
            split = max(among, key=lambda name: self._lack(name, strata))
            for stratum, count in parts[index].rows.items():
                self.take(split, stratum, count)
            to[index] = split

    def _of(self, split: str, strata: set[str]) -> int:
        return sum(self.taken[split][name] for name in strata)

    def _lack(self, split: str, strata: set[str]) -> float:
        wanted = self.shares[split] * sum(self.totals[name] for name in strata)
        return wanted - self._of(split, strata)


def _movable(cells: Iterable[Cell], fixed: Mapping[Node, str]) -> bool:
    """Cutting helps only where a persona is still free to go elsewhere."""
    return sum(1 for name in {c[1] for c in cells if c[1]} if (PERSONA, name) not in fixed) > 1


def _put(
    cells: Iterable[Cell], split: str, rows: Mapping[Cell, int], room: _Room | None, to: Assignment
) -> None:
    for cell in cells:
        to.cells[cell] = split
        if room is not None:
            room.take(split, room.stratum(cell), rows[cell])


def _cut(
    cells: Sequence[Cell],
    rows: Mapping[Cell, int],
    room: _Room,
    seed: int,
    fixed: Mapping[Node, str],
    found: Assignment,
) -> None:
    """Share out personas and prompts apart; keep the cells where both went the same way."""
    found.cut += 1
    of = {node: fixed[node] for cell in cells for node in nodes(cell) if node in fixed}
    for kind in (PERSONA, PROMPT):
        part_room = room.within({cell: rows[cell] for cell in cells})
        parts: dict[str, Counter[str]] = defaultdict(Counter)
        for cell in cells:
            name, stratum = cell[1] if kind == PERSONA else cell[0], room.stratum(cell)
            if name and (kind, name) in fixed:
                part_room.take(fixed[kind, name], stratum, rows[cell])
            elif name:
                parts[name][stratum] += rows[cell]
        named = [_Part(name, parts[name]) for name in sorted(parts)]
        if kind == PROMPT:  # every prompt is asked in all strata: they say nothing here
            named = [_Part(part.name, Counter({"": part.size})) for part in named]
            part_room.forget_strata()
        for part, split in zip(named, part_room.share_out(named, seed), strict=True):
            of[kind, part.name] = split
    for cell in cells:
        splits = {of[node] for node in nodes(cell)}
        if len(splits) == 1:
            _put([cell], splits.pop(), rows, room, found)
        else:
            _clash(cell, of, found)


def _refuse(cells: Iterable[Cell], fixed: Mapping[Node, str], found: Assignment) -> None:
    for cell in cells:
        _clash(cell, fixed, found)


def _clash(cell: Cell, of: Mapping[Node, str], found: Assignment) -> None:
    found.cells[cell] = ""
    if len(found.clashes) < EXAMPLES:
        prompt, persona = of.get((PROMPT, cell[0]), ""), of.get((PERSONA, cell[1]), "")
        found.clashes.append(Clash(cell[0], cell[1], prompt, persona))


def kept(split: str, synthetic: bool) -> str:
    """The split of a row; "" where a synthetic row would stand among those for evaluation."""
    return "" if synthetic and split != TRAIN else split


def broken_groups(
    groups: Mapping[str, Sequence[tuple[Cell, bool]]], given: Mapping[Cell, str]
) -> set[str]:
    """Groups of which a row would be missing or stand in another split.

    A group is the (cell, synthetic) of its rows; one row alone is no group.
    """
    found = set()
    for name, members in groups.items():
        splits = {kept(given[cell], synthetic) for cell, synthetic in members}
        if len(members) < 2 or len(splits) != 1 or "" in splits:
            found.add(name)
    return found


def why_left(split: str, synthetic: bool, broken: bool) -> str:
    """Why a row stays out although the filter takes it; "" where it does not."""
    if not split:
        return "between"
    if not kept(split, synthetic):
        return "evaluation"
    return "partner" if broken else ""


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()
