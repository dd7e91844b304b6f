"""A policy with weights of few bits, and what is left of its sensitivity to the persona.

`model/` holds the rounded values as floats, which every loader reads; `scales.safetensors` the
scale of every row, from which the whole numbers follow. Nothing is trained.
"""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from training.engine import resampling
from training.engine.config.schema import RunConfig
from training.engine.jobs import models, rounding
from training.engine.jobs.scoring import Ensemble, load_ensemble
from training.engine.jobs.sensitivity import Contrast, contrasts, divergences, margins
from training.engine.jobs.watch import Stop, need_disk
from training.engine.numbers import Value
from training.engine.rundir import RunDir, sha256_file, write_json
from training.engine.snapshots import BadSnapshot

SCALES = "scales.safetensors"
LEAST = 0.05  # bits; below it nothing depended on the persona in the first place
Looked = tuple[list[float], list[Value]]  # divergence and margin of every contrast


def quantize(run: RunDir, config: RunConfig, stop: Stop) -> dict[str, Any]:
    """Look, round, look again, save; facts for the manifest."""
    asked = contrasts(run, config, config.quantize.rows)
    if not asked:
        raise BadSnapshot("no question that two people ask: nothing to measure on")
    plain = dataclasses.replace(config.model, dtype="float32")  # products are exact in it
    model, tokenizer = models.load_base(plain, ())
    models.placed(model).eval()
    need_disk(run, config, 4.0 * model.num_parameters())
    scorer = _scorer(config)
    run.beat(0, "quantize")
    before = look(model, tokenizer, asked, scorer, config)
    run.beat(1, "quantize")
    kept = {name: weight.detach().clone() for name, weight in rounding.rounded(model)}
    scales = rounding.round_weights(model, config.quantize.bits)
    changed = {
        "error": rounding.error(model, kept),
        "weights": sum(weight.numel() for weight in kept.values()),
        "tensors": len(kept),
    }
    after = look(model, tokenizer, asked, scorer, config)
    run.beat(2, "quantize")
    found = sensitivity(asked, before, after, config)
    if stop:
        return {"sensitivity": found}
    facts = {
        "bits": config.quantize.bits,
        "method": "symmetric, one scale a row, weights only; model/ holds the rounded values",
        **changed,
        "sensitivity": found,
    }
    save(run, model, tokenizer, scales, facts)
    run.event("quantised", bits=config.quantize.bits, ratio=found["ratio"])
    return {**facts, "scales": {SCALES: sha256_file(run.path / SCALES)}, "steps": 2}


def _scorer(config: RunConfig) -> Ensemble | None:
    """It measures and gives no reward, so that whoever failed its gate may look, too."""
    folder = config.reward.personalization
    return load_ensemble(Path(folder), config.model, force=True) if folder else None


def look(
    model: Any,
    tokenizer: Any,
    asked: list[Contrast],
    scorer: Ensemble | None,
    config: RunConfig,
) -> Looked:
    told: list[Value] = [None] * len(asked)
    if scorer:
        told = margins(model, tokenizer, asked, scorer, config)
    return divergences(model, tokenizer, asked), told


def sensitivity(
    asked: list[Contrast], before: Looked, after: Looked, config: RunConfig
) -> dict[str, Any]:
    """Original, quantised and their ratio with its interval; `margin` alike where it was asked.

    The ratio is None where the original hardly listened: there is nothing that could stay.
    """
    keys = [contrast.key for contrast in asked]
    bits = zip(keys, before[0], after[0], strict=True)
    found = _named(resampling.estimate(bits, resampling.ratio, seed=config.seed))
    if (found["original"] or 0.0) < LEAST:
        found |= {"ratio": None, "low": None, "high": None}
    worth = zip(keys, before[1], after[1], strict=True)
    margin = _named(resampling.estimate(worth, resampling.ratio, seed=config.seed))
    passed = found["ratio"] is not None and found["ratio"] >= config.quantize.ratio
    return {
        **found,
        "unit": "bits",
        "limit": config.quantize.ratio,
        "passed": passed,
        "margin": margin if margin["n"] else None,
    }


def _named(estimate: resampling.Estimate) -> dict[str, Any]:
    words = {"before": "original", "after": "quantised", "value": "ratio"}
    return {words.get(name, name): value for name, value in estimate.as_dict().items()}


def save(
    run: RunDir, model: Any, tokenizer: Any, scales: dict[str, Any], facts: dict[str, Any]
) -> None:
    """The folder appears whole: the mark is written before the weights are in place."""
    draft = run.path / ".model"
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    save_file({name: scale.cpu() for name, scale in scales.items()}, run.path / SCALES)
    write_json(draft / rounding.MARK, facts)
    shutil.rmtree(run.model, ignore_errors=True)  # of an attempt that was killed
    draft.replace(run.model)
