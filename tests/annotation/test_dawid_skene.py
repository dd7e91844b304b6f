"""Dawid–Skene: the likelihood never falls, and what was planted is found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.dawid_skene import CLASS_PRIOR, Fit, fit, pseudo_counts
from annotation.tables import Codes, Floats, Ints

PRIOR = np.array([0.4, 0.15, 0.35, 0.1])


def good(share: float) -> Floats:
    return np.full((4, 4), (1 - share) / 3) + np.eye(4) * (share - (1 - share) / 3)


PLANTED = np.stack(
    [
        good(0.95),
        good(0.8),
        good(0.7),
        np.array([[0.7, 0.3, 0, 0], [0.1, 0.9, 0, 0], [0, 0.3, 0.7, 0], [0, 0.2, 0, 0.8]]),
        np.full((4, 4), 0.25),
    ]
)


def labelled(n: int, confusion: Floats, seed: int = 1) -> tuple[Codes, Ints, Ints, Codes]:
    """Truth, and a label of every annotator on every item."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=n, p=PRIOR).astype(np.int8)
    people = len(confusion)
    item, annotator = np.repeat(np.arange(n), people), np.tile(np.arange(people), n)
    bounds = confusion[annotator, truth[item]].cumsum(axis=1)
    code = (rng.random(len(item))[:, None] > bounds).sum(axis=1).clip(0, 3).astype(np.int8)
    return truth, item, annotator, code


def fitted(item: Ints, annotator: Ints, code: Codes, **options: Codes) -> Fit:
    return fit(
        item,
        annotator,
        code,
        n_items=int(item.max()) + 1,
        n_annotators=int(annotator.max()) + 1,
        n_classes=4,
        **options,
    )


def test_planted_confusions_and_classes_are_recovered() -> None:
    truth, item, annotator, code = labelled(6000, PLANTED)
    found = fitted(item, annotator, code)
    assert np.abs(found.confusion - PLANTED).max() < 0.06
    assert np.abs(found.prior - PRIOR).max() < 0.03
    right = (found.posterior.argmax(axis=1) == truth).mean()
    counts = np.bincount(item * 4 + code, minlength=4 * 6000).reshape(-1, 4)
    assert right > (counts.argmax(axis=1) == truth).mean()
    assert found.accuracy[:3] == pytest.approx([0.95, 0.8, 0.7], abs=0.02)


labels = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60
)


@settings(deadline=None, max_examples=80)
@given(labels, st.booleans())
def test_no_step_lowers_what_is_maximised(rows: list[tuple[int, int, int]], hold: bool) -> None:
    rows = list({(item, who): (item, who, code) for item, who, code in rows}.values())
    item, annotator, code = np.array(rows, dtype=np.int64).T
    item = np.unique(item, return_inverse=True)[1]
    known = np.full(item.max() + 1, -1, dtype=np.int8)
    if hold:
        known[0] = 3
    found = fitted(item, annotator, code.astype(np.int8), known=known)
    gains = np.diff(found.objective)
    assert (gains > -1e-9 * np.abs(found.objective[-1])).all()
    assert found.posterior.sum(axis=1) == pytest.approx(1)
    assert found.confusion.sum(axis=2) == pytest.approx(1)


def slow_step(rows: list[tuple[int, int, int]], posterior: Floats, people: int) -> Floats:
    """One step of the algorithm, label by label."""
    confusion = np.tile(pseudo_counts(4), (people, 1, 1))
    for item, who, code in rows:
        confusion[who, :, code] += posterior[item]
    confusion /= confusion.sum(axis=2, keepdims=True)
    prior = posterior.sum(axis=0) + CLASS_PRIOR
    out = np.tile(prior / prior.sum(), (len(posterior), 1))
    for item, who, code in rows:
        out[item] *= confusion[who, :, code]
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def test_it_is_the_algorithm_written_out_label_by_label() -> None:
    _truth, item, annotator, code = labelled(40, PLANTED[:3], seed=4)
    found = fitted(item, annotator, code)
    rows = list(zip(item.tolist(), annotator.tolist(), code.tolist(), strict=True))
    counts = np.bincount(item * 4 + code, minlength=160).reshape(-1, 4)
    posterior: Floats = counts / counts.sum(axis=1, keepdims=True)
    for _ in found.objective:
        posterior = slow_step(rows, posterior, 3)
    assert found.posterior == pytest.approx(posterior, abs=1e-9)


def test_known_answers_are_held_and_teach_about_who_labelled_them() -> None:
    item, annotator = np.repeat(np.arange(30), 2), np.tile([0, 1], 30)
    code = np.tile([0, 2], 30).astype(np.int8)
    known = np.full(30, -1, dtype=np.int8)
    known[:25] = 2
    found = fitted(item, annotator, code, known=known)
    assert (found.posterior[:25, 2] == 1).all()
    assert (found.posterior[25:].argmax(axis=1) == 2).all()
    assert found.confusion[1, 2, 2] > 0.9
    assert found.confusion[0, 2, 2] < 0.1


def test_somebody_of_whom_little_is_known_is_taken_as_fairly_good() -> None:
    found = fitted(np.array([0]), np.array([0]), np.array([0], np.int8))
    assert 0.6 < found.posterior[0, 0] < 0.95
    assert 0.7 < found.accuracy[0] < 0.95


def test_an_item_without_a_label_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a label"):
        fit(
            np.array([1]),
            np.array([0]),
            np.array([0], np.int8),
            n_items=2,
            n_annotators=1,
            n_classes=4,
        )
