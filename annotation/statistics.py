"""The statistics of a project as plain data, from its labels as arrays. Pure.

The report holds numbers by axis, stratum and annotator, and nothing of a single item, so that its
size does not depend on that of the project. Shares are [hits, chances].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotation import signals
from annotation.agreement import (
    Agreement,
    Difference,
    Estimate,
    agreement,
    pair_agreement,
    segment_difference,
)
from annotation.dawid_skene import Fit, fit
from annotation.tables import CLASSES, Bools, Codes, Floats, Ints, LabelArrays, LabelTable

BOTH = "both"  # the two axes taken together
MOST_STRATA = 40  # with most labels
MOST_PAIRED = 20  # annotators with most labels, compared two by two
MOST_DAYS = 400
DIGITS = 5

Json = dict[str, Any]


@dataclass(frozen=True)
class Soft:
    """The posterior (N, C) of `items` on an axis over `classes`; gold items are not among them."""

    axis: str
    items: Ints
    classes: tuple[str, ...]
    posterior: Floats


def make_report(table: LabelTable) -> tuple[Json, list[Soft]]:
    """Everything that the pages show, and the soft labels of the ordinary items."""
    labels, n = table.working(), len(table.members)
    models = {axis: _fitted(table, axis) for axis in table.axes}
    report: Json = {
        "axes": list(table.axes),
        "labels": len(labels.item),
        "imported": int((~labels.ours).sum()),
        "paid": int(table.first_time.ours.sum() + table.repeats.ours.sum()),
        "items": len(np.unique(labels.item)),
        "agreement": _agreements(table, labels),
        "pairs": {axis: _pairs(labels, labels.verdict[axis], n) for axis in table.axes},
        "segments": {axis: _segments(table, labels, axis) for axis in table.axes},
        "depends": _depends(table, labels),
        "people": _people(table, models),
        "everybody": _everybody(table, models),
        "models": {axis: model.summary() for axis, model in models.items()},
        "days": _days(table),
        "choices": len(table.allowed),
    }
    return report, [model.soft(table) for model in models.values()]


# Agreement


def _agreements(table: LabelTable, labels: LabelArrays) -> Json:
    """By axis (and both together), then by stratum; "" is the whole project."""
    counts = {axis: _counts(labels, axis, len(table.items.pk)) for axis in table.axes}
    chosen = {axis: [counts[axis]] for axis in table.axes}
    if len(counts) > 1:
        chosen = {BOTH: list(counts.values()), **chosen}
    found: Json = {name: {} for name in chosen}
    for stratum, of_items in _strata(table, labels):
        people = len(np.unique(labels.member[of_items[labels.item]]))
        for name, blocks in chosen.items():
            result = agreement([block[of_items] for block in blocks], len(table.allowed))
            found[name][stratum] = {"annotators": people, **_agreement(result)}
    return found


def _counts(labels: LabelArrays, axis: str, n_items: int) -> Ints:
    code = labels.verdict[axis]
    cells = labels.item[code >= 0] * len(CLASSES) + code[code >= 0]
    return np.bincount(cells, minlength=n_items * len(CLASSES)).reshape(n_items, len(CLASSES))


def _strata(table: LabelTable, labels: LabelArrays) -> Iterator[tuple[str, Bools]]:
    """The whole project as "", then the strata with most labels, each with its items."""
    yield "", np.ones(len(table.items.pk), dtype=bool)
    if len(table.strata) < 2:
        return
    times = np.bincount(table.items.stratum[labels.item], minlength=len(table.strata))
    for number in np.argsort(-times, kind="stable")[:MOST_STRATA].tolist():
        if times[number]:
            yield table.strata[number], table.items.stratum == number


def _agreement(found: Agreement) -> Json:
    return {
        "items": found.items,
        "labels": found.labels,
        "measures": {name.value: _estimate(row) for name, row in found.estimates.items()},
    }


def _estimate(found: Estimate) -> list[Any]:
    reason = found.reason.value if found.reason else ""
    return [_rounded(found.value), _rounded(found.lo), _rounded(found.hi), reason]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)


def _pairs(labels: LabelArrays, code: Codes, n: int) -> Json:
    """The busiest annotators two by two: places in `members`, items, agreed, kappa."""
    busiest = np.argsort(-np.bincount(labels.member, minlength=n), kind="stable")[:MOST_PAIRED]
    members = sorted(set(busiest.tolist()) & set(np.unique(labels.member).tolist()))
    rows = pair_agreement(labels.item, labels.member, code, members)
    return {
        "members": members,
        "rows": [[p.one, p.other, p.items, p.agreed, *_estimate(p.kappa)] for p in rows],
    }


def _segments(table: LabelTable, labels: LabelArrays, axis: str) -> Json:
    """Whether strata want different things: the same texts, and the same two producers."""
    items, code = table.items, labels.verdict[axis]
    stratum = items.stratum[labels.item]
    texts = signals.canonical(code, items.swapped[labels.item])
    rivals = signals.canonical(code, items.rivals_swapped[labels.item])
    return {
        "texts": _difference(segment_difference(items.texts[labels.item], stratum, texts), table),
        "rivals": _difference(
            segment_difference(items.rivals[labels.item], stratum, rivals), table
        ),
    }


def _difference(found: Difference, table: LabelTable) -> Json:
    pairs = sorted(found.strata, key=lambda pair: -pair.differ)[:MOST_STRATA]
    return {
        "compared": found.compared,
        "differ": found.differ,
        "interval": [_rounded(found.lo), _rounded(found.hi)],
        "across": _rounded(found.across),
        "within": _rounded(found.within),
        "by_chance": [_rounded(bound) for bound in found.by_chance or ()],
        "beyond_chance": found.beyond_chance,
        "strata": [
            [table.strata[p.one], table.strata[p.other], p.compared, p.differ] for p in pairs
        ],
    }


def _depends(table: LabelTable, labels: LabelArrays) -> Json:
    """How often annotators say that another person would choose otherwise, by stratum."""
    found = {}
    for stratum, of_items in _strata(table, labels):
        here = of_items[labels.item]
        found[stratum] = [int(labels.depends[here].sum()), int(here.sum())]
    return found


# Annotators


@dataclass(frozen=True)
class Model:
    """Dawid–Skene on one axis. `judged`: per annotator, expected right labels and labels, where
    somebody else labelled the item or its answer is known. None: there are no labels.
    """

    axis: str
    classes: tuple[int, ...]
    items: Ints
    found: Fit | None
    judged: tuple[Floats, Ints]
    changed: int = 0

    def summary(self) -> Json:
        steps = len(self.found.objective) if self.found else 0
        right, seen = float(self.judged[0].sum()), int(self.judged[1].sum())
        return {"steps": steps, "skill": [round(right, 2), seen], "changed": self.changed}

    def soft(self, table: LabelTable) -> Soft:
        names = tuple(CLASSES[code] for code in self.classes)
        if self.found is None:
            return Soft(self.axis, self.items, names, np.zeros((0, len(names))))
        keep = table.items.working[self.items]
        return Soft(self.axis, table.items.pk[self.items[keep]], names, self.found.posterior[keep])


def _fitted(table: LabelTable, axis: str) -> Model:
    """Fit to ordinary items and to hidden gold ones, whose answers are held."""
    labels, items = table.first_time, table.items
    known, code = items.known[axis], labels.verdict[axis]
    hidden = (known >= 0)[labels.item] & ~labels.counted & ~items.working[labels.item]
    keep = (code >= 0) & (items.working[labels.item] | hidden)
    n, classes = len(table.members), tuple(table.allowed)
    if not keep.any():
        empty = np.zeros(n), np.zeros(n, dtype=np.int64)
        return Model(axis, classes, np.zeros(0, dtype=np.int64), None, empty)
    rows, at = np.unique(labels.item[keep], return_inverse=True)
    place = np.full(len(CLASSES) + 1, -1, dtype=np.int8)  # the last one stands for -1
    place[list(classes)] = np.arange(len(classes))
    given, held = place[code[keep]], place[np.where(items.working[rows], -1, known[rows])]
    found = fit(
        at,
        labels.member[keep],
        given,
        n_items=len(rows),
        n_annotators=n,
        n_classes=len(classes),
        known=held,
    )
    judged = _judged(found, at, labels.member[keep], given, held, n)
    return Model(axis, classes, rows, found, judged, _changed(found, at, given))


def _judged(
    found: Fit, item: Ints, member: Ints, given: Codes, held: Codes, n: int
) -> tuple[Floats, Ints]:
    telling = (np.bincount(item) > 1)[item] | (held >= 0)[item]
    right = found.posterior[item, given]
    hits = np.bincount(member[telling], weights=right[telling], minlength=n)
    return hits.astype(np.float64), np.bincount(member[telling], minlength=n)


def _changed(found: Fit, item: Ints, given: Codes) -> int:
    """Items with a majority whose most probable verdict is another one."""
    c = found.posterior.shape[1]
    counts = np.bincount(item * c + given, minlength=len(found.posterior) * c).reshape(-1, c)
    clear = 2 * counts.max(axis=1) > counts.sum(axis=1)
    return int((clear & (counts.argmax(axis=1) != found.posterior.argmax(axis=1))).sum())


def _people(table: LabelTable, models: dict[str, Model]) -> list[Json]:
    """One entry per annotator with labels, by her number."""
    n = len(table.members)
    counted = {axis: _signals(table, axis) for axis in table.axes}
    labels = table.first_time
    late = np.bincount(labels.member[labels.late], minlength=n)
    given = np.bincount(labels.member, minlength=n)
    rows = []
    for number in np.flatnonzero(given).tolist():
        hers = labels.only(labels.member == number)
        axes = {
            axis: {
                **{name: _share(pair, number) for name, pair in counted[axis].items()},
                "skill": _share(model.judged, number),
                "accuracy": _accuracy(model, number),
            }
            for axis, model in models.items()
        }
        rows.append(
            {
                "member": table.members[number],
                "number": number,
                "labels": int(given[number]),
                "ours": bool(hers.ours.any()),
                "late": [int(late[number]), int(given[number])],
                **_times(hers),
                "axes": axes,
            }
        )
    return rows


def _signals(table: LabelTable, axis: str) -> dict[str, signals.Counted]:
    n, n_items = len(table.members), len(table.items.pk)
    labels = table.working()
    code = labels.verdict[axis]
    return {
        "left": signals.left_chosen(labels, code, n),
        "longer": signals.longer_chosen(labels, code, table.items.longer, n),
        "agrees": signals.agreeing(labels, code, n_items, n),
        "consistent": signals.repeated_alike(table.first_time, table.repeats, axis, n),
    }


def _share(counted: signals.Counted, number: int) -> list[float]:
    hits, chances = counted
    return [round(float(hits[number]), 2), int(chances[number])]


def _accuracy(model: Model, number: int) -> float | None:
    if model.found is None or not model.judged[1][number]:
        return None
    return _rounded(float(model.found.accuracy[number]))


def _times(labels: LabelArrays) -> Json:
    """Median active time, and labels with a time over the hours that they took."""
    timed = labels.active_ms[labels.active_ms > 0]
    if not len(timed):
        return {"timed": 0, "median_ms": 0, "hours": 0.0}
    return {
        "timed": len(timed),
        "median_ms": int(np.median(timed)),
        "hours": round(float(timed.sum()) / 3_600_000, 4),
    }


def _everybody(table: LabelTable, models: dict[str, Model]) -> Json:
    """The same numbers over all annotators."""
    labels = table.first_time
    axes = {}
    for axis in table.axes:
        found = _signals(table, axis) | {"skill": models[axis].judged}
        axes[axis] = {
            name: [round(float(hits.sum()), 2), int(chances.sum())]
            for name, (hits, chances) in found.items()
        }
    return {
        "late": [int(labels.late.sum()), len(labels.late)],
        **_times(labels),
        "axes": axes,
    }


def _days(table: LabelTable) -> list[list[int]]:
    """Labels given here by day (ordinal), all and those that fill places, oldest first."""
    days = np.concatenate([part.day[part.ours] for part in (table.first_time, table.repeats)])
    filling = table.first_time.day[table.first_time.ours & table.first_time.counted]
    found, times = np.unique(days, return_counts=True)
    places = dict(zip(*np.unique(filling, return_counts=True), strict=True))
    rows = zip(found.tolist(), times.tolist(), strict=True)
    return [[day, n, int(places.get(day, 0))] for day, n in rows][-MOST_DAYS:]
