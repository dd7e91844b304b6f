"""Whether a model says the same whatever it is asked: judges score answers one by one, and none of
them sees it. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sameness:
    """Share of the prompts that got the commonest answer, of either side; 0 where nobody answered.

    Answers are compared without case and spacing.
    """

    candidate: float = 0.0
    baseline: float = 0.0

    @property
    def rise(self) -> float:
        return self.candidate - self.baseline


def commonest(answers: Iterable[tuple[str, str]]) -> float:
    """The share for (prompt, text) of one side."""
    prompts: set[str] = set()
    by_text: dict[str, set[str]] = defaultdict(set)
    for prompt, text in answers:
        prompts.add(prompt)
        by_text[" ".join(text.casefold().split())].add(prompt)
    most = max((len(asked) for asked in by_text.values()), default=0)
    return most / len(prompts) if prompts else 0.0
