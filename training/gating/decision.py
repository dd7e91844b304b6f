"""Candidate against baseline on the same items: a paired bootstrap, and the verdict. Pure.

The unit that is drawn is the prompt: the same question under several personas, or answered several
times, is not independent. Bounds of the mean are one-sided (`training.gating.bounds`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from training.gating.bounds import bounds
from training.gating.rules import AXES, Rules
from training.gating.sameness import Sameness

PASS, FAIL, NO_DIFFERENCE, NO_VERDICT = "pass", "fail", "no_difference", "no_verdict"


@dataclass(frozen=True)
class Pair:
    """One item and draw on one axis; None where the answer could not be made or scored."""

    item: str
    prompt: str
    stratum: str
    candidate: float | None
    baseline: float | None


@dataclass(frozen=True)
class Difference:
    """Mean of candidate − baseline over prompts; None where unknown.

    `low` and `high` are bounds at the one-sided level. `worst` is the upper bound at the level that
    is corrected for the number of comparisons: below 0, harm is shown.
    """

    mean: float | None
    low: float | None
    high: float | None
    worst: float | None
    prompts: int
    n_ok: int
    n_err: int  # pairs of which a side failed; a pair counts once
    candidate_errors: int
    baseline_errors: int
    candidate_mean: float | None = None
    baseline_mean: float | None = None

    @property
    def n(self) -> int:
        return self.n_ok + self.n_err


@dataclass(frozen=True)
class Reason:
    """Why; a code that the site puts into words."""

    code: str
    axis: str = ""
    stratum: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    verdict: str
    reasons: tuple[Reason, ...]
    axes: Mapping[str, Difference]
    strata: Mapping[str, Mapping[str, Difference]]  # axis → stratum

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "reasons": [asdict(reason) for reason in self.reasons],
            "axes": {axis: asdict(found) for axis, found in self.axes.items()},
            "strata": {
                axis: {name: asdict(found) for name, found in groups.items()}
                for axis, groups in self.strata.items()
            },
        }


def compare(pairs: Iterable[Pair], rules: Rules, comparisons: int = 1) -> Difference:
    """The paired difference; failures are counted and left out of every mean (V12)."""
    rows = list(pairs)
    candidate_errors = sum(not known(row.candidate) for row in rows)
    baseline_errors = sum(not known(row.baseline) for row in rows)
    both = [row for row in rows if known(row.candidate) and known(row.baseline)]
    by_prompt: dict[str, list[tuple[float, float]]] = {}
    for row in sorted(both, key=lambda row: (row.prompt, row.item)):
        by_prompt.setdefault(row.prompt, []).append((row.candidate or 0.0, row.baseline or 0.0))
    sides = np.array([np.mean(values, axis=0) for values in by_prompt.values()])
    errors = (len(rows) - len(both), candidate_errors, baseline_errors)
    if not len(sides):
        return Difference(None, None, None, None, 0, 0, *errors)
    gaps = sides[:, 0] - sides[:, 1]
    low, high, worst = bounds(gaps, rules, comparisons)
    means = (float(sides[:, 0].mean()), float(sides[:, 1].mean()))
    counts = (len(gaps), len(both), *errors)
    return Difference(float(gaps.mean()), low, high, worst, *counts, *means)


def decide(
    pairs: Mapping[str, Sequence[Pair]],
    rules: Rules,
    *,
    regressions: Sequence[str] = (),
    sameness: Sameness = Sameness(),  # noqa: B008 - frozen
) -> Decision:
    """Pass: not inferior on quality, superior on personalization, no stratum below its margin.

    `pairs` by axis. Harm that is shown fails, and so does a gain whose price is not shown to be
    small enough. Without harm and without gain there is no difference. Too many errors or too few
    prompts give no verdict.
    """
    groups = {axis: by_stratum(pairs.get(axis, ())) for axis in AXES}
    large = [g for found in groups.values() for g in found.values() if judged(g, rules)]
    comparisons = len(AXES) + len(large)
    axes = {axis: compare(pairs.get(axis, ()), rules, comparisons) for axis in AXES}
    strata = {
        axis: {name: compare(rows, rules, comparisons) for name, rows in found.items()}
        for axis, found in groups.items()
    }
    found = Decision(NO_VERDICT, tuple(unusable(axes, rules)), axes, strata)
    if found.reasons:
        return found
    harm = (*harmful(found, rules, regressions), *uniform(sameness, rules))
    if harm:
        return replace(found, verdict=FAIL, reasons=harm)
    gained = axes["personalization"].low
    if gained is None or gained <= rules.gain:
        reason = Reason("no_gain", "personalization", params={"low": gained, "gain": rules.gain})
        return replace(found, verdict=NO_DIFFERENCE, reasons=(reason,))
    price = tuple(unproven(found, rules))
    return replace(found, verdict=FAIL if price else PASS, reasons=price)


def by_stratum(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.stratum, []).append(pair)
    return dict(sorted(groups.items()))


def judged(pairs: Iterable[Pair], rules: Rules) -> bool:
    """Whether a stratum is large enough to be judged."""
    return len({pair.prompt for pair in pairs}) >= rules.stratum_minimum


def unusable(axes: Mapping[str, Difference], rules: Rules) -> Iterable[Reason]:
    """Failure is never a score: with many of them, or few prompts, nothing can be said."""
    for axis, found in axes.items():
        sides = {"candidate": found.candidate_errors, "baseline": found.baseline_errors}
        for side, errors in sides.items():
            if errors > rules.error_limit * found.n:
                params = {"errors": errors, "n": found.n, "limit": rules.error_limit}
                yield Reason(f"{side}_errors", axis, params=params)
        if found.prompts < rules.minimum:
            params = {"prompts": found.prompts, "minimum": rules.minimum}
            yield Reason("too_few", axis, params=params)


def harmful(found: Decision, rules: Rules, regressions: Sequence[str]) -> Iterable[Reason]:
    """What is shown to be worse, over all comparisons at once."""
    for axis, whole in found.axes.items():
        if whole.worst is not None and whole.worst < 0:
            yield Reason(f"{axis}_lower", axis, params={"mean": whole.mean, "high": whole.worst})
    for axis, name, part in below_margin(found, rules):
        if part.worst is not None and part.worst < 0:
            params = {"mean": part.mean, "margin": rules.stratum_margin}
            yield Reason("stratum_lower", axis, name, params)
    if rules.regressions is not None and len(regressions) > rules.regressions:
        params = {"found": len(regressions), "limit": rules.regressions}
        yield Reason("edge_regressions", params=params)


def uniform(sameness: Sameness, rules: Rules) -> Iterable[Reason]:
    """One answer for everything: a reward was hacked, whatever judges think of that answer."""
    if sameness.rise > rules.sameness:
        params = {"candidate": sameness.candidate, "baseline": sameness.baseline}
        yield Reason("same_answers", params=params)


def unproven(found: Decision, rules: Rules) -> Iterable[Reason]:
    """What a gain may have cost: it must be shown that it did not."""
    low = found.axes["quality"].low
    if low is None or low <= -rules.quality_margin:
        params = {"low": low, "margin": rules.quality_margin}
        yield Reason("quality_not_shown", "quality", params=params)
    for axis, name, part in below_margin(found, rules):
        params = {"mean": part.mean, "margin": rules.stratum_margin}
        yield Reason("stratum_lower", axis, name, params)


def below_margin(found: Decision, rules: Rules) -> Iterable[tuple[str, str, Difference]]:
    """Strata that are large enough and lie below their margin."""
    for axis, groups in found.strata.items():
        for name, part in groups.items():
            large = part.prompts >= rules.stratum_minimum and part.mean is not None
            if large and (part.mean or 0.0) < -rules.stratum_margin:
                yield axis, name, part


def known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
