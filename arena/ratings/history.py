"""Ratings over several rounds, joined only through contestants that rounds share.

Every round has a scale of its own: only differences within it mean something. Two rounds with
shared contestants are put on one scale by the shift that makes the shared strengths agree best,
weighted by their precision; rounds that share nobody, directly or through others, stay apart and
the answer says so. A contestant is frozen, so its strength is taken to be the same in every round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arena.ratings.graph import Note
from arena.ratings.votes import FloatArray


@dataclass(frozen=True)
class RoundStrengths:
    """One round: log strengths by contestant, and their standard errors (None: equal weight).

    Leave out contestants without a strength, or rated in another group than the largest.
    """

    name: str
    strengths: Mapping[str, float]
    errors: Mapping[str, float] | None = None


@dataclass(frozen=True)
class JoinedRound:
    """A round on the scale of its chain.

    `chain`: rounds compare only within a chain, numbered from 0 by their first round. `shift`:
    what was added to every strength; 0 for the first round of a chain. `shared`: how many of its
    contestants other rounds of the chain know.
    """

    name: str
    chain: int
    shift: float
    strengths: dict[str, float]
    shared: int


@dataclass(frozen=True)
class History:
    """The joined rounds in their given order, and what has to be said about them."""

    rounds: tuple[JoinedRound, ...]
    notes: tuple[Note, ...] = ()


def join_rounds(rounds: Sequence[RoundStrengths]) -> History:
    """Put rounds on common scales; ValueError on two rounds of one name."""
    names = [r.name for r in rounds]
    if len(set(names)) < len(names):
        raise ValueError("two rounds have the same name")
    chains = _chains(rounds)
    shifts = np.zeros(len(rounds))
    for chain in sorted(set(chains)):
        members = [i for i, c in enumerate(chains) if c == chain]
        shifts[members] = _shifts([rounds[i] for i in members])
    joined = tuple(
        JoinedRound(
            name=r.name,
            chain=chains[i],
            shift=float(shifts[i]),
            strengths={c: s + float(shifts[i]) for c, s in r.strengths.items()},
            shared=_shared(rounds, i),
        )
        for i, r in enumerate(rounds)
    )
    return History(joined, _notes(joined))


def _chains(rounds: Sequence[RoundStrengths]) -> list[int]:
    """The chain of every round: rounds linked by shared contestants, numbered by first round."""
    label = list(range(len(rounds)))
    owner: dict[str, int] = {}
    for i, r in enumerate(rounds):
        for contestant in r.strengths:
            old, new = sorted((label[owner.setdefault(contestant, i)], label[i]))
            label = [old if x == new else x for x in label]
    order = {x: n for n, x in enumerate(dict.fromkeys(label))}
    return [order[x] for x in label]


def _shifts(rounds: Sequence[RoundStrengths]) -> FloatArray:
    """(R,) weighted least squares of θ_ri + shift_r = μ_i, with the first shift 0."""
    seen = [c for r in rounds for c in r.strengths]
    place = {c: n for n, c in enumerate(sorted({c for c in seen if seen.count(c) > 1}))}
    rows, values = [], []
    for i, r in enumerate(rounds):
        for contestant in sorted(place.keys() & r.strengths.keys()):
            weight = _weight(r, contestant)
            row = np.zeros(len(rounds) + len(place))
            row[i], row[len(rounds) + place[contestant]] = -weight, weight
            rows.append(row)
            values.append(weight * r.strengths[contestant])
    if len(rounds) < 2:
        return np.zeros(len(rounds))
    solution, *_ = np.linalg.lstsq(np.array(rows)[:, 1:], np.array(values), rcond=None)
    return np.concatenate([[0.0], solution[: len(rounds) - 1]])


def _weight(r: RoundStrengths, contestant: str) -> float:
    """The inverse standard error, or 1 where the round gives none."""
    if r.errors is None:
        return 1.0
    error = r.errors[contestant]
    if not error > 0:
        raise ValueError(f"{r.name}: the standard error of {contestant!r} is not positive")
    return 1.0 / error


def _shared(rounds: Sequence[RoundStrengths], i: int) -> int:
    others = {c for j, r in enumerate(rounds) if j != i for c in r.strengths}
    return len(others & rounds[i].strengths.keys())


def _notes(rounds: Sequence[JoinedRound]) -> tuple[Note, ...]:
    chains = sorted({r.chain for r in rounds})
    notes = []
    if len(chains) > 1:
        groups = [", ".join(r.name for r in rounds if r.chain == c) for c in chains]
        text = (
            "These rounds share no contestant, so their ratings cannot be put on one scale: "
            f"{'; '.join(groups)}."
        )
        notes.append(Note("rounds_not_joined", text, tuple(groups)))
    weak = tuple(r.name for r in rounds if r.shared == 1)
    if weak:
        text = f"Joined through a single shared contestant: {', '.join(weak)}."
        notes.append(Note("single_link", text, weak))
    return tuple(notes)
