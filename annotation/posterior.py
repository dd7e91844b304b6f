"""Soft labels: how probable each verdict is, given the labels. Pure: no Django, no models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PRIOR_RIGHT, PRIOR_SEEN = 8.0, 10.0  # an annotator of whom nothing is known is right in 8 of 10


@dataclass(frozen=True)
class Voter:
    """An annotator's account on gold."""

    right: int = 0
    seen: int = 0

    @property
    def accuracy(self) -> float:
        """Posterior mean, from the prior above."""
        return (PRIOR_RIGHT + self.right) / (PRIOR_SEEN + self.seen)


def item_posterior(
    labels: Sequence[tuple[str, Voter]], verdicts: Sequence[str]
) -> dict[str, float]:
    """Probability of each verdict, to 4 digits, by the one-coin model (Raykar et al., 2010).

    Every verdict is equally likely before; an annotator gives the right one with her accuracy and
    each wrong one with an equal share of the rest.
    """
    weights = dict.fromkeys(verdicts, 1.0)
    for given, voter in labels:
        wrong = (1 - voter.accuracy) / max(len(verdicts) - 1, 1)
        for verdict in weights:
            weights[verdict] *= voter.accuracy if verdict == given else wrong
    total = sum(weights.values()) or 1.0
    return {verdict: round(weight / total, 4) for verdict, weight in weights.items()}
