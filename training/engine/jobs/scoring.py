"""A trained reward model behind the scorer protocol: members averaged, spread kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from training.engine import numbers
from training.engine.config.schema import Model
from training.engine.contracts import Message, Parts, Rollout
from training.engine.jobs import models
from training.engine.jobs.texts import reward_ids
from training.engine.rewards.gate import Calibration
from training.engine.rundir import read_json

CARD = "reward_model.json"
Judged = tuple[str, str | tuple[Message, ...], str]  # persona, prompt, answer


class NotUsable(Exception):
    """A folder that holds no reward model, or one that may not be used."""


@dataclass
class Member:
    """One trained model with its calibration."""

    model: Any
    tokenizer: Any
    branch: str
    max_length: int
    calibration: Calibration
    batch: int = 64

    @torch.inference_mode()
    def logits(self, rows: Sequence[Judged]) -> list[float]:
        """Padded on the right, in order of length: the same text scores alike in any company."""
        ids = reward_ids(self.tokenizer, self.branch, rows, self.max_length)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        found = [0.0] * len(ids)
        for start in range(0, len(order), self.batch):
            chosen = order[start : start + self.batch]
            values = self._forward([ids[i] for i in chosen])
            for i, value in zip(chosen, values, strict=True):
                found[i] = value
        return found

    def _forward(self, ids: list[list[int]]) -> list[float]:
        longest = max(map(len, ids))
        pad = self.tokenizer.pad_token_id
        device = next(self.model.parameters()).device
        tokens = torch.tensor([i + [pad] * (longest - len(i)) for i in ids], device=device)
        mask = torch.tensor([[1] * len(i) + [0] * (longest - len(i)) for i in ids], device=device)
        logits = self.model(input_ids=tokens, attention_mask=mask).logits[:, 0]
        values: list[float] = logits.float().tolist()
        return values

    def values(self, rows: Sequence[Judged]) -> list[float]:
        return [self.calibration.value(x) for x in self.logits(rows)]


@dataclass
class Ensemble:
    """Members of one branch. The mean is the value, the spread says how far they agree."""

    branch: str
    members: list[Member]
    version: str
    how: str = "mean"  # or lower: mean − weight · spread
    weight: float = 1.0

    @property
    def name(self) -> str:
        return self.branch

    def judge(self, rows: Sequence[Judged]) -> list[tuple[float, float]]:
        """Value and spread of each row."""
        columns = [member.values(rows) for member in self.members]
        found = []
        for values in zip(*columns, strict=True):
            spread = numbers.std(values) or 0.0
            mean = sum(values) / len(values)
            value = max(0.0, mean - self.weight * spread) if self.how == "lower" else mean
            found.append((value, spread))
        return found

    def score_many(self, rollouts: Sequence[Rollout]) -> list[Parts | None]:
        judged = self.judge([(r.persona, r.prompt, r.completion) for r in rollouts])
        return [Parts({self.branch: v, f"spread/{self.branch}": s}) for v, s in judged]

    def score(self, rollout: Rollout) -> Parts | None:
        return self.score_many([rollout])[0]


def load_member(folder: Path, branch: str, max_length: int, model: Model) -> Member:
    if not (folder / "member.json").exists():
        raise NotUsable(f"{folder} holds no reward model")
    loaded = models.load_classifier(folder, model)
    models.placed(loaded).eval()
    tokenizer = models.load_tokenizer(folder)
    facts = read_json(folder / "member.json")
    calibration = Calibration(facts["temperature"], facts["center"])
    return Member(loaded, tokenizer, branch, max_length, calibration)


def load_ensemble(
    folder: Path, model: Model, kind: str = "members", *, force: bool = False
) -> Ensemble:
    """`members` give the reward, `auditors` only watch. Refuses what failed its gate."""
    card_path = folder / CARD
    if not card_path.exists():
        raise NotUsable(f"{folder} holds no {CARD}")
    card = read_json(card_path)
    if not card["gate"]["passed"] and not force:
        failed = [c["name"] for c in card["gate"]["checks"] if not c["passed"]]
        raise NotUsable(f"the {card['branch']} model failed its gate: {', '.join(failed)}")
    members = [
        load_member(folder / name, card["branch"], card["max_length"], model) for name in card[kind]
    ]
    return Ensemble(card["branch"], members, card["version"])
