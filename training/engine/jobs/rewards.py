"""The composed reward as TRL calls it, with every part kept, logged alone, and sampled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.engine import numbers
from training.engine.config.schema import RunConfig
from training.engine.contracts import Rollout, Scorer, score_all
from training.engine.monitor import history as h
from training.engine.numbers import Value
from training.engine.rewards import schedule
from training.engine.rewards.compose import (
    Scored,
    Weights,
    advantages,
    branch_rewards,
    compose,
    effective_weights,
)
from training.engine.rewards.redundancy import redundancy
from training.engine.rundir import RunDir
from training.engine.snapshots import Row, rollout_of

BRANCH_COLUMNS = ("quality", "personalization", "redundancy")


@dataclass(frozen=True)
class Scorers:
    """Who scores. `quality` and `personalization` give the reward; the others only watch."""

    quality: Scorer
    personalization: Scorer
    judge: Scorer | None = None
    auditors: tuple[Scorer, ...] = ()
    audit: tuple[Scorer, ...] = ()


@dataclass(frozen=True)
class Measured:
    """One batch of answers with everything that is known about them."""

    rollouts: list[Rollout]
    parts: list[Scored]
    extra: dict[str, list[Value]] = field(default_factory=dict)


class Composer:
    """Scores a batch once and gives TRL one column, or one a branch."""

    def __init__(
        self, run: RunDir, config: RunConfig, rows: Sequence[Row], scorers: Scorers
    ) -> None:
        self.run, self.config, self.rows, self.scorers = run, config, rows, scorers
        self._last: tuple[object, Measured] | None = None

    def functions(self) -> list[Callable[..., list[Value]]]:
        """Reward functions for the trainer, in the order of its weights."""
        if self.config.reward.aggregation == "sum_then_normalize":
            return [self.composed]
        return [self._branch(name) for name in BRANCH_COLUMNS]

    def weights(self, progress: float) -> Weights:
        r = self.config.reward
        return Weights(schedule.at(progress, r.alpha), r.redundancy, r.quality_floor)

    def trainer_weights(self, progress: float) -> list[float]:
        """What TRL multiplies its columns with at this point of the run."""
        if self.config.reward.aggregation == "sum_then_normalize":
            return [1.0]
        w = self.weights(progress)
        return [w.alpha, 1 - w.alpha, w.redundancy]

    def composed(self, completions: Sequence[Any], **kwargs: Any) -> list[Value]:
        measured = self.measure(completions, **kwargs)
        weights = self.weights(progress_of(kwargs["trainer_state"]))
        return [compose(part, weights) for part in measured.parts]

    def _branch(self, name: str) -> Callable[..., list[Value]]:
        def column(completions: Sequence[Any], **kwargs: Any) -> list[Value]:
            measured = self.measure(completions, **kwargs)
            return branch_rewards(measured.parts, self.config.reward.quality_floor)[name]

        column.__name__ = name
        return column

    def measure(self, completions: Sequence[Any], **kwargs: Any) -> Measured:
        """Scored once a batch, however many columns ask."""
        if self._last is None or self._last[0] is not completions:
            texts = [text_of(completion) for completion in completions]
            rows = [self.rows[i] for i in kwargs["row"]]
            found = self.score(rows, texts)
            self._last = (completions, found)
            self._log(found, kwargs)
        return self._last[1]

    def score(self, rows: Sequence[Row], texts: Sequence[str]) -> Measured:
        rollouts = [rollout_of(row, text) for row, text in zip(rows, texts, strict=True)]
        extra: dict[str, list[Value]] = {}
        quality = column(self.scorers.quality, rollouts, "quality", extra)
        personal = column(self.scorers.personalization, rollouts, "personalization", extra)
        if self.scorers.judge is not None:
            share = self.config.reward.judge_weight
            judged = column(self.scorers.judge, rollouts, "judge", extra)
            extra["parts/judge"] = judged
            quality = [mix(q, j, share) for q, j in zip(quality, judged, strict=True)]
        more = self.config.reward.phrases
        costs = [redundancy(text, more).total for text in texts]
        for scorer in self.scorers.auditors:
            extra[f"auditor/{scorer.name}"] = column(scorer, rollouts, scorer.name, {})
        for scorer in self.scorers.audit:
            for name, values in columns(scorer, rollouts).items():
                extra[f"audit/{name}"] = values
        parts = [Scored(*three) for three in zip(quality, personal, costs, strict=True)]
        return Measured(rollouts, parts, extra)

    def _log(self, found: Measured, kwargs: Mapping[str, Any]) -> None:
        state = kwargs["trainer_state"]
        weights = self.weights(progress_of(state))
        for name, value in self.facts(found, weights).items():
            if value is not None:
                kwargs["log_metric"](name, value)
        if state.is_world_process_zero:
            self._sample(found, weights, int(state.global_step) + 1)

    def facts(self, found: Measured, weights: Weights) -> dict[str, Value]:
        """Means over the batch: parts, reference reward, effective weights, what watches."""
        r, group = self.config.reward, self.config.grpo.group
        fixed = Weights(r.reference_alpha, r.redundancy, r.quality_floor)
        rewards = [compose(part, fixed) for part in found.parts]
        facts: dict[str, Value] = {
            "alpha": weights.alpha,
            h.REFERENCE: numbers.mean(rewards),
            h.QUALITY: numbers.mean(p.quality for p in found.parts),
            h.PERSONALIZATION: numbers.mean(p.personalization for p in found.parts),
            h.REDUNDANCY: numbers.mean(p.redundancy for p in found.parts),
            h.UNSCORED: sum(reward is None for reward in rewards) / len(rewards),
            h.PARTS_CORRELATION: correlation_within(found.parts, group),
            h.PROMPT_LENGTH: numbers.mean(float(len(x.question)) for x in found.rollouts),
            h.DISTINCT: len({x.completion for x in found.rollouts}) / len(found.rollouts),
        }
        for name, share in effective_weights(found.parts, weights, group).items():
            facts[f"weight/{name}"] = share
        facts |= {name: numbers.mean(values) for name, values in found.extra.items()}
        return facts

    def _sample(self, found: Measured, weights: Weights, step: int) -> None:
        """Whole groups of the batch, another one each step."""
        group = self.config.grpo.group
        rewards = [compose(part, weights) for part in found.parts]
        gains = advantages(rewards, group, self.config.grpo.scale)
        groups = max(1, len(rewards) // group)
        for n in range(max(1, self.config.grpo.samples_per_step // group)):
            start = (step + n) % groups * group
            for i in range(start, min(start + group, len(rewards))):
                line = sample_line(found, i)
                self.run.append(
                    self.run.samples,
                    {"step": step, **line, "reward": rewards[i], "advantage": gains[i]},
                )


def sample_line(found: Measured, i: int) -> dict[str, Any]:
    rollout = found.rollouts[i]
    extra = {name: values[i] for name, values in found.extra.items()}
    return {
        "prompt_id": rollout.id,
        "persona": rollout.persona,
        "prompt": rollout.question,
        "completion": rollout.completion,
        "parts": {**dataclasses.asdict(found.parts[i]), **extra},
    }


def column(
    scorer: Scorer, rollouts: Sequence[Rollout], name: str, extra: dict[str, list[Value]]
) -> list[Value]:
    """One value a rollout; the verifier's total, where rules stand for the branch."""
    found = columns(scorer, rollouts)
    for other in found:
        if other.startswith("spread/"):
            extra[other] = found[other]
    values = found.get(name) or found.get("rules")
    return values if values is not None else [None] * len(rollouts)


