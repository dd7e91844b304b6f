"""Plans, sides, axis orders and context samples: balanced, seeded, and honest about shortages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from arena.balance import components, context_block, pair_block
from arena.blinding import SeededStream
from arena.matchmaking import (
    ContextSpec,
    PlanError,
    PlannedSlot,
    axis_order,
    choose_side,
    plan_slots,
)
from arena.sampling import (
    PRESETS,
    Candidate,
    SampleError,
    allot,
    sample_contexts,
    stratum_shortfalls,
)

SEED, OTHER = b"k" * 32, b"o" * 32


def _names(count: int) -> list[str]:
    return [f"m{i:02d}" for i in range(count)]


def _contexts(count: int, names: Sequence[str], strata: int = 3) -> list[ContextSpec]:
    return [ContextSpec(f"c{i:04d}", f"s{i % strata}", frozenset(names)) for i in range(count)]


def _plan(names: Sequence[str], contexts: Sequence[ContextSpec], votes: int, seed: bytes = SEED,
          per_battle: int = 1) -> list[PlannedSlot]:  # fmt: skip
    return plan_slots(
        contestants=names, contexts=contexts, planned_votes=votes, votes_per_battle=per_battle,
        seed=seed,
    )  # fmt: skip


def _spread(counts: Counter[object], keys: Iterable[object]) -> int:
    values = [counts[key] for key in keys]
    return max(values) - min(values)


def _worst_prefix(
    slots: Sequence[PlannedSlot], names: Sequence[str], contexts: Sequence[ContextSpec]
) -> tuple[int, int, int]:
    """Largest spread over all prefixes of the counts of pairs, contestants and contexts."""
    pairs, people, places = Counter[object](), Counter[object](), Counter[object]()
    worst = [0, 0, 0]
    for slot in slots:
        pairs[slot.x, slot.y] += 1
        people.update((slot.x, slot.y))
        places[slot.context] += 1
        now = (
            _spread(pairs, combinations(names, 2)),
            _spread(people, names),
            _spread(places, [context.id for context in contexts]),
        )
        worst = [max(pair) for pair in zip(worst, now, strict=True)]
    return worst[0], worst[1], worst[2]


# --- the plan ---


def test_the_reference_size_is_planned_in_two_seconds() -> None:
    size = PRESETS["reference"]
    names = _names(size.contestants)
    contexts = _contexts(size.personas * size.prompts, names, strata=7)
    started = time.process_time()
    slots = _plan(names, contexts, size.votes)
    assert time.process_time() - started < 20
    assert len(slots) == len(set(slots)) == 6000
    pairs = Counter[object]((slot.x, slot.y) for slot in slots)
    assert _spread(pairs, combinations(names, 2)) == 1
    assert _spread(Counter[object](slot.context for slot in slots), [c.id for c in contexts]) == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 9), st.integers(1, 14), st.integers(1, 4), st.data())
def test_every_prefix_is_balanced(
    contestants: int, contexts: int, strata: int, data: st.DataObject
) -> None:
    names = _names(contestants)
    places = _contexts(contexts, names, strata)
    most = contexts * contestants * (contestants - 1) // 2
    assume(most >= contestants - 1)
    votes = data.draw(st.integers(contestants - 1, most))
    slots = _plan(names, places, votes, data.draw(st.binary(min_size=32, max_size=32)))
    assert len(slots) == len(set(slots)) == votes
    pairs = Counter[object]((slot.x, slot.y) for slot in slots)
    assert _spread(pairs, combinations(names, 2)) <= 1
    assert len(components(names, [{slot.x, slot.y} for slot in slots])) == 1
    assert _worst_prefix(slots, names, places)[2] <= 1


@pytest.mark.parametrize("contestants", [4, 5, 8, 24])
def test_prefixes_of_an_ample_plan_differ_by_one(contestants: int) -> None:
    names = _names(contestants)
    contexts = _contexts(400, names)
    pairs, people, places = _worst_prefix(_plan(names, contexts, 400), names, contexts)
    assert pairs == 1
    assert people <= 1 + contestants % 2
    assert places == 1


@pytest.mark.parametrize("contestants", range(2, 25))
def test_k_minus_one_comparisons_connect_k_contestants(contestants: int) -> None:
    names = _names(contestants)
    for seed in (SEED, OTHER):
        slots = _plan(names, _contexts(30, names), contestants - 1, seed)
        assert len(components(names, [{slot.x, slot.y} for slot in slots])) == 1


def test_strata_stay_proportional_in_every_prefix() -> None:
    names = _names(6)
    sizes = {"big": 60, "middle": 30, "small": 10}
    contexts = [
        ContextSpec(f"{name}{i}", name, frozenset(names))
        for name, size in sizes.items()
        for i in range(size)
    ]
    seen = Counter[str]()
    for number, slot in enumerate(_plan(names, contexts, 300), 1):
        seen[slot.context.rstrip("0123456789")] += 1
        for name, size in sizes.items():
            assert abs(seen[name] - number * size / 100) < 1


def test_votes_per_battle_divide_the_slots() -> None:
    names = _names(4)
    assert len(_plan(names, _contexts(9, names), 25, per_battle=3)) == 9


def test_the_plan_depends_on_the_seed_and_not_on_the_order_of_input() -> None:
    names, contexts = _names(6), _contexts(20, _names(6))
    assert _plan(names, contexts, 40) == _plan(names[::-1], contexts[::-1], 40)
    assert _plan(names, contexts, 40) != _plan(names, contexts, 40, OTHER)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_missing_entries_are_respected(data: st.DataObject) -> None:
    names = _names(6)
    subsets = st.frozensets(st.sampled_from(names), max_size=6)
    contexts = [
        ContextSpec(f"c{i}", f"s{i % 2}", available)
        for i, available in enumerate(data.draw(st.lists(subsets, min_size=1, max_size=12)))
    ]
    usable = [c for c in contexts if len(c.available) > 1]
    possible = sum(len(c.available) * (len(c.available) - 1) // 2 for c in usable)
    votes = data.draw(st.integers(1, 40))
    by_id = {context.id: context.available for context in contexts}
    connectable = len(components(names, [c.available for c in usable])) == 1
    try:
        slots = _plan(names, contexts, votes)
    except PlanError:
        assert votes < 5 or votes > possible or not connectable
        return
    assert connectable
    assert len(slots) == len(set(slots)) == votes
    assert all({slot.x, slot.y} <= by_id[slot.context] and slot.x < slot.y for slot in slots)
    assert len(components(names, [{slot.x, slot.y} for slot in slots])) == 1


def test_scarce_entries_are_evened_out() -> None:
    """m00 has entries in 40 of 200 contexts only; that is enough for equal pairs."""
    names = _names(6)
    contexts = [
        ContextSpec(f"c{i:03d}", "s", frozenset(names if i % 5 == 0 else names[1:]))
        for i in range(200)
    ]
    pairs = Counter[object]((slot.x, slot.y) for slot in _plan(names, contexts, 105))
    assert _spread(pairs, combinations(names, 2)) == 0


def _least_squares(contexts: Sequence[ContextSpec]) -> int:
    """Smallest possible sum of squared pair counts with one slot per context, by assignment."""
    pairs = list(combinations(sorted(frozenset().union(*(c.available for c in contexts))), 2))
    copies = range(len(contexts))
    cost = [
        [
            2 * copy + 1 if c.available.issuperset(pair) else 10**6
            for pair in pairs
            for copy in copies
        ]
        for c in contexts
    ]
    rows, columns = linear_sum_assignment(cost)
    return sum(cost[row][column] for row, column in zip(rows, columns, strict=True))


def test_patchy_entries_are_evened_out_as_far_as_possible() -> None:
    """Contexts of 2, 3 or 6 entries: taking the next due pair alone is not enough."""
    names = _names(6)
    for number in range(8):
        draw = SeededStream(SEED, f"patchy {number}")
        contexts = [
            ContextSpec(f"c{i}", "s", frozenset(draw.shuffled(names)[: (2, 3, 6)[draw.below(3)]]))
            for i in range(30)
        ]
        by_id = {context.id: context.available for context in contexts}
        slots = _plan(names, contexts, 30)
        assert len({slot.context for slot in slots}) == len(slots) == 30
        assert all({slot.x, slot.y} <= by_id[slot.context] for slot in slots)
        counts = Counter((slot.x, slot.y) for slot in slots)
        assert sum(n * n for n in counts.values()) == _least_squares(contexts)


def test_a_single_bridge_is_used() -> None:
    names = _names(6)
    left, right = frozenset(names[:3]), frozenset(names[3:])
    contexts = [
        *(ContextSpec(f"l{i}", "s", left) for i in range(20)),
        *(ContextSpec(f"r{i}", "s", right) for i in range(20)),
        ContextSpec("bridge", "s", frozenset({"m00", "m05"})),
    ]
    for number in range(20):
        slots = _plan(names, contexts, 5, bytes([number]) * 32)
        assert PlannedSlot("bridge", "m00", "m05") in slots
        assert len(components(names, [{slot.x, slot.y} for slot in slots])) == 1


@pytest.mark.parametrize(
    ("code", "names", "contexts", "votes", "says"),
    [
        ("too_few_contestants", ["a"], _contexts(3, ["a"]), 9, "two contestants"),
        ("duplicate", ["a", "a"], _contexts(3, ["a"]), 9, "twice"),
        ("duplicate", ["a", "b"], _contexts(1, ["a", "b"]) * 2, 1, "twice"),
        ("unknown_contestant", ["a", "b"], _contexts(3, ["a", "z"]), 9, "z"),
        ("bad_votes", ["a", "b"], _contexts(3, ["a", "b"]), 0, "at least 1"),
        ("too_few_votes", _names(5), _contexts(3, _names(5)), 3, "at least 4"),
        ("too_few_comparisons", ["a", "b"], _contexts(3, ["a", "b"]), 4, "allow 3"),
        ("not_connectable", ["a", "b", "c"], _contexts(3, ["a", "b"]), 3, "a, b | c"),
        ("not_connectable", ["a", "b"], [], 3, "a | b"),
        ("not_connectable", ["a", "b"], [ContextSpec("c", "s", frozenset("a"))], 3, "a | b"),
    ],
)
def test_what_cannot_be_planned_is_said(
    code: str, names: list[str], contexts: list[ContextSpec], votes: int, says: str
) -> None:
    with pytest.raises(PlanError) as caught:
        _plan(names, contexts, votes)
    assert caught.value.code == code
    assert says in str(caught.value)


@given(st.integers(2, 25), st.binary(min_size=32, max_size=32))
def test_a_pair_block_is_complete_and_fair(count: int, seed: bytes) -> None:
    names = _names(count)
    block = pair_block(names, SeededStream(seed, "x"))
    assert sorted(block) == list(combinations(names, 2))
    seen = Counter[object]()
    for number, pair in enumerate(block, 1):
        seen.update(pair)
        if number % (count // 2) == 0:
            assert _spread(seen, names) <= 1


@given(
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=60), st.binary(min_size=32, max_size=32)
)
def test_a_context_block_keeps_strata_within_one(strata: list[str], seed: bytes) -> None:
    contexts = [ContextSpec(str(i), s, frozenset()) for i, s in enumerate(strata)]
    block = context_block(contexts, SeededStream(seed, "x"))
    assert sorted(c.id for c in block) == sorted(c.id for c in contexts)
    sizes, seen = Counter(strata), Counter[str]()
    for number, context in enumerate(block, 1):
        seen[context.stratum] += 1
        for stratum, size in sizes.items():
            assert abs(seen[stratum] * len(strata) - number * size) < len(strata)


# --- serving ---


def _serve(seed: bytes, raters: int, contestants: int, votes: int) -> tuple[int, int, int]:
    """Serve a plan to raters in turn; return the worst imbalance per pair, rater, contestant."""
    names = _names(contestants)
    slots = _plan(names, _contexts(votes, names), votes, seed)
    pair_left: Counter[tuple[str, str, str]] = Counter()
    rater_left: Counter[tuple[int, str]] = Counter()
    rater_right: Counter[tuple[int, str]] = Counter()
    for number, (context, x, y) in enumerate(slots):
        rater = number * 7 % raters
        left_is_x = choose_side(
            seed,
            f"{context}/{x}/{y}",
            str(rater),
            (pair_left[x, y, "x"], pair_left[x, y, "y"]),
            (rater_left[rater, x] + rater_right[rater, y],
             rater_left[rater, y] + rater_right[rater, x]),
        )  # fmt: skip
        pair_left[x, y, "x" if left_is_x else "y"] += 1
        rater_left[rater, x if left_is_x else y] += 1
        rater_right[rater, y if left_is_x else x] += 1
    per_pair = [abs(pair_left[*p, "x"] - pair_left[*p, "y"]) for p in combinations(names, 2)]
    cells = [(rater, name) for rater in range(raters) for name in names]
    per_cell = [abs(rater_left[cell] - rater_right[cell]) for cell in cells]
    totals = [abs(sum(rater_left[r, n] - rater_right[r, n] for r in range(raters))) for n in names]
    return max(per_pair), max(per_cell), max(totals)


def test_sides_are_balanced_per_pair_and_per_rater() -> None:
    """6,000 coin flips would leave pairs of 22 votes 14 apart at worst, raters' cells 13."""
    per_pair, per_cell, total = _serve(SEED, raters=30, contestants=24, votes=6000)
    assert per_pair <= 5
    assert per_cell <= 5
    assert total <= 16


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_the_side_follows_the_counts_and_mirrors(a: int, b: int, c: int, d: int) -> None:
    chosen = choose_side(SEED, "slot", "rater", (a, b), (c, d))
    if a + c != b + d:
        assert chosen is (a + c < b + d)
        assert choose_side(SEED, "slot", "rater", (b, a), (d, c)) is not chosen


