"""After a quantisation: an adapter on the frozen rounded weights, and whether it gained anything.

Before and after are one model, without and with its adapter, on the same questions with the same
seed. A gain is shown where the interval of a difference lies above 0, of what depends on the
persona or of the reward, and neither is shown to be lower. Otherwise the report says "no gain".
"""

from __future__ import annotations

from typing import Any

from training.engine import resampling
from training.engine.config.schema import RunConfig
from training.engine.contracts import as_messages
from training.engine.jobs import rounding
from training.engine.jobs.evaluate import answers
from training.engine.jobs.rewards import Composer
from training.engine.jobs.sensitivity import contrasts, divergences
from training.engine.numbers import Value
from training.engine.rewards.compose import Weights, compose
from training.engine.rundir import RunDir, dumps
from training.engine.snapshots import Row


class Adaptation:
    """Made before the training; of any other run it says nothing."""

    def __init__(
        self, run: RunDir, config: RunConfig, composer: Composer, heldout: list[Row], model: Any
    ) -> None:
        self.run, self.config, self.composer = run, config, composer
        self.active = config.model.lora is not None and rounding.is_quantised(config.model.path)
        self.rows = (heldout or list(composer.rows))[: config.grpo.evaluate_prompts]
        self.frozen = rounding.frozen_digest(model) if self.active else ""

    def report(self, model: Any, tokenizer: Any) -> dict[str, Any]:
        """Facts for the manifest; empty for a run that adapts nothing."""
        if not self.active or not self.run.main:
            return {}
        asked = contrasts(self.run, self.config, self.config.quantize.rows)
        frozen = rounding.frozen_digest(model)
        with model.disable_adapter():
            before = (divergences(model, tokenizer, asked), self._rewards(model, tokenizer))
        after = (divergences(model, tokenizer, asked), self._rewards(model, tokenizer))
        keys = [contrast.key for contrast in asked]
        questions = [dumps(as_messages(row["prompt"])) for row in self.rows]
        told = {
            "sensitivity": self._compared(keys, before[0], after[0]),
            "reward": self._compared(questions, before[1], after[1]),
        }
        gain = gained(told["sensitivity"], told["reward"])
        self.run.event("adapted", gain=gain)
        base = {"before": self.frozen, "after": frozen, "unchanged": self.frozen == frozen}
        return {"adaptation": {"gain": gain, **told, "base": base}}

    def _compared(self, keys: list[str], before: Any, after: Any) -> dict[str, Any]:
        rows = zip(keys, before, after, strict=True)
        found = resampling.estimate(rows, resampling.difference, seed=self.config.seed).as_dict()
        return {"difference" if name == "value" else name: v for name, v in found.items()}

    def _rewards(self, model: Any, tokenizer: Any) -> list[Value]:
        """The reference reward of one answer to each prompt."""
        g, r = self.config.grpo, self.config.reward
        texts = answers(
            model, tokenizer, self.rows, g.max_completion, g.temperature, self.config.seed
        )
        fixed = Weights(r.reference_alpha, r.redundancy, r.quality_floor)
        return [compose(part, fixed) for part in self.composer.score(self.rows, texts).parts]


def gained(*found: dict[str, Any]) -> bool:
    """Something is shown to be higher, and nothing to be lower."""
    higher = any(one["low"] is not None and one["low"] > 0 for one in found)
    lower = any(one["high"] is not None and one["high"] < 0 for one in found)
    return higher and not lower
