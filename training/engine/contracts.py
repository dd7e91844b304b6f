"""What passes between the parts of the engine: messages, rollouts, parts of a score, scorers.

`None` means "could not be scored". It is counted and left out, never taken as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Message = Mapping[str, str]  # role, content
Value = float | None


@dataclass(frozen=True)
class ToolStep:
    """One call of a tool and what came back."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: str = ""
    ok: bool = True


@dataclass(frozen=True)
class Task:
    """What a rollout should reach, as far as rules can say it. Everything may be empty."""

    entities: tuple[str, ...] = ()  # must be named in the answer
    numbers: tuple[float, ...] = ()  # must be stated in the answer
    forbidden: tuple[str, ...] = ()  # must not be in the answer
    required_steps: tuple[str, ...] = ()  # tools, in this order; or words, where no tool is called
    reference_steps: int = 0  # what a person needs
    words: tuple[int, int] = (0, 0)  # least and most that this person wants; 0: no limit
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # tool → needed names


@dataclass(frozen=True)
class Rollout:
    """One answer, with everything that a scorer may look at."""

    prompt: tuple[Message, ...]  # without the persona; ends with the user's turn
    completion: str
    persona: str = ""
    task: Task | None = None
    steps: tuple[ToolStep, ...] = ()
    reference: str = ""  # an answer to compare with
    id: str = ""

    @property
    def question(self) -> str:
        return self.prompt[-1]["content"] if self.prompt else ""


@dataclass(frozen=True)
class Parts:
    """Named values, each in [0, 1], and what speaks for them."""

    values: Mapping[str, Value]
    evidence: tuple[str, ...] = ()

    def total(self, weights: Mapping[str, float]) -> Value:
        """Weighted mean over the values that are known; None if none is."""
        known = {k: v for k, v in self.values.items() if v is not None and weights.get(k)}
        weight = sum(weights[name] for name in known)
        if not weight:
            return None
        return sum(weights[name] * value for name, value in known.items()) / weight


class Scorer(Protocol):
    """Rules, a reward model or a judge; `version` changes whenever its values may."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def score(self, rollout: Rollout) -> Parts | None: ...


class BatchScorer(Scorer, Protocol):
    """A scorer that is faster on many at once. Values must not depend on the company."""

    def score_many(self, rollouts: Sequence[Rollout]) -> list[Parts | None]: ...


def score_all(scorer: Scorer, rollouts: Sequence[Rollout]) -> list[Parts | None]:
    """Score in one go where the scorer can; the order is kept."""
    many = getattr(scorer, "score_many", None)
    if many is not None:
        found: list[Parts | None] = many(rollouts)
        return found
    return [scorer.score(rollout) for rollout in rollouts]


def as_messages(prompt: str | Iterable[Message]) -> tuple[Message, ...]:
    """A prompt as stored: a question, or a conversation that ends with the user's turn."""
    if isinstance(prompt, str):
        return ({"role": "user", "content": prompt},)
    return tuple({"role": m["role"], "content": m["content"]} for m in prompt)
