"""Train, validation and test without leaks: no prompt and no persona stands in two of them. Pure.

Items that share a prompt or a persona hang together (a component of the graph whose nodes are
prompts and personas); a component goes to one split as a whole. The largest come first, each to the
split that lacks most, so that the shares are met as closely as whole components allow; no split is
empty where there are components enough. The same items and seed give the same splits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annotation.exports.options import MISSED


class Components:
    """Union-find over prompts (positive) and personas (negative ids); flat in memory."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def add(self, prompt: int, persona: int) -> None:
        """`persona` 0: none."""
        root = self.find(prompt)
        if persona:
            other = self.find(-persona)
            if root != other:
                self._parent[max(root, other)] = min(root, other)

    def find(self, node: int) -> int:
        root = node
        while (above := self._parent.setdefault(root, root)) != root:
            root = above
        while (above := self._parent[node]) != root:
            self._parent[node], node = root, above
        return root


@dataclass(frozen=True)
class Sizes:
    """Rows of each component, and its key: the least hash of a prompt in it, the same anywhere."""

    rows: dict[int, int] = field(default_factory=dict)
    keys: dict[int, int] = field(default_factory=dict)

    def count(self, root: int, key: int, rows: int = 1) -> None:
        self.rows[root] = self.rows.get(root, 0) + rows
        known = self.keys.get(root)
        if known is None or key < known:
            self.keys[root] = key


def assign(sizes: Sizes, shares: Mapping[str, int], seed: int) -> dict[int, str]:
    """The split of each component. `shares` in percent; what has no rows goes to the first one."""
    default = next(iter(shares))
    if len(shares) == 1:
        return dict.fromkeys(sizes.rows, default)
    total = sum(sizes.rows.values())
    lacking = {name: total * share / 100 for name, share in shares.items()}
    order = sorted(sizes.rows, key=lambda root: (-sizes.rows[root], _draw(seed, sizes.keys[root])))
    found = {}
    for root in order:
        name = max(lacking, key=lambda split: lacking[split]) if sizes.rows[root] else default
        found[root] = name
        lacking[name] -= sizes.rows[root]
    _fill_empty(found, sizes, order, shares)
    return found


def _fill_empty(
    found: dict[int, str], sizes: Sizes, order: Sequence[int], shares: Mapping[str, int]
) -> None:
    """A split that was asked for and got nothing takes the smallest component of the fullest."""
    for empty in shares:
        filled = Counter(dict.fromkeys(shares, 0))
        for root in order:
            filled[found[root]] += bool(sizes.rows[root])
        name, components = filled.most_common(1)[0]
        if filled[empty] or components < 2:
            continue
        found[next(r for r in reversed(order) if found[r] == name and sizes.rows[r])] = empty


def _draw(seed: int, key: int) -> str:
    return hashlib.sha256(f"{seed}:{key}".encode()).hexdigest()


def missed(counts: Mapping[str, int], shares: Mapping[str, int]) -> list[str]:
    """The splits whose share differs from what was asked by more than a little."""
    total = sum(counts.values())
    if not total or len(shares) == 1:
        return []
    return [
        name
        for name, share in shares.items()
        if abs(100 * counts.get(name, 0) / total - share) > MISSED
    ]
