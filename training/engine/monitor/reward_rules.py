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


def part_of(name: str) -> str:
    """“quality” of parts/quality."""
    return name.rpartition("/")[2]


def audited_fall(history: History, config: RunConfig) -> Finding | None:
    """The reward rises, and what was held out of it says that answers became worse.

    This is what a real run has instead of ground truth: it sees over-optimisation that the reward
    itself cannot see.
    """
    m = config.monitor
    for name in (h.AUDITOR_QUALITY, h.AUDITOR_PERSONALIZATION, h.AUDIT_RULES):
        audit = history.series(name).smooth(SMOOTH)
        reward = history.series(h.REFERENCE).smooth(SMOOTH)
        if len(audit) < 5 or len(reward) < 5:
            continue
        least = max(m.quality_drop, 5 * history.series(name).noise() / math.sqrt(SMOOTH))
        fall = max(audit.values) - max(audit.values[-3:])
        gained = reward.values[-1] - reward.values[0]
        if fall > least and gained > -m.drop:
            return Finding(
                "audited_fall",
                history.step,
                f"{name}, which gives no reward, fell by {fall:.2f}.",
                (h.REFERENCE, name, h.SPREAD_QUALITY),
                window(audit),
                {"fall": fall, "least": least, "reward_gain": gained},
                {**remedies.cautious_ensemble(config), **remedies.more_beta(config)},
                "Compare answers before and after; continue from the best checkpoint.",
            )
    return None


def auditor_gap(history: History, config: RunConfig) -> Finding | None:
    """The reward models see a gain that the held-out one does not see."""
    m = config.monitor
    for part, audit in (
        (h.QUALITY, h.AUDITOR_QUALITY),
        (h.PERSONALIZATION, h.AUDITOR_PERSONALIZATION),
    ):
        inside, outside = history.series(part), history.series(audit)
        if len(inside) < m.window or len(outside) < m.window:
            continue
        start = inside.first(5).mean - outside.first(5).mean
        now = inside.last(5).mean - outside.last(5).mean
        if now - start > 2 * m.quality_drop and rising(inside.last(m.window)):
            return Finding(
                "auditor_gap",
                history.step,
                f"Reward models see {now - start:.2f} more {part_of(part)} than the one held out.",
                (part, audit, h.SPREAD_QUALITY),
                window(inside),
                {"gap": now - start},
                {**remedies.cautious_ensemble(config), **remedies.more_beta(config)},
            )
    return None


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
