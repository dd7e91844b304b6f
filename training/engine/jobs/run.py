"""Executes a run directory and writes its manifest, whatever happened.

Exit codes: 0 succeeded, 2 refused, 3 failed, 4 stopped with a checkpoint, 5 already running.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    TOKENIZERS_PARALLELISM="false",
    TRL_EXPERIMENTAL_SILENCE="1",
)

import datasets
import torch
import transformers

from training.engine.config.load import Refused, as_dict, load
from training.engine.config.preflight import check, this_machine
from training.engine.config.schema import RunConfig
from training.engine.jobs import grpo, models, reward_model, sft
from training.engine.jobs.scoring import NotUsable
from training.engine.jobs.watch import NonFinite, OutOfDisk, Stop
from training.engine.rundir import (
    RunDir,
    read_json,
    sha256_file,
    sha256_json,
    write_json,
)
from training.engine.snapshots import BadSnapshot

SUCCEEDED, REFUSED, FAILED, STOPPED, RUNNING = 0, 2, 3, 4, 5
Stage = Callable[[RunDir, RunConfig, Stop], dict[str, Any]]
STAGES: dict[str, Stage] = {
    "sft": sft.train,
    "reward_model": reward_model.train,
    "grpo": grpo.train,
}


def execute(folder: Path, *, listen: bool = True) -> int:
    """Run it, or go on with it. A run that succeeded is left alone."""
    run = RunDir(folder)
    if run.manifest.exists() and read_json(run.manifest)["state"] == "succeeded":
        return SUCCEEDED
    with (folder / "run.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(f"{folder} is being executed by another process")
            return RUNNING
        run.manifest.unlink(missing_ok=True)
        return _execute(run, listen)


def _execute(run: RunDir, listen: bool) -> int:
    began = time.time()
    try:
        config = load(read_json(run.config))
        problems = check(config, this_machine(run.path), run)
        if problems:
            raise Refused(problems)
    except (Refused, OSError, ValueError) as error:
        listed = [p.__dict__ for p in error.problems] if isinstance(error, Refused) else []
        return finish(run, "refused", began, reason="config", message=str(error), problems=listed)
    stop = Stop(run)
    if listen:
        stop.listen()
    prepare(config)
    run.beat(0, "starting")
    run.event("started", run_kind=config.kind, pid=os.getpid(), resumed=bool(run.last_checkpoint()))
    try:
        facts = STAGES[config.kind](run, config, stop)
    except Exception as error:
        (run.path / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        reason, changes = explain(error, config)
        said = {"reason": reason, "message": f"{type(error).__name__}: {error}"}
        state = "refused" if isinstance(error, NotUsable | BadSnapshot) else "failed"
        return finish(run, state, began, config, changes=changes, **said)
    whole = not stop or (config.kind == "grpo" and facts["steps"] >= config.grpo.steps)
    return finish(run, "succeeded" if whole else "stopped", began, config, facts=facts)


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
    if isinstance(error, NonFinite) or "probability tensor contains" in text:
        return "nonfinite", {f"{config.kind}.learning_rate": _rate(config) / 2}
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OutOfDisk) or full or "No space left" in text:
        return "disk_full", {}
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        section = getattr(config, config.kind)
        smaller = {"batch": max(1, section.batch // 2), "accumulation": section.accumulation * 2}
        return "out_of_memory", {f"{config.kind}.{k}": v for k, v in smaller.items()}
    if isinstance(error, NotUsable):
        return "reward_model", {}
    if isinstance(error, BadSnapshot):
        return "data", {}
    return "error", {}


def _rate(config: RunConfig) -> float:
    rate: float = getattr(config, config.kind).learning_rate
    return rate


def finish(
    run: RunDir, state: str, began: float, config: RunConfig | None = None, **more: Any
) -> int:
    """The manifest, written last: what was asked, with what, and what came of it."""
    manifest = {
        "state": state,
        "seconds": round(time.time() - began, 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "versions": models.versions(),
        **more,
    }
    if config is not None:
        resolved = as_dict(config)
        names = {config.data.train, config.data.heldout, config.data.gate, config.data.probes}
        files = sorted(n for n in names | {config.data.swaps} if n)
        manifest |= {
            "config": resolved,
            "config_sha256": sha256_json(resolved),
            "seed": config.seed,
            "data": {n: sha256_file(run.path / n) for n in files if (run.path / n).exists()},
            "files": hashes(run),
        }
    run.event("finished", state=state, reason=more.get("reason", ""))
    write_json(run.manifest, manifest)
    return {"succeeded": SUCCEEDED, "refused": REFUSED, "stopped": STOPPED}.get(state, FAILED)


def hashes(run: RunDir) -> dict[str, str]:
    """SHA-256 of the weights that this run made."""
    found = [*run.model.rglob("*.safetensors")]
    for name in ("members", "auditors"):
        found += (run.path / name).rglob("*.safetensors")
    return {str(path.relative_to(run.path)): sha256_file(path) for path in sorted(found)}
