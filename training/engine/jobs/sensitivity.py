"""How much a policy depends on who asks, and whether that survives: quantisation, adaptation.

Two numbers for every question that two people ask. The Jensen–Shannon divergence, in bits, of what
the policy would say first to the one and to the other. And, with a reward model of
personalization, the margin: how much better the answer made for a person suits that person than
the answer made for the other; 0 where the policy does not listen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from training.engine.config.schema import RunConfig
from training.engine.contracts import Scorer, as_messages, score_all
from training.engine.jobs.evaluate import answers
from training.engine.jobs.probes import js_bits, likelihoods
from training.engine.numbers import Value
from training.engine.rundir import RunDir, dumps
from training.engine.snapshots import Row, read_rows, rollout_of


@dataclass(frozen=True)
class Contrast:
    """One question and two personas that ask it."""

    prompt: Any
    first: str
    second: str

    @property
    def key(self) -> str:
        """The question alone: the unit of an interval."""
        return dumps(as_messages(self.prompt))


def contrasts(run: RunDir, config: RunConfig, limit: int) -> list[Contrast]:
    """From swaps, and where there are none from prompts that several personas ask; evenly."""
    data = config.data
    if data.swaps:
        rows = read_rows(run.path / data.swaps, "swaps")
        found = [Contrast(r["prompt"], r["persona_first"], r["persona_second"]) for r in rows]
    else:
        named = (file for file in (data.gate, data.heldout, data.train) if file)
        file = next((file for file in named if (run.path / file).is_file()), "")
        found = of_prompts(read_rows(run.path / file, "prompts")) if file else []
    n = min(limit, len(found))
    return [found[i * len(found) // n] for i in range(n)]


def of_prompts(rows: Sequence[Row]) -> list[Contrast]:
    """Neighbours among the personas of each question, as often as there are two."""
    people: dict[str, list[Row]] = {}
    for row in rows:
        people.setdefault(dumps(as_messages(row["prompt"])), []).append(row)
    return [
        Contrast(a["prompt"], a["persona"], b["persona"])
        for asked in people.values()
        for a, b in pairwise(asked)
        if a["persona"] != b["persona"]
    ]


def divergences(model: Any, tokenizer: Any, asked: Sequence[Contrast]) -> list[float]:
    """Bits between what the two people of each question are told first."""
    both = [(c.first, c.prompt, "") for c in asked] + [(c.second, c.prompt, "") for c in asked]
    first = likelihoods(model, tokenizer, both).first
    return js_bits(first[: len(asked)], first[len(asked) :])


def margins(
    model: Any, tokenizer: Any, asked: Sequence[Contrast], scorer: Scorer, config: RunConfig
) -> list[Value]:
    """Of one answer to each of the two, as the reward model sees it; None where it could not."""
    e, q = config.evaluate, config.quantize
    people = [{"persona": c.first, "prompt": c.prompt} for c in asked]
    people += [{"persona": c.second, "prompt": c.prompt} for c in asked]
    said = answers(model, tokenizer, people, e.max_completion, e.temperature, config.seed, q.batch)
    n = len(asked)
    other = [*range(n, 2 * n), *range(n)]  # the place of whoever asked the same
    rollouts = [rollout_of(row, text) for row, text in zip(people, said, strict=True)]
    rollouts += [rollout_of(people[i], said[other[i]]) for i in range(2 * n)]
    values = [
        parts.values.get("personalization") if parts else None
        for parts in score_all(scorer, rollouts)
    ]
    found: list[Value] = []
    for i in range(n):
        own, crossed = (values[i], values[n + i]), (values[2 * n + i], values[3 * n + i])
        four = [*own, *crossed]
        known = [v for v in four if v is not None]
        found.append((known[0] + known[1] - known[2] - known[3]) / 2 if len(known) == 4 else None)
    return found
