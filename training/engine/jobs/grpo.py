"""GRPO with the composed reward: groups of answers to one prompt, better ones made likelier."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from training.engine.config.schema import RunConfig
from training.engine.contracts import Scorer
from training.engine.jobs import models
from training.engine.jobs.adaptation import Adaptation
from training.engine.jobs.arguments import common, quiet
from training.engine.jobs.evaluate import Evaluate
from training.engine.jobs.keeping import Keep
from training.engine.jobs.probes import Probes
from training.engine.jobs.rewards import Composer, Scorers, progress_of
from training.engine.jobs.scoring import NotUsable, load_ensemble
from training.engine.jobs.texts import policy_text
from training.engine.jobs.watch import Stop, Watch, need_disk
from training.engine.monitor import history as h
from training.engine.persona.cooldown import hold, turns_per_change
from training.engine.persona.render import policy_messages
from training.engine.rewards.gate import separation
from training.engine.rewards.judge import Judge
from training.engine.rewards.miner import Sample, mine
from training.engine.rewards.verifier import Verifier
from training.engine.rundir import RunDir, read_lines
from training.engine.snapshots import Row, read_rows, rollout_of
from training.engine.toy.world import Truth

KL_ESTIMATOR = {"estimator": "k3", "unit": "nats per token", "reference": "the model at the start"}
AUDIT: dict[str, type[Any]] = {"truth": Truth, "rules": Verifier}


class AlphaSchedule(TrainerCallback):
    """Moves the weights of the branches; the raw curves of the parts stay unweighted."""

    def __init__(self, composer: Composer) -> None:
        self.composer = composer
        self.trainer: Any = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        weights = self.composer.trainer_weights(progress_of(state))
        self.trainer.reward_weights = torch.tensor(weights, dtype=torch.float32)


def train(run: RunDir, config: RunConfig, stop: Stop) -> dict[str, Any]:
    """Train from the SFT model on disk, which is also the reference model."""
    tokenizer = models.load_tokenizer(config.model.path)
    rows, dropped = prompts(run, config, tokenizer)
    heldout = read_rows(run.path / config.data.heldout, "prompts") if config.data.heldout else []
    scorers = load_scorers(config)
    if config.reward.force:
        run.event("forced", reason=config.reward.force)
    if "rules" in (config.reward.quality, config.reward.personalization):
        prove_rules(run, config)
    composer = Composer(run, config, rows, scorers)
    schedule = AlphaSchedule(composer)
    watch = Watch(run, config, stop, stage="grpo")
    evaluate = Evaluate(run, config, composer, watch, heldout)
    probes = Probes(run, config, watch, rows)
    if (turns := turns_per_change(rows)) is not None and not run.last_checkpoint():
        watch.note(0, "data", {h.PERSONA_TURNS: turns})
    trainer = quiet(
        GRPOTrainer(
            model=config.model.path,
            reward_funcs=composer.functions(),
            args=arguments(run, config),
            train_dataset=dataset(rows),
            processing_class=tokenizer,
            peft_config=models.peft_config(config.model, "CAUSAL_LM"),
            callbacks=[schedule, evaluate, probes, watch, Keep(run, config)],
        )
    )
    schedule.trainer = trainer
    need_disk(run, config, 12.0 * trainable(trainer.model))
    adaptation = Adaptation(run, config, composer, heldout, trainer.model)
    checkpoint = run.last_checkpoint()
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    report: dict[str, Any] = {}
    if not stop or trainer.state.global_step >= config.grpo.steps:
        report = adaptation.report(trainer.model, tokenizer)
        models.save_trained(trainer, tokenizer, run)
    phrases = [asdict(phrase) for phrase in mine(samples(run))[:5]]
    if phrases:
        run.event("phrases", found=phrases)
    return {
        "phrases": phrases,
        "rows": len(rows),
        "dropped_prompts": dropped,
        "steps": trainer.state.global_step,
        "kl": KL_ESTIMATOR if config.grpo.beta else None,
        "scorers": {
            branch: getattr(scorers, branch).version for branch in ("quality", "personalization")
        },
        **report,
    }


def samples(run: RunDir) -> Iterator[Sample]:
    """What the miner reads: completions of training, with their rewards."""
    for row in read_lines(run.samples):
        if not row.get("eval"):
            yield Sample(row["step"], row["reward"], row["completion"])


def prompts(run: RunDir, config: RunConfig, tokenizer: Any) -> tuple[list[Row], int]:
    """Prompts that fit; the trainer has no limit of its own. Returns how many did not."""
    rows = read_rows(run.path / config.data.train, "prompts")
    if config.data.persona_turns:
        rows = hold(rows, config.data.persona_turns)
    limit = config.grpo.max_prompt
    kept = [
        row
        for row in rows
        if len(tokenizer(policy_text(tokenizer, row["persona"], row["prompt"]))["input_ids"])
        <= limit
    ]
    if len(kept) < len(rows):
        run.event("dropped_prompts", count=len(rows) - len(kept), limit=limit)
    if not kept:
        raise ValueError(f"every prompt is longer than {limit} tokens")
    return kept, len(rows) - len(kept)


def dataset(rows: list[Row]) -> Dataset:
    """`row` leads back to persona, task and reference; the trainer hands it to the reward."""
    return Dataset.from_list(
        [
            {"prompt": policy_messages(row["persona"], row["prompt"]), "row": i}
            for i, row in enumerate(rows)
        ]
    )


def load_scorers(config: RunConfig) -> Scorers:
    """The reward models that passed their gates, or rules; and who only watches."""
    r = config.reward
    loaded: dict[str, Scorer] = {}
    auditors: list[Scorer] = []
    for branch in ("quality", "personalization"):
        source = getattr(r, branch)
        if source == "rules":
            loaded[branch] = Verifier()
            continue
        ensemble = load_ensemble(Path(source), config.model, force=bool(r.force))
        if ensemble.branch != branch:
            raise ValueError(f"reward.{branch} names a model for {ensemble.branch}")
        ensemble.how, ensemble.weight = r.ensemble, r.spread_weight
        loaded[branch] = ensemble
        watching = load_ensemble(Path(source), config.model, "auditors", force=bool(r.force))
        auditors += [watching] if watching.members else []
    audit = tuple(AUDIT[name]() for name in r.audit)
    judge = make_judge(config) if r.judge_weight else None
    return Scorers(loaded["quality"], loaded["personalization"], judge, tuple(auditors), audit)


def prove_rules(run: RunDir, config: RunConfig) -> None:
    """Rules give reward only where they tell answers of known worth apart."""
    if not config.data.labelled:
        raise NotUsable("rules give reward, but data.labelled names no answers to prove them on")
    rows = read_rows(run.path / config.data.labelled, "labelled")
    found: dict[bool, list[float]] = {True: [], False: []}
    for row in rows:
        parts = Verifier().score(rollout_of(row, row["answer"]))
        value = parts.values["rules"] if parts else None
        if value is not None:
            found[bool(row.get("right"))].append(value)
    auc, margin = separation(found[True], found[False])
    run.event("rules", auc=auc, margin=margin, rows=len(rows))
    if auc is None or auc < config.gate.rules:
        raise NotUsable(f"the rules tell right from wrong with an AUC of {auc}")


def make_judge(config: RunConfig) -> Judge:
    """The judge over HTTP: the only connection a run may have besides its model server."""
    import httpx

    key = os.environ.get("PALATE_JUDGE_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = httpx.Client(timeout=60, headers=headers)
    url = config.reward.judge_url.rstrip("/") + "/chat/completions"

    def post(body: Any) -> Any:
        return client.post(url, json=dict(body)).raise_for_status().json()

    return Judge(post, config.reward.judge_model)


def trainable(model: Any) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def arguments(run: RunDir, config: RunConfig) -> GRPOConfig:
    g = config.grpo
    values = common(config, str(run.checkpoints))
    if g.sampler == "vllm":
        values |= {"use_vllm": True, "vllm_mode": g.vllm_mode}
        values |= {"vllm_gpu_memory_utilization": g.vllm_memory}
        values |= {"vllm_server_base_url": g.vllm_server} if g.vllm_server else {}
    values |= {"save_strategy": "steps", "save_steps": g.save_every}
    return GRPOConfig(
        **values,
        save_total_limit=g.keep_checkpoints,
        max_steps=g.steps,
        per_device_train_batch_size=g.batch,
        gradient_accumulation_steps=g.accumulation,
        num_generations=g.group,
        learning_rate=g.learning_rate,
        lr_scheduler_type=g.scheduler,
        warmup_steps=g.warmup_steps,
        beta=g.beta,
        temperature=g.temperature,
        max_completion_length=g.max_completion,
        entropy_coef=g.entropy,
        loss_type=g.loss,
        scale_rewards=g.scale,
        max_grad_norm=g.max_grad_norm,
        multi_objective_aggregation=config.reward.aggregation,
        shuffle_dataset=False,  # the same question under several personas stays in one batch
        model_init_kwargs={"dtype": config.model.dtype},
    )
