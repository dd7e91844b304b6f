"""Splits: disjoint by prompt and persona whatever the rows are, the same for the same seed."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from training.splits import Assignment, Cell, Node, assign, components, nodes

SHARES = {"train": 80, "reward_model_gate": 10, "gate": 10}
CELLS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", "1", "2", "3", "4", "5"])),
    min_size=1,
    max_size=30,
)
FIXED = st.dictionaries(
    st.one_of(
        st.tuples(st.just("prompt"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("persona"), st.sampled_from("12345")),
    ),
    st.sampled_from(["train", "gate", "edge"]),
    max_size=5,
)
BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # two shared cores


def check_disjoint(found: Assignment, fixed: dict[Node, str]) -> None:
    where: dict[Node, str] = dict(fixed)
    for cell, split in found.cells.items():
        for node in nodes(cell) if split else []:
            assert where.setdefault(node, split) == split


@BUSY
@given(CELLS, FIXED, st.booleans(), st.integers(0, 9))
def test_no_prompt_and_no_persona_is_in_two_splits(
    cells: list[Cell], fixed: dict[Node, str], cut: bool, seed: int
) -> None:
    rows = Counter(cells)
    found = assign(rows, shares=SHARES, seed=seed, fixed=fixed, cut=cut)
    assert set(found.cells) == set(rows)
    check_disjoint(found, fixed)
    again = assign(rows, shares=SHARES, seed=seed, fixed=fixed, cut=cut)
    assert again == found


@BUSY
@given(CELLS)
def test_without_claims_and_cuts_no_row_is_left_out(cells: list[Cell]) -> None:
    found = assign(Counter(cells), shares=SHARES, seed=1, cut=False)
    assert all(found.cells.values())
    assert not found.clashes


def test_shares_are_met_where_rows_stand_alone() -> None:
    rows = {(f"p{n}", f"u{n}"): 1 for n in range(1000)}
    found = assign(rows, shares=SHARES, seed=1)
    assert Counter(found.cells.values()) == {"train": 800, "reward_model_gate": 100, "gate": 100}
    other = assign(rows, shares=SHARES, seed=2)
    assert other.cells != found.cells


def test_what_hangs_together_stays_together() -> None:
    cells = [("a", "1"), ("a", "2"), ("b", "2"), ("c", "3"), ("d", "")]
    assert sorted(map(sorted, components(cells))) == [
        [("a", "1"), ("a", "2"), ("b", "2")],
        [("c", "3")],
        [("d", "")],
    ]


def test_a_crossed_set_is_cut_and_what_stands_between_is_left_out() -> None:
    rows = {(f"p{p}", f"u{u}"): 1 for p in range(20) for u in range(20)}
    found = assign(rows, shares=SHARES, seed=1)
    counts = Counter(found.cells.values())
    assert found.cut == 1
    # 16 of 20 persons and prompts for training, 2 for each gate.
    assert counts == {"train": 256, "reward_model_gate": 4, "gate": 4, "": 136}
    assert found.clashes[0].prompt_split != found.clashes[0].persona_split
    check_disjoint(found, {})


def test_uncut_a_crossed_set_is_all_training() -> None:
    rows = {(f"p{p}", f"u{u}"): 1 for p in range(5) for u in range(5)}
    found = assign(rows, shares=SHARES, seed=1, cut=False)
    assert set(found.cells.values()) == {"train"}


def test_a_component_with_two_claims_is_refused_with_examples() -> None:
    fixed: dict[Node, str] = {("prompt", "a"): "train", ("persona", "1"): "gate"}
    found = assign({("a", "1"): 3}, shares=SHARES, seed=1, fixed=fixed, cut=False)
    assert found.cells == {("a", "1"): ""}
    clash = found.clashes[0]
    assert (clash.prompt_split, clash.persona_split) == ("train", "gate")


def test_small_parts_fill_the_splits_that_are_empty() -> None:
    rows = {("a", "1"): 90, ("b", "2"): 1, ("c", "3"): 1}
    found = assign(rows, shares=SHARES, seed=1)
    assert set(found.cells.values()) == set(SHARES)


def test_every_stratum_is_in_every_split_where_it_has_parts_enough() -> None:
    strata = {str(u): "expert" if u % 2 else "novice" for u in range(12)}
    crossed = {(f"p{p}", str(u)): 1 for p in range(12) for u in range(12)}
    apart = {(f"p{u}", str(u)): 1 for u in range(12)}
    for rows in (crossed, apart):
        found = assign(rows, shares=SHARES, seed=1, strata=strata)
        seen: dict[str, set[str]] = {}
        for (_prompt, persona), split in found.cells.items():
            if split:
                seen.setdefault(split, set()).add(strata[persona])
        assert seen == {split: {"expert", "novice"} for split in SHARES}
        check_disjoint(found, {})
