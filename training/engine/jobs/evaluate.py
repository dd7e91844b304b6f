"""Looks at the policy on held-out prompts before, during and after training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import TrainerCallback

from training.engine import numbers
from training.engine.config.schema import RunConfig
from training.engine.jobs.rewards import Composer, Measured, sample_line
from training.engine.jobs.texts import policy_text
from training.engine.jobs.watch import Watch
from training.engine.monitor import history as h
from training.engine.numbers import Value
from training.engine.rewards.compose import Weights, compose
from training.engine.rundir import RunDir
from training.engine.snapshots import Row


class Evaluate(TrainerCallback):
    """At chosen points of progress; it never moves the random state of the training."""

    def __init__(
        self, run: RunDir, config: RunConfig, composer: Composer, watch: Watch, rows: list[Row]
    ) -> None:
        self.run, self.config, self.composer, self.watch = run, config, composer, watch
        few = rows[: config.grpo.evaluate_prompts]
        self.rows = [row for row in few for _ in range(config.grpo.evaluate_samples)]

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 0 and 0.0 in self.config.grpo.evaluate_at:
            self.evaluate(kwargs["model"], kwargs["processing_class"], state)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        marks = {round(p * state.max_steps) for p in self.config.grpo.evaluate_at if p > 0}
        if state.global_step in marks:
            self.evaluate(kwargs["model"], kwargs["processing_class"], state)

    def evaluate(self, model: Any, tokenizer: Any, state: Any) -> None:
        """Sampled answers to each prompt, with a seed of its own."""
        if not self.rows or not state.is_world_process_zero:
            return
        step = int(state.global_step)
        g = self.config.grpo
        texts = answers(
            model, tokenizer, self.rows, g.max_completion, g.temperature, self.config.seed
        )
        found = self.composer.score(self.rows, texts)
        facts = summary(found, self.config)
        self.watch.note(step, "eval", {f"eval/{name}": value for name, value in facts.items()})
        for i in range(min(len(texts), g.samples_per_step)):
            self.run.append(self.run.samples, {"step": step, "eval": True, **sample_line(found, i)})


def summary(found: Measured, config: RunConfig) -> dict[str, Value]:
    """Means, and the standard error of each as `error/…`."""
    r = config.reward
    fixed = Weights(r.reference_alpha, r.redundancy, r.quality_floor)
    columns: dict[str, list[Value]] = {
        h.REFERENCE: [compose(p, fixed) for p in found.parts],
        h.QUALITY: [p.quality for p in found.parts],
        h.PERSONALIZATION: [p.personalization for p in found.parts],
        h.REDUNDANCY: [p.redundancy for p in found.parts],
        **found.extra,
    }
    for part, audit in h.GAPS.values():
        if audit in columns:
            pairs = zip(columns[part], columns[audit], strict=True)
            gaps = [None if a is None or b is None else a - b for a, b in pairs]
            columns[f"gap/{part.rpartition('/')[2]}"] = gaps
    errors = {f"error/{name}": numbers.error(values) for name, values in columns.items()}
    return {**{name: numbers.mean(values) for name, values in columns.items()}, **errors}


@torch.inference_mode()
def answers(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Row],
    max_new: int,
    temperature: float,
    seed: int,
    batch: int = 64,
) -> list[str]:
    """Sampled answers to held-out prompts; temperature 0 is greedy."""
    was_training = model.training
    model.eval()
    found: list[str] = []
    how = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for start in range(0, len(rows), batch):
            texts = [
                policy_text(tokenizer, r["persona"], r["prompt"])
                for r in rows[start : start + batch]
            ]
            inputs = tokenizer(
                texts,
                return_tensors="pt",
                padding=True,
                padding_side="left",
                add_special_tokens=False,
            ).to(model.device)
            ids = model.generate(**inputs, max_new_tokens=max_new, **how)
            new = ids[:, inputs["input_ids"].shape[1] :]
            found += tokenizer.batch_decode(new, skip_special_tokens=True)
    model.train(was_training)
    return found
