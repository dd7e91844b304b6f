"""What a reward model predicted for battles against what people said of them. Pure.

Its values are σ(logit), so the predicted probability that one answer is better is σ of the
difference of logits: that is how reward models are trained and calibrated. Only decided votes can
be held against it; ties are counted apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from training.evidence.battles import LOSS, WIN, Judged, columns
from training.evidence.intervals import CONFIDENCE, NOTHING, Interval, Votes, gap, share

BINS = 5
EDGE = 1e-6  # values are kept this far from 0 and 1
Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Bin:
    """Votes whose prediction lies in one fifth of [0, 1]: predicted, and the share of wins."""

    predicted: float
    people: Interval


@dataclass(frozen=True)
class Compared:
    """One reward model on one axis.

    `flattery` is the mean of predicted − given over decided votes: above 0 it promised more wins
    than people gave. `flatters`: that much is shown, over all comparisons at once; `low_balls`: the
    other way round. `ties`, `unknown`: votes that decide nothing, and those without a prediction.
    """

    agreement: Interval = NOTHING
    flattery: Interval = NOTHING
    predicted_mean: float | None = None
    people: Interval = NOTHING
    bins: tuple[Bin, ...] = ()
    error: float | None = None
    flatters: bool = False
    low_balls: bool = False
    ties: int = 0
    unknown: int = 0


def probability(mine: float, theirs: float) -> float:
    """That the first answer is better, from two values in [0, 1]."""
    x = logit(mine) - logit(theirs)
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def logit(value: float) -> float:
    inside = min(max(value, EDGE), 1 - EDGE)
    return math.log(inside / (1 - inside))


def compare(rows: Iterable[Judged], values: Values, comparisons: int = 1) -> Compared:
    """`values` by answer; `comparisons` is how many reward models, axes and groups of votes are
    looked at.
    """
    given = list(rows)
    decided = [row for row in given if row.verdict in (WIN, LOSS)]
    pairs: list[tuple[Judged, float]] = []
    for row in decided:
        mine, theirs = values.get(row.mine), values.get(row.theirs)
        if mine is not None and theirs is not None:
            pairs.append((row, probability(mine, theirs)))
    ties, unknown = len(given) - len(decided), len(decided) - len(pairs)
    if not pairs:
        return Compared(ties=ties, unknown=unknown)
    known = [row for row, _p in pairs]
    said = [p for _row, p in pairs]
    won = columns(known, lambda row: float(row.verdict == WIN))
    strict = gap(said, won, 1 - (1 - CONFIDENCE) / max(1, comparisons))
    bins = tuple(_bins(pairs))
    return Compared(
        agreement=share(_agreeing(pairs)),
        flattery=gap(said, won),
        predicted_mean=sum(said) / len(said),
        people=share(won),
        bins=bins,
        error=sum(b.people.n * abs(b.predicted - (b.people.mean or 0.0)) for b in bins) / len(said),
        flatters=strict.low is not None and strict.low > 0,
        low_balls=strict.high is not None and strict.high < 0,
        ties=ties,
        unknown=unknown,
    )


def _agreeing(pairs: list[tuple[Judged, float]]) -> Votes:
    """1 where the likelier side won, ½ where it saw no difference."""
    right = [0.5 if p == 0.5 else float((p > 0.5) == (row.verdict == WIN)) for row, p in pairs]
    raters, contexts = [r.rater for r, _p in pairs], [r.context for r, _p in pairs]
    return Votes.of(right, raters, contexts)


def _bins(pairs: list[tuple[Judged, float]]) -> Iterable[Bin]:
    for number in range(BINS):
        inside = [(row, p) for row, p in pairs if min(int(p * BINS), BINS - 1) == number]
        if inside:
            won = columns([row for row, _p in inside], lambda row: float(row.verdict == WIN))
            yield Bin(sum(p for _row, p in inside) / len(inside), share(won))
