"""The callback that connects a trainer with its run directory: metrics, heartbeat, stopping."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

import torch
from transformers import TrainerCallback

from training.engine.config.schema import RunConfig
from training.engine.monitor import history as h
from training.engine.monitor import machine_rules
from training.engine.monitor.history import History
from training.engine.monitor.rules import look
from training.engine.numbers import finite
from training.engine.rundir import RunDir, read_lines

NAMES = {
    "reward": h.REWARD,
    "kl": h.KL,
    "entropy": h.ENTROPY,
    "grad_norm": h.GRAD_NORM,
    "frac_reward_zero_std": h.ZERO_SPREAD,
    "completions/mean_length": h.LENGTH,
    "completions/max_length": "length/max",
    "completions/clipped_ratio": h.CLIPPED,
    "step_time": h.STEP_TIME,
    "clip_ratio/region_mean": "clip_ratio",
    "num_tokens": "tokens",
    "mean_token_accuracy": "token_accuracy",
}
DROPPED = (
    "epoch", "total_flos", "train_runtime", "train_samples_", "train_steps_", "train_loss",
    "rewards/",  # the parts are logged by their own names
)  # fmt: skip
MUST_BE_FINITE = ("loss", "grad_norm", "kl")


class NonFinite(Exception):
    """A loss or gradient that is no number."""


class OutOfDisk(Exception):
    """Less room than the next checkpoint needs."""


class Stop:
    """Set by SIGTERM or SIGINT, or by a file named `stop` in the run directory."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.asked = False

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def __bool__(self) -> bool:
        return self.asked or self.run.stop_requested


class Watch(TrainerCallback):
    """Writes one line a step; ends the run at a step boundary when asked, or when it broke."""

    def __init__(
        self,
        run: RunDir,
        config: RunConfig,
        stop: Stop,
        *,
        stage: str,
        prefix: str = "",
    ) -> None:
        self.run, self.config, self.stop = run, config, stop
        self.stage, self.prefix = stage, prefix
        self.rows: dict[int, dict[str, float | None]] = {}
        self.alerts: set[str] = set()
        self.began = 0.0
        self.tokens = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.began = time.monotonic()
        self.tokens = float(state.num_input_tokens_seen or 0)
        if self.config.kind == "grpo":
            self.rows = self.run.history()
            said = (e for e in read_lines(self.run.events) if e["kind"] == "alert")
            self.alerts = {event["rule"] for event in said}
        self.run.beat(state.global_step, self.stage)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.began = time.monotonic()

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.run.beat(state.global_step, self.stage)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.run.beat(state.global_step, self.stage)
        if together(bool(self.stop)):
            control.should_save = control.should_training_stop = True
            self.run.event("stopping", stage=self.stage, step=state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.run.event("checkpoint", stage=self.stage, step=state.global_step)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Store what the trainer logged; numbers that are none become null, then end the run."""
        if not state.is_world_process_zero or not logs:
            return
        kept = {k: v for k, v in logs.items() if not k.startswith(DROPPED)}
        if not kept:
            return
        row = {self.prefix + NAMES.get(k, k): finite(v) for k, v in kept.items()}
        if "loss" in kept:
            row |= {self.prefix + k: v for k, v in self._speed(kept).items()}
        step = int(state.global_step)
        self.note(step, self.stage, row)
        if self.config.kind == "grpo":
            self._look(step)
        broken = [k for k in MUST_BE_FINITE if k in kept and finite(kept[k]) is None]
        if broken:
            raise NonFinite(f"{', '.join(broken)} is not a number at step {step}")

    def note(self, step: int, stage: str, row: Mapping[str, float | None]) -> None:
        """Append a line; the rules see it at their next look."""
        line = {"at": round(time.time(), 3), "step": step, "stage": stage, "metrics": row}
        self.run.append(self.run.metrics, line)
        self.rows.setdefault(step, {}).update(row)

    def _speed(self, kept: Mapping[str, Any]) -> dict[str, float | None]:
        """Seconds of the step, and tokens per second over it."""
        seconds = finite(kept.get("step_time")) or time.monotonic() - self.began
        found: dict[str, float | None] = {h.STEP_TIME: seconds}
        tokens = finite(kept.get("num_tokens"))
        if tokens is not None and seconds > 0:
            found[h.TOKENS_PER_SECOND] = max(0.0, tokens - self.tokens) / seconds
            self.tokens = tokens
        return found

    def _look(self, step: int) -> None:
        """Ask the alert rules; each speaks once a run. Long runs are looked at less often."""
        if step % max(1, step // 200):
            return
        for finding in look(History(self.rows), self.config, self.alerts):
            self.alerts.add(finding.rule)
            self.run.event("alert", **finding.__dict__)


def together(asked: bool) -> bool:
    """Whether any process was asked to stop: all must end at the same step."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return asked
    device = "cuda" if torch.cuda.is_available() else "cpu"
    flag = torch.tensor(int(asked), device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


def need_disk(run: RunDir, config: RunConfig, checkpoint_bytes: float) -> None:
    """Refuse to go on where three checkpoints would not fit."""
    free = shutil.disk_usage(run.path).free / 1e9
    history = History({})
    found = machine_rules.disk(history, config, free_gb=free, checkpoint_gb=checkpoint_bytes / 1e9)
    if found:
        run.event("alert", **found.__dict__)
        raise OutOfDisk(found.message)
