"""Pre-registered exclusions: which votes are left out of the second set of ratings, and why.

Pure. The rules look at how a vote was given, never at which contestant it favoured, so that they
are blind to the result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.enums import ExclusionRule, Verdict

_DECIDED = (Verdict.LEFT.value, Verdict.RIGHT.value)
ONE_SIDED_MINIMUM = 20  # decided votes before a rater's sides are looked at


@dataclass(frozen=True, slots=True)
class CastVote:
    """A counted vote as exclusions and ratings see it; names are labels, sides resolved later."""

    rater: str
    context: str
    stratum: str
    left: str
    right: str
    verdicts: Mapping[str, str]
    active_ms: int
    late: bool
    owner: bool


def excluded_votes(votes: Sequence[CastVote], rules: Mapping[str, int]) -> dict[int, str]:
    """Index of each vote to leave out → the first rule that hits it.

    `rules`: too_fast → minimum active milliseconds; one_sided → largest percentage of decided
    votes on one side for raters with at least 20; late and owner → 1 switches them on.
    """
    sided = _one_sided(votes, rules[ExclusionRule.ONE_SIDED]) if rules.get("one_sided") else set()
    found: dict[int, str] = {}
    for number, vote in enumerate(votes):
        hits = {
            ExclusionRule.TOO_FAST: vote.active_ms < rules.get(ExclusionRule.TOO_FAST, 0),
            ExclusionRule.ONE_SIDED: vote.rater in sided,
            ExclusionRule.LATE: bool(rules.get(ExclusionRule.LATE)) and vote.late,
            ExclusionRule.OWNER: bool(rules.get(ExclusionRule.OWNER)) and vote.owner,
        }
        for rule, hit in hits.items():
            if hit:
                found[number] = rule.value
                break
    return found


def _one_sided(votes: Sequence[CastVote], percent: int) -> set[str]:
    """A vote is decided when any axis is; with one axis left and one right it is on no side."""
    sides: dict[str, Counter[str]] = defaultdict(Counter)
    for vote in votes:
        chosen = {verdict for verdict in vote.verdicts.values() if verdict in _DECIDED}
        if chosen:
            sides[vote.rater][chosen.pop() if len(chosen) == 1 else "both"] += 1
    return {
        rater
        for rater, counts in sides.items()
        if counts.total() >= ONE_SIDED_MINIMUM
        and 100 * max(counts[side] for side in _DECIDED) > percent * counts.total()
    }


def flow(votes: Sequence[CastVote], excluded: Mapping[int, str]) -> dict[str, int]:
    """Votes counted, and how many each rule left out."""
    return {"voted": len(votes), **dict(sorted(Counter(excluded.values()).items()))}
