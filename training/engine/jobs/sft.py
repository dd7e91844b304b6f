"""Supervised fine-tuning: a floor of behaviour before any reward."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from training.engine.config.schema import RunConfig
from training.engine.jobs import models
from training.engine.jobs.arguments import common, quiet
from training.engine.jobs.watch import Stop, Watch, need_disk
from training.engine.persona.render import policy_messages
from training.engine.rundir import RunDir
from training.engine.snapshots import Row, read_rows


def train(run: RunDir, config: RunConfig, stop: Stop) -> dict[str, Any]:
    """Fine-tune and save to model/; returns facts for the manifest."""
    rows = read_rows(run.path / config.data.train, "instructions")
    file = run.path / config.data.heldout
    heldout = read_rows(file, "instructions") if config.data.heldout else []
    model, tokenizer = models.load_base(config.model, texts(rows))
    need_disk(run, config, 12.0 * model.num_parameters())
    trainer = quiet(
        SFTTrainer(
            model=model,
            args=arguments(run, config),
            train_dataset=Dataset.from_list([example(row) for row in rows]),
            eval_dataset=Dataset.from_list([example(row) for row in heldout]) if heldout else None,
            processing_class=tokenizer,
            peft_config=models.peft_config(config.model, "CAUSAL_LM"),
            callbacks=[Watch(run, config, stop, stage="sft")],
        )
    )
    checkpoint = run.last_checkpoint()
    if heldout and not checkpoint:
        trainer.evaluate()  # what it could before: the loss on held-out answers must not rise
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if not stop:
        if heldout:
            trainer.evaluate()
        models.save_trained(trainer, tokenizer, run)
    return {"rows": len(rows), "steps": trainer.state.global_step}


def example(row: Row) -> dict[str, Any]:
    """TRL's conversational prompt and completion: loss on the answer only."""
    return {
        "prompt": policy_messages(row["persona"], row["prompt"]),
        "completion": [{"role": "assistant", "content": row["answer"]}],
    }


def texts(rows: list[Row]) -> list[str]:
    """What a tokenizer made from scratch learns from."""
    found = []
    for row in rows:
        found += [m["content"] for m in policy_messages(row["persona"], row["prompt"])]
        found.append(row["answer"])
    return found + ["system\nuser\nassistant\n"] * len(rows)  # the roles become one token each


def arguments(run: RunDir, config: RunConfig) -> SFTConfig:
    s = config.sft
    values = common(config, str(run.checkpoints))
    if s.save_every:
        values |= {"save_strategy": "steps", "save_steps": s.save_every, "save_total_limit": 2}
    return SFTConfig(
        **values,
        num_train_epochs=s.epochs,
        max_steps=s.max_steps,
        per_device_train_batch_size=s.batch,
        per_device_eval_batch_size=s.batch,
        gradient_accumulation_steps=s.accumulation,
        learning_rate=s.learning_rate,
        lr_scheduler_type=s.scheduler,
        warmup_steps=s.warmup_steps,
        max_length=s.max_length,
        max_grad_norm=s.max_grad_norm,
    )
