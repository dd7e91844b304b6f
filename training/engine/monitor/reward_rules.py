"""Rules about the reward: what independent models say, conflicts, what could not be scored."""

from __future__ import annotations

import math

from training.engine.config.schema import RunConfig
from training.engine.monitor import history as h
from training.engine.monitor import remedies
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import History
from training.engine.monitor.policy_rules import falling, rising, window

SMOOTH = 10  # logged steps
STEP_NOISE = 8  # standard errors by which a fall over steps must exceed chance


def part_of(name: str) -> str:
    """“quality” of parts/quality."""
    return name.rpartition("/")[2]


def audited_fall(history: History, config: RunConfig) -> Finding | None:
    """What was held out of the reward says that answers became worse, though the reward did not.

    This is what a real run has instead of ground truth: it sees over-optimisation that the reward
    itself cannot see. The looks at held-out prompts are trusted first: the questions are the same
    each time, while steps differ by theirs.
    """
    reward = history.series(h.REFERENCE).smooth(SMOOTH)
    if len(reward) >= 2 and reward.values[-1] - reward.values[0] <= -config.monitor.drop:
        return None
    for name in (h.AUDITOR_QUALITY, h.AUDITOR_PERSONALIZATION, h.AUDIT_RULES):
        found = _fall_between_looks(history, config, name) or _fall_in_steps(history, config, name)
        if found:
            curve, fall, least, steps = found
            return Finding(
                "audited_fall",
                history.step,
                f"{name}, which gives no reward, fell by {fall:.2f}.",
                (h.REFERENCE, curve, h.SPREAD_QUALITY),
                steps,
                {"fall": fall, "least": least},
                {**remedies.cautious_ensemble(config), **remedies.more_beta(config)},
                "Compare answers before and after; continue from the best checkpoint.",
            )
    return None


Fall = tuple[str, float, float, tuple[int, int]]  # curve, how far, what noise could do, steps


def _fall_between_looks(history: History, config: RunConfig, name: str) -> Fall | None:
    """The last look against the best one; three standard errors of the difference."""
    curve = f"eval/{name}"
    looks, errors = history.series(curve), history.series(f"eval/error/{name}")
    if len(looks) < 2 or len(errors) != len(looks):
        return None
    best = max(range(len(looks)), key=lambda i: looks.values[i])
    fall = looks.values[best] - looks.values[-1]
    noise = 3 * math.hypot(errors.values[best], errors.values[-1])
    least = max(config.monitor.quality_drop, noise)
    return (curve, fall, least, window(looks)) if fall > least else None


def _fall_in_steps(history: History, config: RunConfig, name: str) -> Fall | None:
    """Means over ten steps; their noise counts for more, because the questions change."""
    audit = history.series(name)
    smooth = audit.smooth(SMOOTH)
    if len(smooth) < 5:
        return None
    fall = max(smooth.values) - max(smooth.values[-3:])
    least = max(2 * config.monitor.quality_drop, STEP_NOISE * audit.noise() / math.sqrt(SMOOTH))
    return (name, fall, least, window(smooth)) if fall > least else None


def probe_fall(history: History, config: RunConfig) -> Finding | None:
    """The policy would less and less rather give the answers that are known to be good."""
    m = config.monitor
    shares, margins = history.series(h.PROBES), history.series(h.PROBE_MARGIN)
    if len(shares) < 2:
        return None
    best, now = max(shares.values), shares.values[-1]
    start, margin = (margins.values[0], margins.values[-1]) if len(margins) else (0.0, 0.0)
    lost = best - now > m.probe_fall
    if not lost and not (start > 0 and margin < m.probe_margin * start):
        return None
    return Finding(
        "probe_fall",
        history.step,
        f"Good answers are the likelier ones in {now:.0%} of the probes (best {best:.0%}), by "
        f"{margin:.2f} nats a token (at the start {start:.2f}).",
        (h.PROBES, h.PROBE_MARGIN, h.REFERENCE),
        window(shares),
        {"best": best, "now": now, "start_margin": start, "margin": margin},
        {**remedies.more_beta(config), **remedies.half_rate(config)},
        "Read the answers to the probes' questions; continue from an earlier checkpoint.",
        "critical" if best - now > 2 * m.probe_fall else "warning",
    )


def auditor_gap(history: History, config: RunConfig) -> Finding | None:
    """The reward models see a gain that the held-out one does not see."""
    for name, (part, audit) in h.GAPS.items():
        grown = _gap_between_looks(history, config, name) or _gap_in_steps(history, config, name)
        if grown:
            return Finding(
                "auditor_gap",
                history.step,
                f"Reward models see {grown:.2f} more {name} than the one held out.",
                (part, audit, f"spread/{name}"),
                window(history.series(part)),
                {"gap": grown},
                {**remedies.cautious_ensemble(config), **remedies.more_beta(config)},
            )
    return None


