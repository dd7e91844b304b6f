"""Which pairs meet in which contexts, on which side, in which order. Never by verdicts.

Pure. All randomness comes from the round's secret seed through ``SeededStream``.

The plan draws only the comparisons that the planned votes need (a reference round has 1.66
million possible ones and needs 6,000). Two balanced endless orders are laid side by side:

* pairs, in permuted blocks that each hold every pair once. Inside a block they come as perfect
  matchings by the circle method (Kirkman 1847), with the contestants relabelled at random, so
  that any prefix has every contestant equally often, give or take one;
* contexts, in permuted blocks that each hold every context once. Inside a block the strata take
  turns by Tijdeman's rule ("The chairman assignment problem", 1980), which keeps every prefix
  within one of proportional.

Two successive matchings of the circle method form one Hamiltonian path or cycle, so K - 1
comparisons already connect K contestants. Where entries are missing, the next pair that the
context can serve is taken, and laggards are evened out by exchange along augmenting paths
(Harvey et al., "Semi-matchings", 2006).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

from arena.balance import ContextSpec, Pair, components, context_block, find_root, pair_block
from arena.blinding import SeededStream, seeded_coin

__all__ = ["ContextSpec", "PlanError", "PlannedSlot", "axis_order", "choose_side", "plan_slots"]


class PlanError(ValueError):
    """The asked-for plan cannot be made. ``code`` is stable; the message names what is missing."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class PlannedSlot(NamedTuple):
    """One comparison; x sorts before y. It is sealed as two mirrored battles (V4)."""

    context: str
    x: str
    y: str


# --- the plan ---------------------------------------------------------------------------------


def plan_slots(
    *,
    contestants: Sequence[str],
    contexts: Sequence[ContextSpec],
    planned_votes: int,
    votes_per_battle: int,
    seed: bytes,
) -> list[PlannedSlot]:
    """Return the ceil(planned_votes / votes_per_battle) slots of a round, in serving order.

    Every prefix is balanced: pairs, contestants and contexts differ by at most one, strata are
    proportional to their contexts, as far as entries are available. The comparisons connect all
    contestants. Contexts with fewer than two entries are left out. The result depends on the
    sets given and the seed, not on their order.

    Raises PlanError: too_few_contestants, duplicate, unknown_contestant, bad_votes,
    too_few_votes (fewer slots than K - 1), not_connectable, too_few_comparisons.
    """
    names = _checked_contestants(contestants)
    usable = _checked_contexts(contexts, names)
    needed = _slots_needed(planned_votes, votes_per_battle)
    _check_feasible(names, usable, needed)
    plan = _Plan(names, usable, seed)
    plan.extend(needed)
    plan.even_out()
    if len(components(names, [{slot.x, slot.y} for slot in plan.slots])) > 1:
        tree = _spanning_slots(usable, seed)
        plan = _Plan(names, usable, seed)
        plan.place(tree)
        plan.extend(needed)
    return plan.slots


def _checked_contestants(contestants: Sequence[str]) -> list[str]:
    names = sorted(contestants)
    if len(set(names)) != len(names):
        raise PlanError("duplicate", "a contestant is listed twice")
    if len(names) < 2:
        raise PlanError("too_few_contestants", "a round needs at least two contestants")
    return names


def _checked_contexts(contexts: Sequence[ContextSpec], names: list[str]) -> list[ContextSpec]:
    if len({context.id for context in contexts}) != len(contexts):
        raise PlanError("duplicate", "a context is listed twice")
    unknown = frozenset().union(*(context.available for context in contexts)) - set(names)
    if unknown:
        raise PlanError(
            "unknown_contestant", "entries of contestants not in the round: " + _listed(unknown)
        )
    usable = [context for context in contexts if len(context.available) >= 2]
    return sorted(usable, key=lambda context: context.id)


