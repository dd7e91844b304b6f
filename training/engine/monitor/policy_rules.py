"""Rules about what the policy does: length, drift, exploration, collapse, tools."""

from __future__ import annotations

from training.engine import numbers
from training.engine.config.schema import RunConfig
from training.engine.monitor import history as h
from training.engine.monitor import remedies
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import History, Series

SURE = 3.0  # t value of a slope that is not noise


def window(series: Series) -> tuple[int, int]:
    return (series.steps[0], series.steps[-1]) if series.steps else (0, 0)


def rising(series: Series) -> bool:
    change, t = series.rise()
    return change > 0 and t > SURE


def falling(series: Series) -> bool:
    change, t = series.rise()
    return change < 0 and t < -SURE


def length_spike(history: History, config: RunConfig) -> Finding | None:
    """A sudden jump: the last five logged steps against the median of the window before."""
    m = config.monitor
    length = history.series(h.LENGTH)
    before, recent = length.first(max(0, len(length) - 5)).last(m.window), length.last(5)
    usual = numbers.median(before.values)
    if len(before) < 5 or not usual or recent.mean < m.length_jump * usual:
        return None
    return Finding(
        "length_spike",
        history.step,
        f"Answers jumped from {usual:.0f} to {recent.mean:.0f} tokens.",
        (h.LENGTH, h.CLIPPED, h.REFERENCE),
        (before.steps[0], recent.steps[-1]),
        {"before": usual, "after": recent.mean},
        {**remedies.more_redundancy(config), **remedies.half_rate(config)},
    )


def length_collapse(history: History, config: RunConfig) -> Finding | None:
    """Answers shrink to a stub. The first two steps are the start: some policies fall in five."""
    m = config.monitor
    length = history.series(h.LENGTH)
    start, recent = length.first(2), length.last(5)
    if len(length) < 7 or recent.mean > (1 - m.length_fall) * start.mean:
        return None
    fall = 1 - recent.mean / start.mean
    return Finding(
        "length_collapse",
        history.step,
        f"Answers became {fall:.0%} shorter than at the start.",
        (h.LENGTH, h.REFERENCE, h.ENTROPY),
        window(length),
        {"fall": fall},
        remedies.steadier(config),
        "Read the answers: short may be right, a stub is not. Probe the reward model with stubs.",
    )


def collapse(history: History, config: RunConfig) -> Finding | None:
    """The reference reward had risen and lies clearly below its start; or, whatever the reward
    says, the policy left its reference and answers all alike, or at random."""
    return _reward_collapse(history, config) or _policy_collapse(history, config)


def _reward_collapse(history: History, config: RunConfig) -> Finding | None:
    m = config.monitor
    reward = history.series(h.REFERENCE).smooth(5)
    if len(reward) < 10:
        return None
    start, now, best = reward.values[0], reward.values[-1], max(reward.values)
    if now > start - m.drop or reward.last(5).mean > start - m.drop:
        return None
    return Finding(
        "collapse",
        history.step,
        f"The reference reward fell to {now:.3f}; it started at {start:.3f} and was {best:.3f}.",
        (h.REFERENCE, h.KL, h.GRAD_NORM),
        window(reward),
        {"start": start, "best": best, "now": now},
        {**remedies.steadier(config), **remedies.cautious_ensemble(config)},
        "Continue from the checkpoint with the best reference reward.",
        "critical",
    )


def _policy_collapse(history: History, config: RunConfig) -> Finding | None:
    kl = history.series(h.KL)
    if len(kl) and kl.last(5).mean <= kl_top(kl, config):
        return None
    if alike(history, config):
        curve, said = h.DISTINCT, "The policy says the same to everything"
    elif babbles(history, config):
        curve, said = h.ENTROPY, "The policy says anything to everything"
    else:
        return None
    seen = history.series(curve)
    start, now = seen.first(2).mean, seen.last(5).mean
    return Finding(
        "collapse",
        history.step,
        f"{said}: {curve} went from {start:.2f} to {now:.2f}.",
        (curve, h.KL, h.REFERENCE),
        window(seen),
        {"start": start, "now": now, "kl": kl.last(5).mean},
        {**remedies.steadier(config), **remedies.cautious_ensemble(config)},
        "Continue from the last checkpoint before it.",
        "critical",
    )


def babbles(history: History, config: RunConfig) -> bool:
    """Whether the entropy is many times what it was in the first two steps."""
    entropy = history.series(h.ENTROPY)
    start = entropy.first(2).mean
    return len(entropy) >= 7 and entropy.last(5).mean > config.monitor.babble * start


def alike(history: History, config: RunConfig) -> bool:
    """Whether a step holds far fewer different answers than the first two did."""
    distinct = history.series(h.DISTINCT)
    start = distinct.first(2).mean
    return len(distinct) >= 7 and distinct.last(5).mean < config.monitor.alike * start


def kl_top(kl: Series, config: RunConfig) -> float:
    """Where the band ends that the first steps of this run calibrated (nats per token)."""
    m = config.monitor
    usual = max(kl.first(m.calibrate).values, default=0.0)
    return min(m.kl_limit, max(m.kl_floor, m.kl_factor * usual))


