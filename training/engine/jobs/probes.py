"""Asks the policy itself about answers of known worth, without sampling any.

The reward sees only what the policy says; probes see what it would rather say. A likelihood is the
mean log probability of an answer's tokens and of its end, given the prompt. No reward model is
asked, so a fault that all reward models share still shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import TrainerCallback

from training.engine import numbers
from training.engine.config.schema import RunConfig
from training.engine.jobs.texts import encode, policy_text
from training.engine.jobs.watch import Watch
from training.engine.monitor import history as h
from training.engine.numbers import Value
from training.engine.rundir import RunDir
from training.engine.snapshots import Row, read_rows

LOGITS = 1 << 26  # numbers that one pass may hold: 256 MB
Asked = tuple[str, Any, str]  # persona, prompt, answer


@dataclass(frozen=True)
class Likelihoods:
    """Of each answer, in nats per token; and what the policy would say first, as probabilities."""

    answers: list[float]
    first: torch.Tensor  # (answers, vocabulary)


class Probes(TrainerCallback):
    """Every so many steps, and before the first."""

    def __init__(self, run: RunDir, config: RunConfig, watch: Watch, rows: Sequence[Row]) -> None:
        self.config, self.watch = config, watch
        self.defects = chosen(run, config, "probes")
        self.swaps = chosen(run, config, "swaps")
        self.personas = list(dict.fromkeys(row["persona"] for row in rows)) or [""]

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 0:
            self.look(kwargs["model"], kwargs["processing_class"], state)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        every = self.config.grpo.probe_every
        if every and (state.global_step % every == 0 or state.global_step == state.max_steps):
            self.look(kwargs["model"], kwargs["processing_class"], state)

    def look(self, model: Any, tokenizer: Any, state: Any) -> None:
        if not self.config.grpo.probe_every or not state.is_world_process_zero:
            return
        found = {**self.preferences(model, tokenizer), **self.personal(model, tokenizer)}
        if found:
            self.watch.note(int(state.global_step), "probe", found)

    def preferences(self, model: Any, tokenizer: Any) -> dict[str, Value]:
        """Share of pairs in which the good answer is the likelier one, by defect and over all."""
        if not self.defects:
            return {}
        people = [
            row["persona"] or self.personas[i % len(self.personas)]
            for i, row in enumerate(self.defects)
        ]
        asked = [
            (who, row["prompt"], row[side])
            for side in ("good", "bad")
            for who, row in zip(people, self.defects, strict=True)
        ]
        values = likelihoods(model, tokenizer, asked).answers
        hits: dict[str, list[float]] = defaultdict(list)
        margins = []
        for row, good, bad in zip(
            self.defects, values[: len(people)], values[len(people) :], strict=True
        ):
            hits[f"probe/{row['defect']}"].append(float(good > bad))
            margins.append(good - bad)
        shares = {name: numbers.mean(found) for name, found in hits.items()}
        return {
            h.PROBES: numbers.mean(v for found in hits.values() for v in found),
            h.PROBE_MARGIN: numbers.mean(margins),
            **shares,
        }

    def personal(self, model: Any, tokenizer: Any) -> dict[str, Value]:
        """How much answers depend on who asks: the first token, and the whole of two answers."""
        if not self.swaps:
            return {}
        asked: list[Asked] = [
            (row[f"persona_{who}"], row["prompt"], row[what])
            for who, what in (("first", "first"), ("first", "second"),
                              ("second", "first"), ("second", "second"))
            for row in self.swaps
        ]  # fmt: skip
        found, n = likelihoods(model, tokenizer, asked), len(self.swaps)
        a, b, c, d = (found.answers[i * n : (i + 1) * n] for i in range(4))
        swapped = [float(a[i] - c[i] + d[i] - b[i] > 0) for i in range(n)]
        divergence = js_bits(found.first[:n], found.first[2 * n : 3 * n])
        return {h.PROBE_SWAP: numbers.mean(swapped), h.SENSITIVITY: numbers.mean(divergence)}


def chosen(run: RunDir, config: RunConfig, kind: str) -> list[Row]:
    """At most `probe_rows` of the snapshot, evenly over it, so that every defect is among them."""
    file: str = getattr(config.data, kind)
    if not file:
        return []
    rows = read_rows(run.path / file, kind)
    n = min(config.grpo.probe_rows, len(rows))
    return [rows[i * len(rows) // n] for i in range(n)]


@torch.inference_mode()
def likelihoods(model: Any, tokenizer: Any, asked: Sequence[Asked]) -> Likelihoods:
    """Each is read in one pass, padded on the right."""
    was_training = model.training
    model.eval()
    prompts = [encode(tokenizer, policy_text(tokenizer, p, q), 1 << 20) for p, q, _ in asked]
    end = [tokenizer.eos_token_id]
    answers = [[*encode(tokenizer, answer, 1 << 20), *end] for _, _, answer in asked]
    values: list[float] = []
    first: list[torch.Tensor] = []
    longest = max(len(p) + len(a) for p, a in zip(prompts, answers, strict=True))
    batch = max(1, min(64, LOGITS // (longest * len(tokenizer))))
    for start in range(0, len(asked), batch):
        few = slice(start, start + batch)
        pairs = list(zip(prompts[few], answers[few], strict=True))
        logits = _logits(model, tokenizer, [p + a for p, a in pairs])
        for row, (p, a) in zip(logits, pairs, strict=True):
            said = torch.log_softmax(row[len(p) - 1 : len(p) + len(a) - 1].float(), dim=-1)
            wanted = torch.tensor(a, device=said.device)[:, None]
            values.append(float(said.gather(1, wanted).mean()))
            first.append(said[0].exp().cpu())
    model.train(was_training)
    return Likelihoods(values, torch.stack(first))


def _logits(model: Any, tokenizer: Any, ids: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, ids))
    device = next(model.parameters()).device
    pad = tokenizer.pad_token_id
    tokens = torch.tensor([i + [pad] * (longest - len(i)) for i in ids], device=device)
    mask = torch.tensor([[1] * len(i) + [0] * (longest - len(i)) for i in ids], device=device)
    logits: torch.Tensor = model(input_ids=tokens, attention_mask=mask).logits
    return logits


def js_bits(left: torch.Tensor, right: torch.Tensor) -> list[float]:
    """Jensen–Shannon divergence of rows of probabilities, in bits: 0 alike, 1 disjoint.

    Lin 1991, Divergence measures based on the Shannon entropy.
    """
    middle = (left + right) / 2
    halves = [
        torch.special.xlogy(side, side) - torch.special.xlogy(side, middle)
        for side in (left, right)
    ]
    total = (halves[0] + halves[1]).sum(dim=-1) / 2 / torch.log(torch.tensor(2.0))
    values: list[float] = total.clamp(0, 1).tolist()
    return values
