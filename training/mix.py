"""What a dataset is made of: rows by split, stratum, language and source; lengths and style. Pure.

Built row by row in flat memory; the result is plain JSON that the page draws without reading a row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from webapp.catalog.texts import style_features

GROUPS = ("split", "stratum", "language", "category", "source", "decided")
LENGTHS = (0, 50, 100, 200, 400, 800, 1600, 3200, 6400)  # characters; the last bin is open
SHARES = (0.0, 0.001, 0.2, 0.4, 0.6, 0.8)
CHANGES = (-3200, -1600, -800, -400, -200, -100, 0, 100, 200, 400, 800, 1600, 3200)
MOST = 200  # names per group; the rest is counted together
REFERENCE = {  # sizes of the reference recipe (F1)
    "instructions": 50_000,
    "tool_traces": 20_000,
    "preferences": 10_000,
}


class Histogram:
    """Counts between edges: bin i holds edges[i] ≤ value < edges[i+1], the last one all above."""

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = list(edges)
        self.counts = [0] * len(edges)

    def add(self, value: float) -> None:
        self.counts[max(bisect_right(self.edges, value) - 1, 0)] += 1

    def as_json(self) -> dict[str, Any]:
        return {"edges": self.edges, "counts": self.counts}


class Mix:
    """The counts of a dataset."""

    def __init__(self) -> None:
        self.rows = 0
        self._groups: dict[str, Counter[str]] = {name: Counter() for name in GROUPS}
        self._strata: dict[str, Counter[str]] = {}
        self._histograms: dict[str, Histogram] = {}
        self._marks: Counter[str] = Counter()
        self._tasks: dict[str, Counter[str]] = {}

    def add(self, groups: Mapping[str, str], marks: Mapping[str, bool]) -> None:
        """One row: its value in each group, and what is marked on it."""
        self.rows += 1
        for name, value in groups.items():
            self._groups[name][value] += 1
        split = groups.get("split", "")
        self._strata.setdefault(split, Counter())[groups.get("stratum", "")] += 1
        self._marks.update(name for name, holds in marks.items() if holds)

    def add_text(self, what: str, text: str) -> dict[str, int | float]:
        """Length and style of one text under a name; the features, to be used again."""
        features = style_features(text)
        self._histogram(f"{what}.characters", LENGTHS).add(features["characters"])
        if what != "prompt":
            self._histogram(f"{what}.lists", SHARES).add(features["lists"])
            self._histogram(f"{what}.questions", SHARES).add(features["questions"])
        return features

    def add_change(self, characters: float) -> None:
        """How many characters the better answer has more than the other."""
        self._histogram("change.characters", CHANGES).add(characters)

    def add_task(self, split: str, axes: Iterable[str]) -> None:
        """A row with a task: the axes on which rules can judge an answer to it."""
        self._tasks.setdefault(split, Counter()).update(("rows", *axes))

    def _histogram(self, name: str, edges: Sequence[float]) -> Histogram:
        return self._histograms.setdefault(name, Histogram(edges))

    def as_json(self) -> dict[str, Any]:
        tasks = {split: dict(sorted(n.items())) for split, n in sorted(self._tasks.items())}
        return {
            "rows": self.rows,
            "groups": {name: limited(counts) for name, counts in self._groups.items() if counts},
            "strata": {split: limited(counts) for split, counts in self._strata.items()},
            "marks": dict(sorted(self._marks.items())),
            "histograms": {n: h.as_json() for n, h in sorted(self._histograms.items())},
            **({"tasks": tasks} if tasks else {}),
        }


def limited(counts: Mapping[str, int]) -> dict[str, int]:
    """Sorted by count; beyond `MOST` names the rest stands under "…"."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = dict(ordered[:MOST])
    rest = sum(count for _name, count in ordered[MOST:])
    return {**shown, "…": rest} if rest else shown
