"""Reward hacking: the reward rises, and what is independent of it says that nothing became better.

One doubt is no proof: longer answers may be better ones, short ones may be what was asked for, a
policy that learns leaves its reference. So two different doubts are needed beside a rising reward.
"""

from __future__ import annotations

from training.engine.config.schema import RunConfig
from training.engine.monitor import history as h
from training.engine.monitor import remedies
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import History
from training.engine.monitor.policy_rules import alike, babbles, kl_top, rising, window

Doubt = tuple[str, str]  # what it says, the curve that shows it


def hacking(history: History, config: RunConfig) -> Finding | None:
    """Requirements E12, G10: length and reward together are the best known case, not the only."""
    reward = history.series(h.REFERENCE)
    if len(reward) < config.monitor.window or not gained(history, config):
        return None
    found = doubts(history, config)
    if len(found) < 2:
        return None
    said = [text for text, _ in found]
    longer = any(curve == h.LENGTH for _, curve in found)
    return Finding(
        "hacking",
        history.step,
        f"The reward rose, and {', '.join(said[:-1])} and {said[-1]}.",
        (h.REFERENCE, *dict.fromkeys(curve for _, curve in found)),
        window(reward.last(config.monitor.window)),
        {"reward_rise": reward.last(5).mean - reward.first(5).mean, "doubts": len(found)},
        {
            **(remedies.more_redundancy(config) if longer else remedies.cautious_ensemble(config)),
            **remedies.more_beta(config),
        },
        "Read the answers, mine phrases, retrain the reward model with them as bad examples.",
        "critical" if len(found) > 2 else "warning",
    )


def gained(history: History, config: RunConfig) -> bool:
    """The reference reward rises within the window, or stands clearly above its start."""
    reward = history.series(h.REFERENCE)
    risen = reward.last(5).mean - reward.first(3).mean
    return rising(reward.last(config.monitor.window)) or risen > 3 * reward.noise()


def doubts(history: History, config: RunConfig) -> list[Doubt]:
    """What speaks against a real gain."""
    found = [
        length(history, config), redundancy(history, config), sameness(history, config),
        drift(history, config), disagreement(history, config), auditors(history, config),
        probes(history, config),
    ]  # fmt: skip
    return [doubt for doubt in found if doubt]


def length(history: History, config: RunConfig) -> Doubt | None:
    """Longer within the window and than at the start, without longer prompts; or mere stubs."""
    m = config.monitor
    whole = history.series(h.LENGTH)
    recent = whole.last(m.window)
    start, now = whole.first(2).mean, whole.last(5).mean
    if len(whole) >= 7 and now < (1 - m.length_fall) * start:
        return f"answers shrank from {start:.0f} to {now:.0f} tokens", h.LENGTH
    change = recent.relative_rise()
    if not (rising(recent) and change > m.length_rise and now > (1 + m.length_rise) * start):
        return None
    prompts = history.series(h.PROMPT_LENGTH).last(m.window)
    if len(prompts) and prompts.relative_rise() > change / 2:
        return None
    return f"answers became {change:.0%} longer", h.LENGTH


def redundancy(history: History, config: RunConfig) -> Doubt | None:
    part = history.series(h.REDUNDANCY).last(config.monitor.window)
    if not rising(part) or part.rise()[0] < config.monitor.redundancy_rise:
        return None
    return "answers became more redundant", h.REDUNDANCY


def sameness(history: History, config: RunConfig) -> Doubt | None:
    if alike(history, config):
        return "different questions get the same answers", h.DISTINCT
    if babbles(history, config):
        return "answers became noise", h.ENTROPY
    return None


def drift(history: History, config: RunConfig) -> Doubt | None:
    """A policy that learns well stays far below the limit; the limit is one nat a token."""
    kl = history.series(h.KL)
    if not config.grpo.beta or len(kl) < 5 or kl.last(5).mean <= kl_top(kl, config):
        return None
    return f"the policy is {kl.last(5).mean:.1f} nats a token from its reference", h.KL


def disagreement(history: History, config: RunConfig) -> Doubt | None:
    for name in (h.SPREAD_QUALITY, h.SPREAD_PERSONALIZATION):
        spread = history.series(name)
        if len(spread) >= 10 and spread.last(5).mean > config.monitor.spread_rise * max(
            spread.first(5).mean, config.monitor.spread_least
        ):
            return "the reward models disagree more", name
    return None


def auditors(history: History, config: RunConfig) -> Doubt | None:
    """A part of the reward leaves its held-out reward model behind, by more than chance."""
    m = config.monitor
    for part, audit in h.GAPS.values():
        gap = history.gap(part, audit).last(m.window)
        if len(gap) == m.window and rising(gap) and gap.rise()[0] > m.quality_drop:
            return "a held-out reward model does not follow", audit
    return None


def probes(history: History, config: RunConfig) -> Doubt | None:
    """The policy no longer prefers answers that are known to be good."""
    looks = history.series(h.PROBES)
    if len(looks) < 2 or looks.values[-1] > max(looks.values) - config.monitor.probe_fall:
        return None
    return f"it prefers the good answer in {looks.values[-1]:.0%} of the probes", h.PROBES
