"""Agreement: against definitions written out slowly, against the library, and by properties."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.agreement import (
    Agreement,
    Estimate,
    Measure,
    Reason,
    agreement,
    estimates,
    pair_agreement,
    segment_difference,
    sums,
)
from annotation.tables import CLASSES, Codes, Ints

Rows = Sequence[Sequence[int]]  # the labels of each item, by number of the class
WIDTH = len(CLASSES)


def counts_of(rows: Rows) -> Ints:
    counts = [np.bincount(row, minlength=WIDTH) for row in rows]
    return np.array(counts, dtype=np.int64).reshape(-1, WIDTH)


def agree(rows: Rows, choices: int = 4) -> Agreement:
    return agreement([counts_of(rows)], choices)


def value(rows: Rows, measure: Measure, choices: int = 4) -> float | None:
    return agree(rows, choices).estimates[measure].value


def kappa(rows: Rows) -> Estimate:
    code = np.array(rows, dtype=np.int8).ravel()
    item, member = np.repeat(np.arange(len(rows)), 2), np.tile([0, 1], len(rows))
    return pair_agreement(item, member, code, [0, 1])[0].kappa


# The definitions, without numpy's help


def slow_percent(rows: Rows) -> float:
    several = [row for row in rows if len(row) > 1]
    shares = [np.mean([a == b for a, b in combinations(row, 2)]) for row in several]
    return float(np.mean(shares))


def slow_shares(rows: Rows) -> list[float]:
    rated = [row for row in rows if row]
    return [float(np.mean([row.count(k) / len(row) for row in map(list, rated)])) for k in range(4)]


def slow_fleiss(rows: Rows) -> float:
    expected = sum(share**2 for share in slow_shares(rows))
    return (slow_percent(rows) - expected) / (1 - expected)


def slow_ac1(rows: Rows, choices: int) -> float:
    expected = sum(p * (1 - p) for p in slow_shares(rows)) / (choices - 1)
    return (slow_percent(rows) - expected) / (1 - expected)


def slow_alpha(rows: Rows, ordinal: bool) -> float:
    """Observed over expected disagreement, pair by pair (Krippendorff, 2011)."""
    kept = [[label for label in row if not ordinal or label < 3] for row in rows]
    several = [row for row in kept if len(row) > 1]
    flat = [label for row in several for label in row]

    def distance(a: int, b: int) -> float:
        if not ordinal:
            return float(a != b)
        low, high = min(a, b), max(a, b)
        between = sum(flat.count(k) for k in range(low, high + 1))
        return (between - (flat.count(low) + flat.count(high)) / 2) ** 2

    observed = sum(
        sum(distance(a, b) for a, b in permutations(row, 2)) / (len(row) - 1) for row in several
    ) / len(flat)
    expected = sum(distance(a, b) for a, b in permutations(flat, 2)) / (len(flat) * (len(flat) - 1))
    return 1 - observed / expected


def slow_kappa(rows: Rows) -> float:
    n = len(rows)
    agreed = sum(a == b for a, b in rows) / n
    expected = sum(
        sum(a == k for a, _ in rows) * sum(b == k for _, b in rows) / n**2 for k in range(WIDTH)
    )
    return (agreed - expected) / (1 - expected)


items = st.lists(st.lists(st.integers(0, 3), min_size=0, max_size=4), min_size=3, max_size=25)
pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30)


@settings(deadline=None, max_examples=60)
@given(items)
def test_every_measure_is_what_its_definition_says(rows: list[list[int]]) -> None:
    found = agree(rows).estimates
    if not any(len(row) > 1 for row in rows):
        assert {row.reason for row in found.values()} == {Reason.NO_PAIRS}
        return
    assert found[Measure.PERCENT].value == pytest.approx(slow_percent(rows))
    assert found[Measure.AC1].value == pytest.approx(slow_ac1(rows, 4))
    if len({label for row in rows for label in row}) > 1:
        assert found[Measure.FLEISS].value == pytest.approx(slow_fleiss(rows))
    for measure, ordinal in ((Measure.ALPHA_NOMINAL, False), (Measure.ALPHA_ORDINAL, True)):
        kept = [[k for k in row if not ordinal or k < 3] for row in rows]
        if len({k for row in kept if len(row) > 1 for k in row}) > 1:
            assert found[measure].value == pytest.approx(slow_alpha(rows, ordinal))
        else:
            assert found[measure].value is None


@settings(deadline=None, max_examples=60)
@given(pairs)
def test_kappa_is_what_its_definition_says(rows: list[tuple[int, int]]) -> None:
    found = kappa(rows)
    if len({label for row in rows for label in row}) > 1:
        assert found.value == pytest.approx(slow_kappa(rows))
    else:
        assert (found.value, found.reason) == (None, Reason.NO_VARIATION)


@settings(deadline=None, max_examples=40)
@given(items, st.randoms(use_true_random=False))
def test_order_and_names_of_annotators_do_not_matter(rows: list[list[int]], random: object) -> None:
    shuffled = [list(row) for row in rows]
    for row in shuffled:
        random.shuffle(row)  # type: ignore[attr-defined]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = agree(rows).estimates, agree(shuffled).estimates
    for measure in Measure:
        assert one[measure].value == pytest.approx(other[measure].value)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=20).filter(lambda row: len(set(row)) > 1))
@settings(deadline=None, max_examples=30)
def test_perfect_agreement_is_one(chosen: list[int]) -> None:
    found = agree([[label] * 3 for label in chosen]).estimates
    for measure in (Measure.PERCENT, Measure.FLEISS, Measure.ALPHA_NOMINAL, Measure.AC1):
        assert found[measure].value == pytest.approx(1)
    assert kappa([(label, label) for label in chosen]).value == pytest.approx(1)


def test_independent_labels_agree_no_more_than_chance() -> None:
    rng = np.random.default_rng(5)
    rows = rng.choice(4, size=(6000, 3), p=[0.4, 0.1, 0.4, 0.1]).tolist()
    found = agree(rows).estimates
    for measure in (Measure.FLEISS, Measure.ALPHA_NOMINAL, Measure.ALPHA_ORDINAL):
        assert found[measure].value == pytest.approx(0, abs=0.02)
    assert kappa([row[:2] for row in rows]).value == pytest.approx(0, abs=0.03)


def test_the_prevalence_paradox() -> None:
    rows = [(0, 0)] * 93 + [(0, 1)] * 2 + [(1, 0)] * 5
    assert kappa(rows).value == pytest.approx(-0.0294, abs=5e-5)
    assert value(rows, Measure.AC1, choices=2) == pytest.approx(0.9249, abs=5e-5)
    assert value(rows, Measure.PERCENT) == pytest.approx(0.93)


def test_the_replicates_are_computed_as_the_library_computes_alpha() -> None:
    """Our own formula, which the intervals come from, against the library on drawn items."""
    rng = np.random.default_rng(1)
    counts = counts_of([rng.integers(0, 3, rng.integers(2, 5)).tolist() for _ in range(60)])
    drawn = counts[rng.integers(0, 60, 60)]
    found = sums.read_sums(sums.item_columns(drawn).sum(axis=0))
    nominal = krippendorff.alpha(value_counts=drawn, level_of_measurement="nominal")
    ordinal = krippendorff.alpha(value_counts=drawn[:, :3], level_of_measurement="ordinal")
    assert sums.alpha_nominal(found) == pytest.approx(nominal)
    assert sums.alpha_ordinal(found) == pytest.approx(ordinal)


def test_both_bad_is_missing_where_the_order_matters() -> None:
    rows = [[0, 0, 3], [2, 2], [1, 0], [3, 3], [2, 0]]
    without = [[0, 0], [2, 2], [1, 0], [2, 0]]
    assert value(rows, Measure.ALPHA_ORDINAL) == pytest.approx(slow_alpha(without, True))
    nothing = agree([[3, 3], [0, 3], [1]]).estimates[Measure.ALPHA_ORDINAL]
    assert (nothing.value, nothing.reason) == (None, Reason.NO_PAIRS)


def test_where_all_say_the_same_chance_corrected_numbers_are_undefined_and_say_so() -> None:
    found = agree([[0, 0]] * 40).estimates
    for measure in (Measure.FLEISS, Measure.ALPHA_NOMINAL, Measure.ALPHA_ORDINAL):
        assert found[measure] == Estimate(None, reason=Reason.NO_VARIATION)
    percent, gwet = found[Measure.PERCENT], found[Measure.AC1]
    assert (percent.value, percent.hi) == (1, 1)
    assert percent.lo == pytest.approx(0.025 ** (1 / 40))
    assert (gwet.value, gwet.lo, gwet.reason) == (1, None, Reason.ALL_AGREE)
    assert kappa([(0, 0)] * 5).reason is Reason.NO_VARIATION


def test_without_a_second_label_nothing_is_told() -> None:
    for rows in ([], [[0], [2], [1]]):
        found = agree(rows)
        assert (found.items, found.labels) == (0, 0)
        assert {row.reason for row in found.estimates.values()} == {Reason.NO_PAIRS}


def test_few_items_have_a_value_but_no_interval() -> None:
    row = agree([[0, 0], [0, 2], [2, 2]]).estimates[Measure.FLEISS]
    assert row.value is not None
    assert (row.lo, row.hi, row.reason) == (None, None, Reason.FEW_ITEMS)


def noisy_items(rng: np.random.Generator, n: int) -> Codes:
    truth = rng.choice(4, size=n, p=[0.4, 0.1, 0.4, 0.1])
    wrong = rng.random((n, 2)) > 0.8
    return np.where(wrong, rng.integers(0, 4, (n, 2)), truth[:, None]).astype(np.int8)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    truth = value(noisy_items(rng, 200_000).tolist(), Measure.ALPHA_NOMINAL)
    inside = 0
    for _ in range(120):
        row = agree(noisy_items(rng, 150).tolist()).estimates[Measure.ALPHA_NOMINAL]
        assert truth is not None
        assert row.lo is not None
        assert row.hi is not None
        inside += row.lo <= truth <= row.hi
    assert 0.88 <= inside / 120 <= 1.0


def test_the_interval_is_that_of_resampling_item_by_item() -> None:
    rng = np.random.default_rng(3)
    counts = counts_of(noisy_items(rng, 200).tolist())
    columns = sums.item_columns(counts)
    drawn = [
        float(sums.alpha_nominal(sums.read_sums(columns[rng.integers(0, 200, 200)].sum(axis=0))))
        for _ in range(1000)
    ]
    row = agreement([counts], 4).estimates[Measure.ALPHA_NOMINAL]
    assert [row.lo, row.hi] == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.02)


def test_both_axes_together_are_more_units_of_the_same_items() -> None:
    one, other = counts_of([[0, 0], [2, 1]]), counts_of([[2, 2], [0, 0]])
    both = agreement([one, other], 4)
    assert (both.items, both.labels) == (2, 8)
    assert both.estimates[Measure.PERCENT].value == pytest.approx(0.75)
    joined = agreement([np.concatenate([one, other])], 4)
    assert both.estimates[Measure.AC1].value == joined.estimates[Measure.AC1].value


def test_the_same_labels_give_the_same_interval() -> None:
    rows = noisy_items(np.random.default_rng(2), 80).tolist()
    assert agree(rows) == agree(rows)
    assert estimates.SEED


# Segments


def judged(majorities: Sequence[tuple[int, int]], labels: int = 5) -> tuple[Ints, Ints, Codes]:
    """Pairs judged for strata 0 and 1 by `labels` people each, all of one opinion."""
    rows = [
        (group, stratum, verdict)
        for group, both in enumerate(majorities)
        for stratum, verdict in enumerate(both)
        for _ in range(labels)
    ]
    group, stratum, code = np.array(rows, dtype=np.int64).T
    return group, stratum, code.astype(np.int8)


def test_segments_that_want_different_things_are_told_from_noise() -> None:
    found = segment_difference(*judged([(0, 2)] * 12 + [(0, 0)] * 8))
    assert (found.compared, found.differ) == (20, 12)
    assert found.beyond_chance
    assert found.across == pytest.approx(0.6)
    assert found.within == 0
    assert found.lo is not None
    assert found.hi is not None
    assert found.lo < 0.6 < found.hi
    (strata,) = found.strata
    assert (strata.one, strata.other, strata.compared, strata.differ) == (0, 1, 20, 12)


def test_noise_that_knows_no_segments_is_not_called_a_difference() -> None:
    rng = np.random.default_rng(8)
    group = np.repeat(np.arange(60), 6)
    stratum = np.tile([0, 0, 0, 1, 1, 1], 60)
    found = segment_difference(group, stratum, rng.choice([0, 2], len(group)).astype(np.int8))
    assert found.differ > 10
    assert not found.beyond_chance


def test_what_is_judged_for_one_stratum_only_is_not_compared() -> None:
    found = segment_difference(
        np.array([0, 0, 1, 1, -1]), np.array([0, 0, 1, 1, 0]), np.array([0, 2, 0, 0, 0], np.int8)
    )
    assert (found.compared, found.lo, found.by_chance, found.strata) == (0, None, None, ())
    assert (found.across, found.within) == (None, None)
    assert not found.beyond_chance


def test_one_label_per_stratum_cannot_tell_a_difference_from_noise() -> None:
    found = segment_difference(*judged([(0, 2)] * 12, labels=1))
    assert (found.differ, found.across, found.by_chance) == (12, 1, None)
    assert not found.beyond_chance


def test_a_stratum_without_a_majority_is_left_out() -> None:
    group, stratum = np.zeros(4, np.int64), np.array([0, 0, 1, 1])
    found = segment_difference(group, stratum, np.array([0, 2, 0, 0], np.int8))
    assert (found.compared, found.differ) == (0, 0)
