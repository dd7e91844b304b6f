"""What an annotator alone is told about her own work. Pure: no Django, no models.

Times are seconds since an epoch, durations milliseconds. Every signal is None where there is too
little to say anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from annotation.gold import interval

PAUSE_S = 30 * 60  # a longer gap begins the run of work anew
LONG_RUN_S = 90 * 60
RECENT, BEFORE = 10, 20  # labels that pace needs, the last ones and those before
CHANGED = 1.5  # times slower or faster
REPEATS, DECIDED = 10, 30  # judgements that the shares need


@dataclass(frozen=True)
class Pace:
    """Seconds an item: her last ones, and the median of all before."""

    recent_s: float
    usual_s: float

    @property
    def change(self) -> str:
        """Whether she has become "slower" or "faster" by half; else empty."""
        if self.recent_s >= CHANGED * self.usual_s:
            return "slower"
        return "faster" if self.recent_s * CHANGED <= self.usual_s else ""


@dataclass(frozen=True)
class Share:
    """`k` of `n`, with the interval in which the share lies in 95 of 100 cases."""

    k: int
    n: int
    lo: float
    hi: float

    @property
    def percent(self) -> int:
        return round(100 * self.k / self.n)

    @property
    def bounds(self) -> tuple[int, int]:
        return round(100 * self.lo), round(100 * self.hi)


def share(k: int, n: int, least: int) -> Share | None:
    """The share with its interval, from `least` judgements on."""
    return Share(k, n, *interval(k, n)) if n >= max(least, 1) else None


def consistency(same: Sequence[bool]) -> Share | None:
    """How often the same came out where she judged a pair twice."""
    return share(sum(same), len(same), REPEATS)


def left_preference(chosen: Sequence[str]) -> Share | None:
    """How often A was preferred, of the verdicts that preferred one."""
    decided = [side for side in chosen if side in ("left", "right")]
    return share(decided.count("left"), len(decided), DECIDED)


def leans(found: Share | None) -> str:
    """The side that she chooses more often than chance explains: "left", "right" or empty."""
    if found is None or found.lo <= 0.5 <= found.hi:
        return ""
    return "left" if found.lo > 0.5 else "right"


def pace(active_ms: Sequence[int]) -> Pace | None:
    """Pace from active times, the newest first."""
    timed = [value for value in active_ms if value > 0]
    recent, before = timed[:RECENT], timed[RECENT:]
    if len(before) < BEFORE:
        return None
    return Pace(median(recent) / 1000, median(before) / 1000)


def run_began(times: Sequence[float], now: float) -> float | None:
    """When the present run of work began: submissions, newest first, without a longer pause."""
    began = None
    for at in times:
        if (now if began is None else began) - at > PAUSE_S:
            break
        began = at
    return began


def needs_rest(began: float | None, now: float, found: Pace | None) -> bool:
    """Whether to suggest a break: a long run of work, and the pace has changed."""
    long = began is not None and now - began >= LONG_RUN_S
    return bool(long and found and found.change)