def _slots_needed(planned_votes: int, votes_per_battle: int) -> int:
    if planned_votes < 1 or votes_per_battle < 1:
        raise PlanError("bad_votes", "planned votes and votes per battle must be at least 1")
    return -(-planned_votes // votes_per_battle)


def _check_feasible(names: list[str], usable: list[ContextSpec], needed: int) -> None:
    if needed < len(names) - 1:
        raise PlanError(
            "too_few_votes",
            f"{needed} comparisons cannot connect {len(names)} contestants; "
            f"at least {len(names) - 1} are needed",
        )
    groups = components(names, [context.available for context in usable])
    if len(groups) > 1:
        parts = " | ".join(_listed(group) for group in groups)
        raise PlanError("not_connectable", f"no context has entries of both sides of: {parts}")
    possible = sum(len(c.available) * (len(c.available) - 1) // 2 for c in usable)
    if possible < needed:
        raise PlanError(
            "too_few_comparisons",
            f"{needed} comparisons are needed, the contexts and entries allow {possible}",
        )


def _listed(names: Collection[str], most: int = 5) -> str:
    ordered = sorted(names)
    rest = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + rest


def _spanning_slots(usable: list[ContextSpec], seed: bytes) -> list[PlannedSlot]:
    """Return K - 1 slots that connect all contestants, spread over the contexts.

    Each pass takes at most one new edge from a context, so that few contexts repeat.
    """
    order = SeededStream(seed, "tree").shuffled(usable)
    parent = {name: name for context in usable for name in context.available}
    slots: list[PlannedSlot] = []
    while len(slots) < len(parent) - 1:
        for context in order:
            roots = {find_root(parent, name): name for name in sorted(context.available)}
            if len(roots) > 1:
                x, y = sorted(roots.values())[:2]
                parent[find_root(parent, x)] = find_root(parent, y)
                slots.append(PlannedSlot(context.id, x, y))
    return slots


class _Plan:
    """The growing list of slots, with the counts that keep it balanced."""

    def __init__(self, names: list[str], usable: list[ContextSpec], seed: bytes) -> None:
        self.slots: list[PlannedSlot] = []
        self._names, self._usable = names, usable
        self._available = {context.id: context.available for context in usable}
        self._used: dict[str, set[Pair]] = {context.id: set() for context in usable}
        self._capacity = _pair_capacity(names, usable)
        self._count: Counter[Pair] = Counter()
        self._ahead: Counter[Pair] = Counter()  # placed before their turn came
        self._pending: list[Pair] = []  # due pairs, earliest first
        self._pairs = SeededStream(seed, "pairs")
        self._contexts = SeededStream(seed, "contexts")

    def place(self, slots: Sequence[PlannedSlot]) -> None:
        """Take ``slots`` as given; their pairs skip one turn later."""
        for slot in slots:
            self._take(slot.context, (slot.x, slot.y))
            self._ahead[slot.x, slot.y] += 1

    def extend(self, needed: int) -> None:
        """Grow to ``needed`` slots; the caller has checked that the contexts allow as many."""
        early = Counter(slot.context for slot in self.slots)
        while len(self.slots) < needed:
            turns = [c for c in context_block(self._usable, self._contexts) if not early[c.id]]
            early.subtract(early.keys())
            early = +early
            self._serve(turns, needed)

    def _serve(self, turns: list[ContextSpec], needed: int) -> None:
        """Give one pair to each context of a block, as long as slots are needed."""
        for turn in range(len(turns)):
            if len(self.slots) == needed:
                return
            position = self._due(turns[turn]) or self._swap_in(turns, turn)
            while position is None and not self._exhausted(turns[turn]):
                self._open_block()
                position = self._due(turns[turn])
            if position is not None:
                self._take(turns[turn].id, self._pending.pop(position[0]))

    def _swap_in(self, turns: list[ContextSpec], turn: int) -> tuple[int] | None:
        """Let a later context of the same stratum come first if it can serve a due pair."""
        if not self._pending:
            return None
        for later in range(turn + 1, len(turns)):
            if turns[later].stratum == turns[turn].stratum and (found := self._due(turns[later])):
                turns[turn], turns[later] = turns[later], turns[turn]
                return found
        return None

    def _due(self, context: ContextSpec) -> tuple[int] | None:
        """Return the place of the earliest due pair that ``context`` can serve, boxed."""
        used = self._used[context.id]
        for place, pair in enumerate(self._pending):
            if pair not in used and context.available.issuperset(pair):
                return (place,)
        return None

    def _exhausted(self, context: ContextSpec) -> bool:
        size = len(context.available)
        return len(self._used[context.id]) >= size * (size - 1) // 2

    def _open_block(self) -> None:
        for pair in pair_block(self._names, self._pairs):
            if self._ahead[pair]:
                self._ahead[pair] -= 1
            elif self._count[pair] < self._capacity[pair]:
                self._pending.append(pair)

    def _take(self, context: str, pair: Pair) -> None:
        self.slots.append(PlannedSlot(context, *pair))
        self._used[context].add(pair)
        self._count[pair] += 1

    def even_out(self) -> None:
        """Exchange pairs within contexts until no exchange brings the pair counts closer."""
        stuck: set[Pair] = {pair for pair, most in self._capacity.items() if not most}
        while open_pairs := [pair for pair in self._capacity if pair not in stuck]:
            low = min(open_pairs, key=self._count.__getitem__)
            if self._count[low] >= max(self._count.values()) - 1:
                return
            stuck |= self._augment(low)

    def _augment(self, low: Pair) -> set[Pair]:
        """Move one slot to ``low`` along a shortest chain from a pair with at least two more.

        Returns the empty set when done, else the pairs that were reached in vain.
        """
        came_by: dict[Pair, tuple[Pair, int] | None] = {low: None}
        queue = deque([low])
        while queue:
            pair = queue.popleft()
            for number, slot in enumerate(self.slots):
                rival = (slot.x, slot.y)
                if rival in came_by or pair in self._used[slot.context]:
                    continue
                if not self._available[slot.context].issuperset(pair):
                    continue
                came_by[rival] = (pair, number)
                if self._count[rival] >= self._count[low] + 2:
                    self._shift(rival, came_by)
                    return set()
                queue.append(rival)
        return set(came_by)

    def _shift(self, pair: Pair, came_by: dict[Pair, tuple[Pair, int] | None]) -> None:
        self._count[pair] -= 1
        while (link := came_by[pair]) is not None:
            successor, number = link
            context = self.slots[number].context
            self.slots[number] = PlannedSlot(context, *successor)
            self._used[context] ^= {pair, successor}
            pair = successor
        self._count[pair] += 1


def _pair_capacity(names: list[str], usable: list[ContextSpec]) -> dict[Pair, int]:
    """Return in how many contexts each pair could meet, by bit masks over the contexts."""
    masks = dict.fromkeys(names, 0)
    for bit, context in enumerate(usable):
        for name in context.available:
            masks[name] |= 1 << bit
    return {(a, b): (masks[a] & masks[b]).bit_count() for a, b in combinations(names, 2)}


# --- serving ----------------------------------------------------------------------------------


def choose_side(
    seed: bytes,
    slot_id: str,
    rater_id: str,
    slot_left_counts: tuple[int, int],
    rater_left_counts: tuple[int, int],
) -> bool:
    """Return left_is_x for serving a slot to a rater: the side that leaves both counts most even.

    Both counts are (times x stood left, times y stood left) over past allocations, voted or not:
    ``slot_left_counts`` of this slot (better: of this pair in all its slots),
    ``rater_left_counts`` of this rater: how often x's contestant stood left in his battles and
    how often y's did. Minimises the sum of squared differences; a draw falls to the seed's coin
    for this slot and rater. Verdicts play no part (V4).
    """
    lead = (slot_left_counts[0] - slot_left_counts[1]) + (
        rater_left_counts[0] - rater_left_counts[1]
    )
    if lead:
        return lead < 0
    return seeded_coin(seed, "side", slot_id, rater_id)


def axis_order(
    seed: bytes, rater_ids: Sequence[str], axes: Sequence[str] = ("quality", "personalization")
) -> dict[str, tuple[str, ...]]:
    """Return for each rater the order in which the axes are asked, fixed for the round.

    All orders of ``axes`` (at most 5) come equally often, give or take one: permuted blocks.
    """
    if len(set(axes)) != len(axes) or not 1 <= len(axes) <= 5:
        raise PlanError("bad_axes", "one to five different axes are needed")
    stream = SeededStream(seed, "axes")
    orders = list(permutations(sorted(axes)))
    block: list[tuple[str, ...]] = []
    result: dict[str, tuple[str, ...]] = {}
    for rater in sorted(set(rater_ids)):
        block = block or stream.shuffled(orders)
        result[rater] = block.pop()
    return result