def columns(scorer: Scorer, rollouts: Sequence[Rollout]) -> dict[str, list[Value]]:
    scored = score_all(scorer, rollouts)
    names = dict.fromkeys(name for parts in scored if parts for name in parts.values)
    return {name: [p.values.get(name) if p else None for p in scored] for name in names}


def mix(quality: Value, judged: Value, share: float) -> Value:
    """A judge that failed leaves the answer unscored: it is not worth 0."""
    if quality is None or judged is None:
        return None
    return (1 - share) * quality + share * judged


def correlation_within(parts: Sequence[Scored], group: int) -> Value:
    """Of quality and personalization, each minus the mean of its group."""
    left: list[Value] = []
    right: list[Value] = []
    for start in range(0, len(parts), group):
        chunk = parts[start : start + group]
        left += _centred(p.quality for p in chunk)
        right += _centred(p.personalization for p in chunk)
    return numbers.correlation(left, right)


def _centred(values: Iterable[Value]) -> list[Value]:
    found = list(values)
    centre = numbers.mean(found)
    return [None if v is None or centre is None else v - centre for v in found]


def text_of(completion: Any) -> str:
    """TRL gives a conversation for conversational prompts."""
    if isinstance(completion, str):
        return completion
    return "".join(str(message.get("content") or "") for message in completion)


def progress_of(state: Any) -> float:
    return float(state.global_step) / max(1, int(state.max_steps))