def _gap_between_looks(history: History, config: RunConfig, name: str) -> float | None:
    """On the same questions, answer by answer: three standard errors of the growth."""
    looks = history.series(f"eval/gap/{name}")
    errors = history.series(f"eval/error/gap/{name}")
    if len(looks) < 2 or len(errors) != len(looks):
        return None
    grown = looks.values[-1] - looks.values[0]
    noise = 3 * math.hypot(errors.values[0], errors.values[-1])
    return grown if grown > max(config.monitor.quality_drop, noise) else None


def _gap_in_steps(history: History, config: RunConfig, name: str) -> float | None:
    m = config.monitor
    part, audit = h.GAPS[name]
    gap = history.gap(part, audit)
    if len(gap) < m.window or not rising(history.series(part).last(m.window)):
        return None
    grown = gap.last(5).mean - gap.first(5).mean
    return grown if grown > 2 * m.quality_drop else None


def spread(history: History, config: RunConfig) -> Finding | None:
    """The members of an ensemble disagree: the policy leaves what they learned from."""
    for name in (h.SPREAD_QUALITY, h.SPREAD_PERSONALIZATION):
        found = history.series(name)
        if len(found) < config.monitor.window:
            continue
        start, now = found.first(5).mean, found.last(5).mean
        if now > config.monitor.spread_rise * start and now > 0.08 and rising(found):
            return Finding(
                "spread",
                history.step,
                f"The reward models disagree by {now:.2f}; at the start it was {start:.2f}.",
                (name, h.REFERENCE),
                window(found),
                {"start": start, "now": now},
                remedies.cautious_ensemble(config),
                "Label answers of the last steps and retrain the reward model with them.",
            )
    return None


def conflict(history: History, config: RunConfig) -> Finding | None:
    """Within groups, answers that gain on one part lose on the other."""
    found = history.series(h.PARTS_CORRELATION).last(config.monitor.window)
    if len(found) < config.monitor.window or found.mean > config.monitor.conflict:
        return None
    return Finding(
        "conflict",
        history.step,
        f"Quality and personalization pull against each other (correlation {found.mean:.2f}).",
        (h.PARTS_CORRELATION, h.QUALITY, h.PERSONALIZATION),
        window(found),
        {"correlation": found.mean},
        remedies.by_branch(config),
        "Look for a style that one reward model takes for quality; add ties between styles.",
    )


def imbalance(history: History, config: RunConfig) -> Finding | None:
    """One part falls for long while the sum rises."""
    n = 2 * config.monitor.window
    total = history.series(h.REFERENCE).last(n)
    for name in (h.QUALITY, h.PERSONALIZATION):
        part = history.series(name).last(n)
        if len(part) < n or not (rising(total) and falling(part)):
            continue
        if -part.rise()[0] > config.monitor.quality_drop:
            return Finding(
                "imbalance",
                history.step,
                f"{part_of(name).capitalize()} falls by {-part.rise()[0]:.2f}, the reward rises.",
                (h.REFERENCE, h.QUALITY, h.PERSONALIZATION),
                window(part),
                {"fall": -part.rise()[0]},
                remedies.by_branch(config),
            )
    return None


def zero_spread(history: History, config: RunConfig) -> Finding | None:
    """Groups in which all answers earn the same teach nothing."""
    found = history.series(h.ZERO_SPREAD).last(10)
    if len(found) < 10 or found.mean <= config.monitor.zero_spread:
        return None
    return Finding(
        "zero_spread",
        history.step,
        f"In {found.mean:.0%} of the groups all answers earn the same.",
        (h.ZERO_SPREAD, h.ENTROPY),
        window(found),
        {"share": found.mean},
        remedies.more_entropy(config),
        "Use harder prompts, or a reward with more steps between good and bad.",
    )


def unscored(history: History, config: RunConfig) -> Finding | None:
    """Answers that could not be scored: left out, but too many of them."""
    found = history.series(h.UNSCORED).last(5)
    if not found or found.mean <= config.monitor.unscored:
        return None
    return Finding(
        "unscored",
        history.step,
        f"{found.mean:.0%} of the answers could not be scored. They count for nothing, not for 0.",
        (h.UNSCORED, h.REFERENCE),
        window(found),
        {"share": found.mean},
        advice="See whether the judge or the reward models answer.",
        severity="critical" if found.mean > 0.5 else "warning",
    )
