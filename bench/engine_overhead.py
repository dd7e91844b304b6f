"""What our layer costs: CPU time of a GRPO step of the engine against a bare TRL script.

    python -m training.engine tiny DIR && python -m bench.engine_overhead DIR [steps]

Both use the same policy, prompts, reward models and settings; they take turns, so that whatever
else the machine does meets both. CPU time of this process, not the clock.
"""

from __future__ import annotations

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

ROUNDS = 3


def times(calls: list[float]) -> list[float]:
    """CPU seconds between successive generations; the first step warms up."""
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


def main(folder: Path, steps: int) -> None:
    import torch
    import transformers

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    values = read_json(folder / "grpo" / "config.json")
    changes = {"grpo.steps": steps, "grpo.evaluate_at": [], "grpo.save_every": 10_000}
    config = load(apply_changes(values, {**changes, "reward.audit": []}))
    kinds: dict[str, Callable[[RunDir, RunConfig], list[float]]] = {
        "engine": composed,
        "bare": bare,
    }
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, work in kinds.items():
            with tempfile.TemporaryDirectory() as temporary:
                run = RunDir(Path(temporary))
                (run.path / "data").symlink_to((folder / "grpo" / "data").resolve())
                found[name] += work(run, config)
    for name, seconds in found.items():
        print(f"{name:8} {statistics.median(seconds):.3f} s of CPU a step (n={len(seconds)})")
    ratio = statistics.median(found["engine"]) / statistics.median(found["bare"])
    print(f"ratio    {ratio:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 12)
