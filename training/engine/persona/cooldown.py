"""When the summary of a persona may change within a dialogue: seldom, or when asked for.

A summary that is made anew every turn follows every mood, and the answers of one dialogue change
their style with it. So it stands for some turns; only an explicit new demand changes it at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

TURNS = 10


def should_refresh(turns_since: int, explicit_request: bool, every: int = TURNS) -> bool:
    """`turns_since`: turns since the summary was made."""
    return explicit_request or turns_since >= every


def hold(rows: Sequence[Mapping[str, Any]], every: int = TURNS) -> list[dict[str, Any]]:
    """The rows, each with the summary that its dialogue would have had under this rule."""
    held = [dict(row) for row in rows]
    for turns in _dialogues(held):
        standing, since = turns[0]["persona"], 0
        for row in turns[1:]:
            since += 1
            if should_refresh(since, bool(row.get("demand")), every):
                standing, since = row["persona"], 0
            row["persona"] = standing
    return held


def turns_per_change(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Turns of all dialogues over the changes that nobody asked for; None without any."""
    turns = changes = 0
    for dialogue in _dialogues(list(rows)):
        turns += len(dialogue)
        changes += sum(
            before["persona"] != after["persona"] and not after.get("demand")
            for before, after in pairwise(dialogue)
        )
    return turns / changes if changes else None


def _dialogues(rows: Sequence[Any]) -> Iterator[list[Any]]:
    """Rows with the same `dialogue`, in the order of `turn`; rows without one stand alone."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        if row.get("dialogue"):
            found.setdefault(str(row["dialogue"]), []).append(row)
    for turns in found.values():
        yield sorted(turns, key=lambda row: int(row.get("turn") or 0))
