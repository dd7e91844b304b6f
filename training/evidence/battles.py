"""How a model did in battles: wins, ties, losses, mean score. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from training.evidence.intervals import NOTHING, Interval, Votes, share

WIN, TIE, LOSS, BOTH_BAD = "win", "tie", "loss", "both_bad"
SCORES = {WIN: 1.0, TIE: 0.5, BOTH_BAD: 0.5, LOSS: 0.0}


@dataclass(frozen=True)
class Judged:
    """One vote on one axis, as the model in question sees it. `mine` and `theirs` name answers."""

    rater: int
    context: int
    stratum: str
    unseen: bool
    verdict: str
    opponent: int
    mine: str
    theirs: str


@dataclass(frozen=True)
class Tally:
    """Counts, and the mean score (a win 1, a tie ½) with its interval."""

    win: int = 0
    tie: int = 0
    loss: int = 0
    both_bad: int = 0
    score: Interval = NOTHING

    @property
    def n(self) -> int:
        return self.win + self.tie + self.loss + self.both_bad

    @property
    def mean(self) -> float | None:
        return self.score.mean

    @property
    def low(self) -> float | None:
        return self.score.low

    @property
    def high(self) -> float | None:
        return self.score.high

    @property
    def raters(self) -> int:
        return self.score.raters

    @property
    def contexts(self) -> int:
        return self.score.contexts


def tally(rows: Iterable[Judged], *, drop_both_bad: bool = False) -> Tally:
    """“Both bad” counts like a tie, or not at all, as the round has registered it."""
    given = list(rows)
    counts = {name: sum(row.verdict == name for row in given) for name in SCORES}
    counted = [r for r in given if not (drop_both_bad and r.verdict == BOTH_BAD)]
    return Tally(**counts, score=share(columns(counted, lambda row: SCORES[row.verdict])))


def columns(rows: Iterable[Judged], value: Callable[[Judged], float]) -> Votes:
    given = list(rows)
    return Votes.of(
        [value(row) for row in given],
        [row.rater for row in given],
        [row.context for row in given],
    )


@dataclass(frozen=True)
class AxisResult:
    """One axis: all votes, those on personas that training may have seen and not, every stratum."""

    whole: Tally
    seen: Tally
    unseen: Tally
    strata: dict[str, Tally]


def axis_result(rows: Iterable[Judged], *, drop_both_bad: bool = False) -> AxisResult:
    given = list(rows)
    own: dict[str, Any] = {"drop_both_bad": drop_both_bad}
    names = sorted({row.stratum for row in given if row.stratum})
    return AxisResult(
        whole=tally(given, **own),
        seen=tally((r for r in given if not r.unseen), **own),
        unseen=tally((r for r in given if r.unseen), **own),
        strata={name: tally((r for r in given if r.stratum == name), **own) for name in names},
    )
