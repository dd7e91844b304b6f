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
) -> Assignment:
    """Splits for all cells. `rows` counts the rows of each cell, `shares` are percentages.

    Without `cut`, a component that holds two fixed splits is left out and reported as clashes.
    """
    fixed = fixed or {}
    found = Assignment()
    room = _Room(rows, shares)
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
    sizes = [sum(rows[cell] for cell in cells) for cells in loose]
    names = [min(cells)[0] + min(cells)[1] for cells in loose]
    for cells, split in zip(loose, room.share_out(sizes, names, seed), strict=True):
        _put(cells, split, rows, None, found)
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


class _Room:
    """How many rows each split still wants."""

    def __init__(self, rows: Mapping[Cell, int], shares: Mapping[str, int]) -> None:
        total = sum(rows.values())
        self.shares = {split: share / 100 for split, share in shares.items() if share}
        self.wanted = {split: share * total for split, share in self.shares.items()}
        self.taken = dict.fromkeys(self.wanted, 0)
        # A component beyond this leaves the other splits less than half of what they want.
        self.limit = total * (1 + max(self.shares.values(), default=1.0)) / 2

    def take(self, split: str, size: int) -> None:
        if split in self.taken:
            self.taken[split] += size

    def share_out(self, sizes: Sequence[int], names: Sequence[str], seed: int) -> list[str]:
        """A split for each part: the largest first, to whoever lacks most; none stays empty."""
        order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], _draw(seed, names[i])))
        chosen = [""] * len(sizes)
        for place, index in enumerate(order):
            empty = [split for split in self.wanted if not self.taken[split]]
            last = len(order) - place <= len(empty)
            among = empty if last and empty else list(self.wanted)
            split = max(among, key=lambda name: self.wanted[name] - self.taken[name])
            self.take(split, sizes[index])
            chosen[index] = split
        return chosen


def _movable(cells: Iterable[Cell], fixed: Mapping[Node, str]) -> bool:
    """Cutting helps only where a persona is still free to go elsewhere."""
    return sum(1 for name in {c[1] for c in cells if c[1]} if (PERSONA, name) not in fixed) > 1


def _put(
    cells: Iterable[Cell], split: str, rows: Mapping[Cell, int], room: _Room | None, to: Assignment
) -> None:
    for cell in cells:
        to.cells[cell] = split
        if room is not None:
            room.take(split, rows[cell])


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
        weights: Counter[str] = Counter()
        for cell in cells:
            name = cell[1] if kind == PERSONA else cell[0]
            if name and (kind, name) not in fixed:
                weights[name] += rows[cell]
        part = _Room(_part(cells, rows), {s: round(100 * v) for s, v in room.shares.items()})
        for cell in cells:
            name = cell[1] if kind == PERSONA else cell[0]
            if name and (kind, name) in fixed:
                part.take(fixed[kind, name], rows[cell])
        names = sorted(weights)
        drawn = part.share_out([weights[name] for name in names], names, seed)
        of.update({(kind, name): split for name, split in zip(names, drawn, strict=True)})
    for cell in cells:
        splits = {of[node] for node in nodes(cell)}
        if len(splits) == 1:
            _put([cell], splits.pop(), rows, room, found)
        else:
            _clash(cell, of, found)


def _part(cells: Iterable[Cell], rows: Mapping[Cell, int]) -> dict[Cell, int]:
    return {cell: rows[cell] for cell in cells}


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
