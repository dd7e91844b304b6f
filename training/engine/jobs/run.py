"""Executes the stage of an accepted run and turns whatever happens into a manifest."""

from __future__ import annotations

import dataclasses
import errno
import os
import traceback
from collections.abc import Callable
from typing import Any

import datasets
import torch
import transformers

from training.engine.config.schema import RunConfig
from training.engine.jobs import evaluation, grpo, models, predict, quantize, reward_model, sft
from training.engine.jobs.scoring import NotUsable
from training.engine.jobs.watch import NonFinite, OutOfDisk, Stop
from training.engine.manifest import Began, finish
from training.engine.rewards import predictions
from training.engine.rundir import RunDir
from training.engine.snapshots import BadSnapshot

Stage = Callable[[RunDir, RunConfig, Stop], dict[str, Any]]
STAGES: dict[str, Stage] = {
    "sft": sft.train,
    "reward_model": reward_model.train,
    "grpo": grpo.train,
    "evaluate": evaluation.evaluate,
    "predict": predict.predict,
    "quantize": quantize.quantize,
}
UNTRAINED = ("evaluate", "predict", "quantize")  # kinds that have no learning rate
# What is there only when all is done.
WHOLE = {
    "reward_model": "reward_model.json",
    "evaluate": evaluation.REPORT,
    "predict": predictions.REPORT,
}


def stage(run: RunDir, config: RunConfig, began: Began, *, listen: bool) -> int:
    """Train; every ending has a state, and a reason where it did not succeed."""
    stop = Stop(run)
    if listen:
        stop.listen()
    prepare(config)
    resumed = bool(run.last_checkpoint())
    try:
        run.reserve()
        run.event("started", run_kind=config.kind, pid=os.getpid(), resumed=resumed)
        if config.kind != "predict":  # reward models carry their own weights
            config = dataclasses.replace(config, model=models.with_path(config.model))
        facts = STAGES[config.kind](run, config, stop)
    except Exception as error:
        trace = traceback.format_exc()
        run.release()
        print(trace, flush=True)
        if run.main:
            (run.path / "error.txt").write_text(trace, encoding="utf-8")
        reason, changes = explain(error, config)
        said = {"reason": reason, "message": f"{type(error).__name__}: {error}"}
        state = "refused" if isinstance(error, NotUsable | BadSnapshot) else "failed"
        return finish(run, state, began, config, changes=changes, **said)
    run.release()
    whole = WHOLE.get(config.kind, "model")
    state = "succeeded" if (run.path / whole).exists() else "stopped"
    return finish(run, state, began, config, facts=facts)


def prepare(config: RunConfig) -> None:
    """Threads, seed and quiet libraries; the same seed gives the same curve on one machine."""
    if config.hardware.threads:
        torch.set_num_threads(config.hardware.threads)
    transformers.set_seed(config.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()


def explain(error: Exception, config: RunConfig) -> tuple[str, dict[str, Any]]:
    """A reason that the site can name, and a change that may help."""
    text = str(error)
    section = getattr(config, config.kind)
    if isinstance(error, NonFinite) or "probability tensor contains" in text:
        if config.kind in UNTRAINED:
            return "nonfinite", {}
        return "nonfinite", {f"{config.kind}.learning_rate": section.learning_rate / 2}
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OutOfDisk) or full or "No space left" in text:
        return "disk_full", {}
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        smaller = {"batch": max(1, section.batch // 2)}
        if config.kind not in UNTRAINED:
            smaller["accumulation"] = section.accumulation * 2
        return "out_of_memory", {f"{config.kind}.{k}": v for k, v in smaller.items()}
    if isinstance(error, NotUsable):
        return "reward_model", {}
    if isinstance(error, BadSnapshot):
        return "data", {}
    return "error", {}
