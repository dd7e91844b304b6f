"""Rules about the run itself: numbers that are none, gradients, time, disk, silence."""

from __future__ import annotations

import math

from training.engine import numbers
from training.engine.config.schema import RunConfig
from training.engine.monitor import history as h
from training.engine.monitor import remedies
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import History
from training.engine.monitor.policy_rules import window

MUST_BE_FINITE = ("loss", h.GRAD_NORM, h.KL, h.ENTROPY)


def nonfinite(history: History, config: RunConfig) -> Finding | None:
    """The last row holds a loss or gradient that is no number (in JSON: null)."""
    if not history.rows:
        return None
    row = history.rows[history.step]
    bad = [n for n in MUST_BE_FINITE if n in row and not numbers.known([row[n]])]
    if not bad:
        return None
    return Finding(
        "nonfinite",
        history.step,
        f"{', '.join(bad)} became infinite or undefined at step {history.step}.",
        tuple(bad),
        (history.step, history.step),
        {},
        remedies.steadier(config),
        "Continue from the last checkpoint before it.",
        "critical",
    )


def no_gradient(history: History, config: RunConfig) -> Finding | None:
    """Nothing moves: no gradient in ten logged steps."""
    norm = history.series(h.GRAD_NORM).last(10)
    if len(norm) < 10 or max(norm.values) > 0:
        return None
    message = "The gradient has been 0 for 10 logged steps: the policy does not move."
    advice = "All rewards alike, all answers cut off, or a learning rate of 0."
    return Finding(
        "no_gradient",
        history.step,
        message,
        (h.GRAD_NORM, h.ZERO_SPREAD),
        window(norm),
        advice=advice,
    )


def slow_step(history: History, config: RunConfig) -> Finding | None:
    """The last three steps took much longer than is usual in this run."""
    times = history.series(h.STEP_TIME)
    usual = numbers.median(times.values[:-3])
    if (
        len(times) < 13
        or not usual
        or min(times.last(3).values) <= config.monitor.slow_step * usual
    ):
        return None
    message = f"Steps take {times.last(3).mean:.1f} s, usual are {usual:.1f} s."
    advice = "Something else uses the machine, or memory is swapped."
    return Finding(
        "slow_step", history.step, message, (h.STEP_TIME, h.LENGTH), window(times),
        {"usual": usual, "now": times.last(3).mean}, advice=advice,
    )  # fmt: skip


def hang(
    history: History, config: RunConfig, *, silence: float, start: float = 600.0
) -> Finding | None:
    """No sign of life for many step times. `silence`: seconds since the last one."""
    usual = numbers.median(history.series(h.STEP_TIME).values)
    limit = max(60.0, config.monitor.hang * usual) if usual else start
    if silence <= limit:
        return None
    message = f"No sign of life for {silence:.0f} s; a step takes {usual or 0:.0f} s."
    advice = "See the last lines of the trainer's and of the model server's log."
    return Finding(
        "hang", history.step, message, (h.STEP_TIME,), (history.step, history.step),
        {"silence": silence, "limit": limit}, advice=advice, severity="critical",
    )  # fmt: skip


def disk(
    history: History, config: RunConfig, *, free_gb: float, checkpoint_gb: float
) -> Finding | None:
    """Less room than three checkpoints."""
    if not math.isfinite(free_gb) or free_gb >= 3 * checkpoint_gb:
        return None
    message = f"{free_gb:.1f} GB are free; a checkpoint takes {checkpoint_gb:.2f} GB."
    changes = {"grpo.keep_checkpoints": 1} if config.grpo.keep_checkpoints > 1 else {}
    return Finding(
        "disk", history.step, message, (), (history.step, history.step),
        {"free_gb": free_gb, "checkpoint_gb": checkpoint_gb}, changes, severity="critical",
    )  # fmt: skip
