"""When an item has enough labels, and what they say. Pure: no Django, no models.

A label here is its verdicts by axis. An item first gets `base` labels. Where they disagree on an
axis, one more is asked for, up to `maximum`, unless no further label could change the outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

Verdicts = Mapping[str, str]


class Action(StrEnum):
    WAIT = "wait"  # labels are missing
    RAISE = "raise"  # ask for one more
    SETTLE = "settle"  # every axis has an outcome
    DISPUTE = "dispute"  # an axis has none, and no more labels are to come


@dataclass(frozen=True)
class Outcome:
    """`verdict` is empty where there is no majority."""

    verdict: str
    source: str  # unanimous, majority, unresolved


@dataclass(frozen=True)
class Step:
    action: Action
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


def next_step(labels: Sequence[Verdicts], axes: Sequence[str], target: int, maximum: int) -> Step:
    """What comes next for an item with these labels (one per annotator)."""
    if len(labels) < target:
        return Step(Action.WAIT)
    columns = {axis: [label[axis] for label in labels if label.get(axis)] for axis in axes}
    outcomes = {axis: outcome(verdicts) for axis, verdicts in columns.items()}
    more = maximum - len(labels)
    if more > 0 and any(may_change(verdicts, more) for verdicts in columns.values()):
        return Step(Action.RAISE, outcomes)
    resolved = all(found.verdict for found in outcomes.values())
    return Step(Action.SETTLE if resolved else Action.DISPUTE, outcomes)


def outcome(verdicts: Sequence[str]) -> Outcome:
    """The verdict of more than half of the annotators."""
    if not verdicts:
        return Outcome("", "unresolved")
    (top, count), *rest = Counter(verdicts).most_common()
    if not rest:
        return Outcome(top, "unanimous")
    if 2 * count > len(verdicts):
        return Outcome(top, "majority")
    return Outcome("", "unresolved")


def may_change(verdicts: Sequence[str], more: int) -> bool:
    """Whether annotators who disagree could come to another outcome with `more` labels."""
    counts = Counter(verdicts)
    if len(counts) < 2:
        return not counts
    top = counts.most_common(1)[0][1]
    # The top verdict keeps more than half even if all further labels say something else.
    return 2 * top <= len(verdicts) + more


def agreeing_pairs(labels: Sequence[Verdicts], axes: Sequence[str]) -> float | None:
    """Share of the pairs of labels that say the same, over all axes: 0 … 1. None: no pair."""
    same = pairs = 0
    for axis in axes:
        counts = Counter(label[axis] for label in labels if label.get(axis))
        n = counts.total()
        pairs += n * (n - 1)
        same += sum(count * (count - 1) for count in counts.values())
    return same / pairs if pairs else None
