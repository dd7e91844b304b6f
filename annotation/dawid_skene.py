"""Who tends to give which verdict where another is right (Dawid and Skene, 1979). Pure.

Expectation maximisation over sparse labels, with a weak prior: an annotator of whom nothing is
known is right in 8 of 10, as in `annotation.posterior`. What is maximised is the likelihood of the
labels times that prior; no step lowers it. Items whose answer is known are held at it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotation.posterior import PRIOR_RIGHT, PRIOR_SEEN
from annotation.tables import Codes, Floats, Ints

STEPS = 100
ENOUGH = 1e-6  # relative gain of a step at which it ends
CLASS_PRIOR = 1.0  # labels of each class seen before the first


@dataclass(frozen=True)
class Fit:
    """`posterior` (N, C) per item; `confusion` (A, C, C): true class by given class;
    `prior` (C,): how common each class is; `objective`: log posterior after each step.
    """

    posterior: Floats
    confusion: Floats
    prior: Floats
    objective: list[float]

    @property
    def accuracy(self) -> Floats:
        """How often each annotator gives the right verdict on an average item (A,)."""
        right = np.diagonal(self.confusion, axis1=1, axis2=2)
        return np.asarray(right @ self.prior)


@dataclass(frozen=True)
class _Sparse:
    """Labels sorted by item; `starts`: where each item begins."""

    item: Ints
    cell: Ints  # annotator times C plus class
    starts: Ints
    n_annotators: int
    n_classes: int


def fit(
    item: Ints,
    annotator: Ints,
    code: Codes,
    *,
    n_items: int,
    n_annotators: int,
    n_classes: int,
    known: Codes | None = None,
) -> Fit:
    """Fit to labels (item, annotator, class); every item needs one. `known`: -1, or the class."""
    order = np.argsort(item, kind="stable")
    rows = item[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    if len(starts) != n_items:
        raise ValueError("every item needs a label")
    cell = annotator[order].astype(np.int64) * n_classes + code[order]
    labels = _Sparse(rows, cell, starts, n_annotators, n_classes)
    clamp = _clamp(known, n_items, n_classes)
    posterior = _shares(labels, n_items)
    if clamp is not None:
        posterior = _held(posterior, clamp)
    objective: list[float] = []
    while True:
        prior, confusion = _maximise(labels, posterior)
        posterior, value = _expect(labels, prior, confusion, clamp)
        objective.append(value)
        if len(objective) == STEPS or _settled(objective):
            return Fit(posterior, confusion, prior, objective)


def _settled(objective: list[float]) -> bool:
    gain = objective[-1] - objective[-2] if len(objective) > 1 else np.inf
    return bool(gain < ENOUGH * abs(objective[-1]))


def pseudo_counts(n_classes: int) -> Floats:
    """The labels that the prior stands for: PRIOR_SEEN in all, PRIOR_RIGHT of them right."""
    wrong = (PRIOR_SEEN - PRIOR_RIGHT) / n_classes / max(n_classes - 1, 1)
    counts = np.full((n_classes, n_classes), wrong)
    np.fill_diagonal(counts, PRIOR_RIGHT / n_classes)
    return counts


def _clamp(known: Codes | None, n_items: int, n_classes: int) -> Floats | None:
    """1 where an item may belong to a class (N, C); None where nothing is known."""
    if known is None or not (known >= 0).any():
        return None
    allowed = np.ones((n_items, n_classes))
    held = np.flatnonzero(known >= 0)
    allowed[held] = 0.0
    allowed[held, known[held]] = 1.0
    return allowed


def _held(posterior: Floats, clamp: Floats) -> Floats:
    kept = posterior * clamp
    total = kept.sum(axis=1, keepdims=True)
    return np.where(total > 0, kept / np.where(total > 0, total, 1.0), clamp)


def _shares(labels: _Sparse, n_items: int) -> Floats:
    """The start: each item belongs to a class as far as its labels say so."""
    c = labels.n_classes
    cells = labels.item * c + labels.cell % c
    counts = np.bincount(cells, minlength=n_items * c).reshape(n_items, c).astype(np.float64)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _maximise(labels: _Sparse, posterior: Floats) -> tuple[Floats, Floats]:
    """How common the classes are, and every annotator's confusion, given the posterior."""
    a, c = labels.n_annotators, labels.n_classes
    columns = np.ascontiguousarray(posterior.T)  # one class after the other: gathers are fast
    counts = np.stack(
        [
            np.bincount(labels.cell, weights=column[labels.item], minlength=a * c).reshape(a, c)
            for column in columns
        ],
        axis=1,
    )
    smoothed = counts + pseudo_counts(c)
    prior = posterior.sum(axis=0) + CLASS_PRIOR
    return prior / prior.sum(), smoothed / smoothed.sum(axis=2, keepdims=True)


def _expect(
    labels: _Sparse, prior: Floats, confusion: Floats, clamp: Floats | None
) -> tuple[Floats, float]:
    """The posterior of every item, and the log posterior of the parameters before."""
    by_class = np.log(confusion).transpose(1, 0, 2).reshape(labels.n_classes, -1)
    logs = np.stack(
        [np.add.reduceat(by_cell[labels.cell], labels.starts) for by_cell in by_class], axis=1
    )
    logs += np.log(prior)
    if clamp is not None:
        logs = np.where(clamp > 0, logs, -np.inf)
    top = logs.max(axis=1, keepdims=True)
    likelihood = np.exp(logs - top)
    total = likelihood.sum(axis=1, keepdims=True)
    value = float((np.log(total) + top).sum())
    value += float((pseudo_counts(labels.n_classes) * np.log(confusion)).sum())
    value += float(CLASS_PRIOR * np.log(prior).sum())
    return likelihood / total, value
