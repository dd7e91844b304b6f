"""Check the agreement arithmetic on the PandaLM test set, against published and recomputed numbers.

    python -m tools.trial_agreement DATA

DATA holds `pandalm_testset-v1.json`: 999 pairs, each judged by three people. Every row counts,
equal pairs too. All numbers must agree to four digits. Exit status 1 where one does not, 2 where
the file is missing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np

from annotation.agreement import Measure, agreement, pair_agreement
from annotation.dawid_skene import fit
from annotation.tables import FIRST, SECOND, TIE, Codes, Ints

FILE = "pandalm_testset-v1.json"
MEANING = {0: TIE, 1: FIRST, 2: SECOND}
COHEN = {(0, 1): 0.8520, (0, 2): 0.8789, (1, 2): 0.8617}
MEASURES = {
    Measure.FLEISS: 0.8642,
    Measure.ALPHA_NOMINAL: 0.8642,
    Measure.ALPHA_ORDINAL: 0.8775,
    Measure.AC1: 0.8864,
}
MAJORITY = {TIE: 105, FIRST: 422, SECOND: 472}
UNANIMOUS = 879


def read_labels(path: Path) -> Codes:
    """(999, 3) verdicts."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    names = ("annotator1", "annotator2", "annotator3")
    return np.array([[MEANING[row[name]] for name in names] for row in rows], dtype=np.int8)


def counts_of(labels: Codes) -> Ints:
    return np.stack([(labels == code).sum(axis=1) for code in range(4)], axis=1).astype(np.int64)


def check(labels: Codes) -> list[tuple[str, float, float]]:
    """(what, ours, the number to meet)."""
    n, people = labels.shape
    item, member = np.repeat(np.arange(n), people), np.tile(np.arange(people), n)
    counts, code = counts_of(labels), labels.ravel()
    lines: list[tuple[str, float, float]] = []
    for pair in pair_agreement(item, member, code, list(range(people))):
        wanted = COHEN[pair.one, pair.other]
        name = f"Cohen {pair.one + 1} and {pair.other + 1}"
        lines.append((name, pair.kappa.value or 0.0, wanted))
    found = agreement([counts], choices=3)
    for measure, wanted in MEASURES.items():
        row = found.estimates[measure]
        print(f"  {measure:15} {row.value:.5f}  95 % interval {row.lo:.4f} to {row.hi:.4f}")
        lines.append((measure, row.value or 0.0, wanted))
    majority = counts.argmax(axis=1)
    for verdict, wanted_n in MAJORITY.items():
        lines.append((f"majority {verdict}", Counter(majority.tolist())[verdict], wanted_n))
    lines.append(("unanimous", int((counts.max(axis=1) == people).sum()), UNANIMOUS))
    started = perf_counter()
    model = fit(item, member, code, n_items=n, n_annotators=people, n_classes=3)
    print(f"  Dawid–Skene: {len(model.objective)} steps, {perf_counter() - started:.2f} s")
    same = int((model.posterior.argmax(axis=1) == majority).sum())
    lines.append(("Dawid–Skene as majority", same, n))
    return lines


def paradox() -> list[tuple[str, float, float]]:
    """100 items, two annotators, one class nearly always: kappa says nothing, AC1 does."""
    pairs = np.array([(0, 0)] * 93 + [(0, 1)] * 2 + [(1, 0)] * 5, dtype=np.int8)
    item, member = np.repeat(np.arange(100), 2), np.tile(np.arange(2), 100)
    kappa = pair_agreement(item, member, pairs.ravel(), [0, 1])[0].kappa.value
    found = agreement([counts_of(pairs)], choices=2).estimates[Measure.AC1].value
    return [("paradox: Cohen", kappa or 0.0, -0.0294), ("paradox: AC1", found or 0.0, 0.9249)]


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m tools.trial_agreement DATA", file=sys.stderr)
        return 2
    path = Path(arguments[0]) / FILE
    if not path.is_file():
        print(f"{path.parent} lacks {FILE}", file=sys.stderr)
        return 2
    good = True
    for name, ours, wanted in [*check(read_labels(path)), *paradox()]:
        met = round(ours, 4) == wanted
        good = good and met
        print(f"{name:24} {ours:10.4f}  wanted {wanted:10.4f}  {'ok' if met else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