def test_a_draw_falls_to_the_seed() -> None:
    drawn = [choose_side(SEED, str(i), "r", (0, 0), (2, 2)) for i in range(2000)]
    assert drawn == [choose_side(SEED, str(i), "r", (1, 1), (0, 0)) for i in range(2000)]
    assert drawn != [choose_side(OTHER, str(i), "r", (0, 0), (0, 0)) for i in range(2000)]
    assert abs(sum(drawn) - 1000) < 90


@given(st.integers(0, 40), st.binary(min_size=32, max_size=32))
def test_axis_orders_are_balanced_between_raters(raters: int, seed: bytes) -> None:
    ids = [f"r{i}" for i in range(raters)]
    orders = axis_order(seed, ids)
    assert set(orders) == set(ids)
    counts = Counter(orders.values())
    assert set(counts) <= {("quality", "personalization"), ("personalization", "quality")}
    assert abs(2 * counts["quality", "personalization"] - raters) <= 1
    assert axis_order(seed, ids[::-1]) == orders


def test_axes_must_differ() -> None:
    with pytest.raises(PlanError):
        axis_order(SEED, ["r"], ["quality", "quality"])
    assert axis_order(SEED, ["r"], ["quality"]) == {"r": ("quality",)}


# --- contexts ---


def _pool(prefix: str, sizes: dict[str, int], holdout: bool | None = None) -> list[Candidate]:
    return [
        Candidate(f"{prefix}-{stratum}-{i}", stratum, holdout)
        for stratum, size in sizes.items()
        for i in range(size)
    ]


