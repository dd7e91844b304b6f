"""Starts a run directory, or goes on with it: refuses early, holds the lock, writes the manifest.

No torch until the configuration has been accepted. Exit codes: 0 succeeded, 2 refused, 3 failed,
4 stopped with a checkpoint, 5 another process executes this directory.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from training.engine.config.load import Refused, load
from training.engine.config.preflight import check, this_machine
from training.engine.config.schema import RunConfig
from training.engine.manifest import CODES, RUNNING, finish
from training.engine.rundir import RunDir, read_json

QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    # Threads that wait sleep: two runs at once otherwise take up to ten times as long.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
}


def execute(folder: Path, *, listen: bool = True) -> int:
    """Run it, or go on with it. A run that succeeded is left alone."""
    run = RunDir(folder, main=os.environ.get("RANK", "0") == "0")
    if run.manifest.exists() and read_json(run.manifest)["state"] == "succeeded":
        return CODES["succeeded"]
    if not run.main:  # started by accelerate beside the main process, which holds the lock
        return _execute(run, listen)
    with (folder / "run.lock").open("a") as lock:
        if not _locked(lock.fileno()):
            print(f"{folder} is being executed by another process")
            return RUNNING
        run.manifest.unlink(missing_ok=True)
        return _execute(run, listen)


def _locked(lock: int, patience: float = 2.0) -> bool:
    """Whoever only looks whether a run lives holds the lock for a moment: wait it out."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        else:
            return True


def _execute(run: RunDir, listen: bool) -> int:
    began = (time.time(), time.process_time())
    run.beat(0, "checking")
    config = accepted(run)
    if not isinstance(config, RunConfig):
        return finish(run, "refused", began, **config)
    os.environ.update(QUIET)
    run.beat(0, "loading")
    from training.engine.jobs.run import stage  # torch is imported only here

    return stage(run, config, began, listen=listen)


def accepted(run: RunDir) -> RunConfig | dict[str, Any]:
    """The configuration, or everything that speaks against it."""
    try:
        config = load(read_json(run.config))
        problems = check(config, this_machine(run.path), run)
    except Refused as refused:
        problems = refused.problems
    except (OSError, ValueError) as error:
        return {"reason": "config", "message": f"config.json: {error}", "problems": []}
    if not problems:
        return config
    said = "\n".join(map(str, problems))
    return {"reason": "config", "message": said, "problems": [p.__dict__ for p in problems]}
