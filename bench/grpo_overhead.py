"""What our layer costs: a GRPO step of the engine against a bare TRL script, in turns.

    make bench BENCH=grpo_overhead
    python -m bench.grpo_overhead [--steps 16] [--rounds 3] [--loop DIR]

Both use the same policy, prompts, reward models and settings. They take turns within one process,
so that whatever else the machine does meets both; CPU time counts, not the clock. The first step of
each turn warms up and is left out. What a run does beside its steps (probes, held-out prompts) is
shown apart. DIR holds a finished loop of `python -m training.engine tiny`; without it one is made
here, with reward models of the usual number that were hardly trained: scoring costs the same.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from training.engine.config.load import apply_changes, load
from training.engine.config.schema import RunConfig
from training.engine.rundir import RunDir, read_json

AIM = 1.05


def times(calls: list[float]) -> list[float]:
    """CPU seconds between successive rewards; the first step warms up."""
    return [b - a for a, b in pairwise(calls)][1:]


def composed(run: RunDir, config: RunConfig) -> list[float]:
    """The engine: parts, reference, effective weights, auditors, samples, alerts, metrics."""
    from training.engine.jobs import grpo
    from training.engine.jobs.rewards import Composer
    from training.engine.jobs.watch import Stop

    calls: list[float] = []
    original = Composer.composed

    def timed(self: Composer, completions: Any, **kwargs: Any) -> Any:
        calls.append(time.process_time())
        return original(self, completions, **kwargs)

    Composer.composed = timed  # type: ignore[method-assign]
    try:
        grpo.train(run, config, Stop(run))
    finally:
        Composer.composed = original  # type: ignore[method-assign]
    return times(calls)


def bare(run: RunDir, config: RunConfig) -> list[float]:
    """What a person would write: the same models in one reward function."""
    from trl import GRPOTrainer

    from training.engine.jobs import grpo, models
    from training.engine.jobs.arguments import quiet

    tokenizer = models.load_tokenizer(config.model.path)
    rows, _ = grpo.prompts(run, config, tokenizer)
    scorers = grpo.load_scorers(config)
    calls: list[float] = []

    def reward(completions: Any, row: list[int], **kwargs: Any) -> list[float]:
        calls.append(time.process_time())
        texts = [c[0]["content"] for c in completions]
        asked = [(rows[i]["persona"], rows[i]["prompt"]) for i in row]
        judged = [(*a, t) for a, t in zip(asked, texts, strict=True)]
        columns: list[Any] = [scorers.quality, scorers.personalization, *scorers.auditors]
        values = [ensemble.judge(judged) for ensemble in columns]
        return [0.5 * q[0] + 0.5 * p[0] for q, p in zip(values[0], values[1], strict=True)]

    trainer = quiet(
        GRPOTrainer(
            model=config.model.path,
            reward_funcs=reward,
            args=grpo.arguments(run, config),
            train_dataset=grpo.dataset(rows),
            processing_class=tokenizer,
        )
    )
    trainer.train()
    return times(calls)


def prepare(folder: Path) -> Path:
    """The stages before GRPO, with 3 + 1 members a branch."""
    from training.engine.start import execute
    from training.engine.tiny import SHORT, SHORT_SIZES, lay_out

    few = {"members": 3, "auditors": 1, "max_steps": 2, "eval_every": 2}
    changes = {**SHORT, "reward_model": few, "grpo": {}}
    for path in lay_out(folder, 1, SHORT_SIZES, changes):
        if path.name != "grpo" and execute(path, listen=False):
            sys.exit(f"{path.name} did not succeed; see {path}/error.txt")
    return folder


def turn(
    work: Callable[[RunDir, RunConfig], list[float]], loop: Path, changes: dict[str, Any]
) -> tuple[list[float], float]:
    """Seconds of each step, and of the whole turn."""
    values = apply_changes(read_json(loop / "grpo" / "config.json"), changes)
    with tempfile.TemporaryDirectory() as temporary:
        run = RunDir(Path(temporary))
        (run.path / "data").symlink_to((loop / "grpo" / "data").resolve())
        began = time.process_time()
        steps = work(run, load(values))
        return steps, time.process_time() - began


def measure(loop: Path, steps: int, rounds: int) -> float:
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    plain = {"grpo.steps": steps, "grpo.evaluate_at": [], "grpo.save_every": 10_000}
    plain |= {"grpo.probe_every": 0, "reward.audit": []}
    found: dict[str, list[float]] = {"bare": [], "engine": []}
    for _ in range(rounds):
        found["bare"] += turn(bare, loop, plain)[0]
        found["engine"] += turn(composed, loop, plain)[0]
    for name, seconds in found.items():
        print(f"{name:8} {statistics.median(seconds):.3f} s of CPU a step (n={len(seconds)})")
    ratio = statistics.median(found["engine"]) / statistics.median(found["bare"])
    print(f"ratio    {ratio:.3f}, aim {AIM}")
    alone = turn(composed, loop, plain)[1]
    beside = turn(composed, loop, {**plain, "grpo.probe_every": 10})[1] - alone
    print(f"probes   every 10 steps add {beside / alone:+.1%} to a run of {steps} steps")
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loop", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        loop = options.loop or prepare(Path(temporary))
        return int(measure(loop, options.steps, options.rounds) > AIM)


if __name__ == "__main__":
    sys.exit(main())
