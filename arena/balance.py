"""Balanced orders for the plan of a round, and the groups that comparisons connect.

Pure; the sources of the methods stand in ``arena.matchmaking``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import gcd

from arena.blinding import SeededStream

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """A context to plan over: the contestants in ``available`` have a usable entry in it."""

    id: str
    stratum: str
    available: frozenset[str]


def pair_block(names: Sequence[str], stream: SeededStream) -> list[Pair]:
    """Return every pair of ``names`` once, as successive matchings of randomly placed names.

    The rounds of the circle method follow each other at a random step that is coprime to their
    number, which keeps two successive ones connected.
    """
    seats: list[str | None] = [*stream.shuffled(names)]
    if len(seats) % 2:
        seats.append(None)
    rounds = len(seats) - 1
    steps = [step for step in range(1, rounds + 1) if gcd(step, rounds) == 1]
    start, step = stream.below(rounds), steps[stream.below(len(steps))]
    block: list[Pair] = []
    for turn in range(rounds):
        shift = (start + turn * step) % rounds
        couples = [(seats[rounds], seats[shift])] + [
            (seats[(shift + k) % rounds], seats[(shift - k) % rounds])
            for k in range(1, (rounds + 1) // 2)
        ]
        real = [(min(a, b), max(a, b)) for a, b in couples if a is not None and b is not None]
        block.extend(stream.shuffled(real))
    return block


def context_block(contexts: Sequence[ContextSpec], stream: SeededStream) -> list[ContextSpec]:
    """Return every context once; after any prefix each stratum is within one of its share."""
    queues: dict[str, list[ContextSpec]] = {}
    for context in stream.shuffled(contexts):
        queues.setdefault(context.stratum, []).append(context)
    strata = stream.shuffled(sorted(queues))
    sizes = {stratum: len(queues[stratum]) for stratum in strata}
    total, slack = len(contexts), 2 * len(strata) - 2
    block: list[ContextSpec] = []
    for turn in range(1, total + 1):
        best, urgency = strata[0], None
        for stratum in strata:
            taken = sizes[stratum] - len(queues[stratum])
            due = sizes[stratum] * turn - taken * total  # times total: whole numbers only
            if slack and due * slack < total:
                continue  # Tijdeman: not yet eligible
            wait = (total * (slack - 1) - due * slack) / sizes[stratum]
            if queues[stratum] and (urgency is None or wait < urgency):
                best, urgency = stratum, wait
        block.append(queues[best].pop())
    return block


def components(names: Sequence[str], edges: Sequence[Collection[str]]) -> list[list[str]]:
    """Return the connected groups of ``names``, largest first; an edge joins all that it holds."""
    parent = {name: name for name in names}
    for edge in edges:
        first, *others = edge if edge else (names[0],)
        for other in others:
            parent[find_root(parent, other)] = find_root(parent, first)
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(find_root(parent, name), []).append(name)
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def find_root(parent: dict[str, str], name: str) -> str:
    """Return the representative of ``name``, halving paths on the way (union-find)."""
    while parent[name] != name:
        parent[name] = parent[parent[name]]
        name = parent[name]
    return name