PEOPLE = _pool("p", {"expert": 60, "novice": 30, "rare": 10})
PROMPTS = _pool("q", {"": 40})


def test_no_mixed_cells_and_the_sizes_asked_for() -> None:
    contexts = sample_contexts(PEOPLE, PROMPTS, 50, 10, 0.2, SEED)
    kinds = Counter(context.kind for context in contexts)
    assert kinds == {"holdout": 10 * 2, "rotating": 40 * 8}
    sides: dict[str, set[str]] = {"holdout": set(), "rotating": set()}
    for context in contexts:
        sides[context.kind] |= {context.persona, context.prompt}
    assert not sides["holdout"] & sides["rotating"]
    assert len({(c.persona, c.prompt) for c in contexts}) == len(contexts)


def test_strata_are_drawn_in_proportion_and_none_is_forgotten() -> None:
    contexts = sample_contexts(PEOPLE, PROMPTS, 20, 1, 0, SEED)
    assert Counter(c.stratum for c in contexts) == {"expert": 12, "novice": 6, "rare": 2}
    assert {c.stratum for c in sample_contexts(PEOPLE, PROMPTS, 3, 1, 0, SEED)} == {
        "expert", "novice", "rare"
    }  # fmt: skip


def test_an_earlier_split_is_respected() -> None:
    people = [
        *_pool("old", {"a": 5}, True),
        *_pool("used", {"a": 10}, False),
        *_pool("n", {"a": 9}),
    ]
    for seed in (SEED, OTHER):
        contexts = sample_contexts(people, PROMPTS, 18, 4, 0.25, seed)
        held = {c.persona for c in contexts if c.kind == "holdout"}
        free = {c.persona for c in contexts if c.kind == "rotating"}
        assert {f"old-a-{i}" for i in range(4)} & held
        assert not any(name.startswith("used") for name in held)
        assert not any(name.startswith("old") for name in free)