def kl_band(history: History, config: RunConfig) -> Finding | None:
    """KL leaves the band that the first steps calibrated. Per token (k3, nats); warns only."""
    m = config.monitor
    kl = history.series(h.KL)
    if config.grpo.beta == 0 or len(kl) < m.calibrate + 5:
        return None
    top = kl_top(kl, config)
    recent = kl.last(5)
    if recent.mean <= top:
        return None
    severe = recent.mean > m.kl_limit
    return Finding(
        "kl_band",
        history.step,
        f"KL to the reference is {recent.mean:.2f} nats per token; the band ends at {top:.2f}.",
        (h.KL, h.REFERENCE),
        window(kl.last(m.window)),
        {"kl": recent.mean, "band": top},
        {**remedies.more_beta(config), **remedies.half_rate(config)},
        severity="critical" if severe else "warning",
    )


def over_exploration(history: History, config: RunConfig) -> Finding | None:
    """Entropy or invalid actions rise and success falls: the sampling is too hot."""
    m = config.monitor
    entropy = history.series(h.ENTROPY)
    success = (
        history.series(h.SUCCESS) if len(history.series(h.SUCCESS)) else history.series(h.REFERENCE)
    )
    invalid = history.series(h.INVALID).last(m.window)
    if len(entropy) < m.window or len(success) < m.window:
        return None
    hot = entropy.last(5).mean > m.entropy_rise * entropy.first(5).mean
    hot = hot or (rising(invalid) and rising(entropy.last(m.window)))
    down = success.first(5).mean - success.last(5).mean
    if not (hot and falling(success.last(m.window)) and down > m.quality_drop):
        return None
    return Finding(
        "over_exploration",
        history.step,
        f"Entropy rose from {entropy.first(5).mean:.2f} to {entropy.last(5).mean:.2f} while "
        f"success fell by {down:.2f}.",
        (h.ENTROPY, success.name, h.INVALID),
        window(entropy.last(m.window)),
        {"fall": down, "temperature": config.grpo.temperature},
        {**remedies.cooler(config)} or remedies.half_rate(config),
    )


def style_collapse(history: History, config: RunConfig) -> Finding | None:
    """Groups without spread and hardly any entropy: the policy says one thing only."""
    m = config.monitor
    zero, entropy = history.series(h.ZERO_SPREAD).last(5), history.series(h.ENTROPY).last(5)
    if len(zero) < 5 or len(entropy) < 5:
        return None
    if zero.mean <= m.zero_spread or entropy.mean >= m.entropy_low:
        return None
    return Finding(
        "style_collapse",
        history.step,
        f"Entropy is {entropy.mean:.3f} and {zero.mean:.0%} of the groups answer alike.",
        (h.ENTROPY, h.ZERO_SPREAD, h.REFERENCE),
        window(zero),
        {"entropy": entropy.mean, "zero_spread": zero.mean},
        {**remedies.more_entropy(config), **remedies.half_rate(config)},
        "Start again from an earlier checkpoint: a policy without spread does not recover.",
        "critical",
    )


def clipped(history: History, config: RunConfig) -> Finding | None:
    """Most answers are cut off: nothing can be learned from their ends."""
    share = history.series(h.CLIPPED).last(5)
    if len(share) < 5 or share.mean <= config.monitor.clipped:
        return None
    return Finding(
        "clipped",
        history.step,
        f"{share.mean:.0%} of the answers are cut off at {config.grpo.max_completion} tokens.",
        (h.CLIPPED, h.LENGTH),
        window(share),
        {"share": share.mean},
        remedies.longer(config),
    )


def tool_decline(history: History, config: RunConfig) -> Finding | None:
    """Fewer and fewer correct tool calls as the reward goes on."""
    rate = history.series(h.TOOL_RATE)
    if len(rate) < config.monitor.window or not falling(rate.last(config.monitor.window)):
        return None
    if rate.last(5).mean > 0.8 * rate.first(5).mean:
        return None
    return Finding(
        "tool_decline",
        history.step,
        f"Correct tool calls fell from {rate.first(5).mean:.0%} to {rate.last(5).mean:.0%}.",
        (h.TOOL_RATE, h.REFERENCE),
        window(rate),
        {"start": rate.first(5).mean, "now": rate.last(5).mean},
        remedies.more_beta(config),
        "Give the tool term the largest weight at the start.",
    )


def wander(history: History, config: RunConfig) -> Finding | None:
    """Episodes become longer without more success."""
    return _steps(history, config, "wander", up=True)


def shortcut(history: History, config: RunConfig) -> Finding | None:
    """Episodes become much shorter and success does not rise: steps are skipped."""
    return _steps(history, config, "shortcut", up=False)


def _steps(history: History, config: RunConfig, rule: str, *, up: bool) -> Finding | None:
    m = config.monitor
    steps, success = history.series(h.EPISODE_STEPS), history.series(h.SUCCESS).last(m.window)
    if len(steps) < m.window or len(success) < m.window or rising(success):
        return None
    ratio = steps.last(5).mean / max(1e-9, steps.first(5).mean)
    if (up and ratio < 1.5) or (not up and ratio > 0.5):
        return None
    way = "more" if up else "fewer"
    return Finding(
        rule,
        history.step,
        f"Episodes take {way} steps ({steps.first(5).mean:.1f} → {steps.last(5).mean:.1f}) "
        "without more success.",
        (h.EPISODE_STEPS, h.SUCCESS),
        window(steps),
        {"ratio": ratio},
        remedies.more_beta(config),
    )
