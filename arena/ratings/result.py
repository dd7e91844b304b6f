"""What a rating asks for and what it answers, both plain data that JSON can hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from arena.ratings.clusters import Cluster
from arena.ratings.counts import BothBad
from arena.ratings.elo import BASE
from arena.ratings.graph import Note
from arena.ratings.side import SideEffect


class Method(StrEnum):
    """How votes become strengths."""

    BRADLEY_TERRY = "bradley_terry"  # a tie is half a win for each
    DAVIDSON = "davidson"  # ties have a parameter of their own
    ELO = "elo"  # sequential online Elo: a diagnostic that depends on the order of votes


class Interval(StrEnum):
    """Where intervals come from."""

    SANDWICH = "sandwich"
    BOOTSTRAP = "bootstrap"  # resamples raters
    NONE = "none"


@dataclass(frozen=True)
class RatingSpec:
    """Everything that decides the numbers, fixed before the first vote.

    `anchor` names the contestant that gets `base`; None puts the mean there. `seed` feeds the
    bootstrap and the simulated simultaneous correction. Raises ValueError where a number makes no
    sense.
    """

    method: Method = Method.BRADLEY_TERRY
    ci: Interval = Interval.SANDWICH
    cluster: Cluster = Cluster.BOTH
    both_bad: BothBad = BothBad.AS_TIE
    anchor: str | None = None
    base: float = BASE
    confidence: float = 0.95
    seed: int = 0
    replicates: int = 1000
    side: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise ValueError("confidence lies between 0 and 1")
        if self.replicates < 2:
            raise ValueError("a bootstrap takes at least 2 replicates")

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RatingSpec:
        """The spec that `to_dict` wrote; ValueError on unknown fields or values."""
        kinds: dict[str, Callable[[Any], Any]] = {
            "method": Method,
            "ci": Interval,
            "cluster": Cluster,
            "both_bad": BothBad,
        }
        if unknown := sorted(set(data) - set(cls.__dataclass_fields__)):
            raise ValueError(f"unknown fields in a rating spec: {', '.join(unknown)}")
        return cls(**{k: kinds[k](v) if k in kinds else v for k, v in data.items()})

    def to_dict(self) -> dict[str, Any]:
        return {k: str(v) if isinstance(v, StrEnum) else v for k, v in asdict(self).items()}


@dataclass(frozen=True)
class RatingRow:
    """One contestant.

    `strength`: log strength, centred at 0. `rating`, `lo`, `hi`, `se`: Elo scale; the interval is
    that of the centred strength, shifted along with the rating. `rank_lo`, `rank_hi`: best and
    worst rank that the votes allow. `votes`: verdicts received; `wins`, `losses`, `ties`,
    `both_bad`: what they were; rates are shares of `votes`. `group`: contestants compare only
    within a group. None stands for what the votes cannot tell.
    """

    contestant: str
    strength: float | None
    rating: float | None
    lo: float | None
    hi: float | None
    se: float | None
    rank_lo: int | None
    rank_hi: int | None
    votes: int
    wins: int
    losses: int
    ties: int
    both_bad: int
    group: int | None

    @property
    def tie_rate(self) -> float | None:
        return self.ties / self.votes if self.votes else None

    @property
    def both_bad_rate(self) -> float | None:
        return self.both_bad / self.votes if self.votes else None

    @property
    def rank(self) -> str:
        """The rank interval in words: "2" or "2–4", "–" where there is none."""
        if self.rank_lo is None or self.rank_hi is None:
            return "–"
        lo, hi = self.rank_lo, self.rank_hi
        return str(lo) if lo == hi else f"{lo}–{hi}"

    def to_dict(self) -> dict[str, Any]:
        rates = {"tie_rate": self.tie_rate, "both_bad_rate": self.both_bad_rate}
        return {**asdict(self), **rates}


@dataclass(frozen=True)
class RatingResult:
    """The ratings of one axis, strongest first, unrated contestants last.

    `win_fraction[i][j]`: points of row i against row j as a share of their battles, None where
    they never met; `battles[i][j]`: how many. `first`: the contestant that is surely above all
    others, if any. `nu`: Davidson's tie parameter. `cluster`, `df`, `critical`: the clustering
    really used, its degrees of freedom (None: normal) and the multiplier of the rank contrasts.
    """

    spec: RatingSpec
    rows: tuple[RatingRow, ...]
    win_fraction: tuple[tuple[float | None, ...], ...]
    battles: tuple[tuple[int, ...], ...]
    votes: int
    raters: int | None
    contexts: int | None
    first: str | None = None
    nu: float | None = None
    side: SideEffect | None = None
    cluster: Cluster | None = None
    df: float | None = None
    critical: float | None = None
    weights: dict[str, float] | None = None
    notes: tuple[Note, ...] = field(default=())

    def row(self, contestant: str) -> RatingRow:
        """The row of a contestant; KeyError where there is none."""
        for row in self.rows:
            if row.contestant == contestant:
                return row
        raise KeyError(contestant)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data, without NaN or infinity."""
        data = asdict(self)
        data["spec"] = self.spec.to_dict()
        data["method"] = str(self.spec.method)
        data["cluster"] = None if self.cluster is None else str(self.cluster)
        data["rows"] = [row.to_dict() for row in self.rows]
        return data