def test_sampling_is_seeded_and_ignores_input_order() -> None:
    first = sample_contexts(PEOPLE, PROMPTS, 20, 5, 0.2, SEED)
    assert first == sample_contexts(PEOPLE[::-1], PROMPTS[::-1], 20, 5, 0.2, SEED)
    assert first != sample_contexts(PEOPLE, PROMPTS, 20, 5, 0.2, OTHER)


@pytest.mark.parametrize(
    ("code", "n", "m", "share"),
    [("bad_size", 0, 1, 0.0), ("bad_share", 5, 5, 1.5), ("pool_too_small", 101, 5, 0.0),
     ("pool_too_small", 5, 41, 0.5)],
)  # fmt: skip
def test_what_cannot_be_sampled_is_said(code: str, n: int, m: int, share: float) -> None:
    with pytest.raises(SampleError) as caught:
        sample_contexts(PEOPLE, PROMPTS, n, m, share, SEED)
    assert caught.value.code == code


@given(st.dictionaries(st.text(max_size=2), st.integers(0, 30), min_size=1, max_size=6), st.data())
def test_allotting_is_exact_and_within_one_of_proportional(
    sizes: dict[str, int], data: st.DataObject
) -> None:
    total = data.draw(st.integers(0, sum(sizes.values())))
    quota = allot(sizes, total)
    assert sum(quota.values()) == total
    filled = [name for name in sizes if sizes[name]]
    for name in filled:
        assert 0 <= quota[name] <= sizes[name]
        if total >= len(filled):
            assert quota[name] >= 1


def test_one_kind_of_user_proves_nothing() -> None:
    reasons = stratum_shortfalls(["expert"] * 50, 10)
    assert [reason.code for reason in reasons] == ["too_few_strata"]
    assert "one proves nothing" in str(reasons[0])


def test_small_and_missing_strata_are_named() -> None:
    strata = ["expert"] * 50 + ["novice"] * 9
    reasons = stratum_shortfalls(strata, 10, expected=["rare"])
    assert [(r.code, r.stratum, r.have) for r in reasons] == [
        ("stratum_too_small", "novice", 9),
        ("stratum_too_small", "rare", 0),
    ]
    assert stratum_shortfalls(strata, 9) == []
    assert "'novice' has 9 contexts, 10 are needed" in str(reasons[0])


def test_presets_reach_the_reference_size() -> None:
    assert PRESETS["reference"].votes == 6000
    assert [PRESETS["reference"].annotators, PRESETS["reference"].seed_users] == [10, 20]
