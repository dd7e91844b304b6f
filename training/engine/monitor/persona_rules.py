"""Rules about the persona: answers still depend on it, and it stands still for a while."""

from __future__ import annotations

from training.engine.config.schema import RunConfig
from training.engine.monitor import history as h
from training.engine.monitor import remedies
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import History

LEAST = 0.05  # bits; below it nothing depended on the persona in the first place


def persona_lost(history: History, config: RunConfig) -> Finding | None:
    """What two people are told becomes alike: a model that was quantised, or fell onto one style.

    The reference is the best look so far: of a quantised model, the look before.
    """
    looks = history.series(h.SENSITIVITY)
    if len(looks) < 2:
        return None
    best, now = max(looks.values), looks.values[-1]
    if best < LEAST or now >= config.monitor.sensitivity * best:
        return None
    return Finding(
        "persona_lost",
        history.step,
        f"Two people are told {now:.2f} bits of difference; it was {best:.2f}.",
        (h.SENSITIVITY, h.PROBE_SWAP, h.PERSONALIZATION),
        (looks.steps[0], looks.steps[-1]),
        {"best": best, "now": now},
        remedies.more_persona(config),
        "After a quantisation: quantise less, or train LoRA over the frozen quantised model.",
    )


def persona_churn(history: History, config: RunConfig) -> Finding | None:
    """Summaries change within a dialogue though nobody asked: its answers change with them."""
    lives = history.series(h.PERSONA_TURNS)
    least = config.monitor.persona_turns
    if not lives or lives.values[-1] >= least:
        return None
    return Finding(
        "persona_churn",
        history.step,
        f"Within dialogues the persona changes every {lives.values[-1]:.1f} turns unasked; "
        f"it should stand for {least}.",
        (h.PERSONA_TURNS,),
        (lives.steps[0], lives.steps[-1]),
        {"turns": lives.values[-1]},
        {"data.persona_turns": least},
        "Make a summary anew only after some turns, or when it is asked for.",
    )
