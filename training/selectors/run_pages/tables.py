"""The curves of a run as a table of numbers: some steps, evenly chosen, and the last one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from training.selectors.run_pages.curves import Curves
from training.words import metrics as words
from webapp.core.charts_curves import number

ROWS = 40


@dataclass(frozen=True)
class ValuesTable:
    """`groups` are (name, title) to choose from; a row is a step with one value per column."""

    group: str
    title: str
    groups: list[tuple[str, str]]
    columns: list[str]
    rows: list[tuple[int, list[str]]]
    steps: int


def values_table(curves: Curves, wanted: str) -> ValuesTable:
    """The metrics of one group of the run page."""
    names = grouped(curves)
    group = wanted if wanted in names else next(iter(names), "")
    title, chosen = names.get(group, ("", []))
    by_step: dict[int, dict[str, Any]] = {}
    for name in chosen:
        for step, value in curves.pairs(name):
            by_step.setdefault(int(step), {})[name] = value
    steps = sorted(by_step)
    picked = sorted({steps[i * (len(steps) - 1) // max(1, ROWS - 1)] for i in range(ROWS)}
                    if len(steps) > ROWS else set(steps))  # fmt: skip
    return ValuesTable(
        group,
        title,
        [(name, said) for name, (said, _names) in names.items()],
        [_column(name) for name in chosen],
        [(step, [number(by_step[step].get(n)) for n in chosen]) for step in picked],
        len(steps),
    )


def grouped(curves: Curves) -> dict[str, tuple[str, list[str]]]:
    """Names of metrics by group, in the order of the page; the pinned ones first."""
    there = [name for name in curves.values if not words.hidden(name)]
    found: dict[str, tuple[str, list[str]]] = {}
    taken: set[str] = set()

    def add(name: str, title: str, names: list[str]) -> None:
        if names:
            found[name] = (title, names)
            taken.update(names)

    pinned = ("reward", "reward/reference", "kl", "length/mean", "loss", "eval_loss")
    add("pinned", str(words.PINNED_TITLE), [n for n in pinned if n in there])
    for group in words.GROUPS:
        names = dict.fromkeys(n for chart in group.charts for n in chart)
        add(group.name, str(group.title), [n for n in names if n in there and n not in taken])
    for head in sorted({n.rsplit("/", 1)[0] for n in there if n.startswith(words.MEMBERS)}):
        names = dict.fromkeys(n for n in there if n.startswith(f"{head}/"))
        add(head.replace("/", "-"), words.metric_name(head), list(names))
    add("eval", str(words.EVAL_TITLE), [n for n in there if n.startswith("eval/")])
    add("others", str(words.OTHERS_TITLE), sorted(n for n in there if n not in taken))
    return found


def _column(name: str) -> str:
    unit = words.unit(name)
    bare = name.rsplit("/", 1)[1] if name.startswith(words.MEMBERS) else name
    return f"{words.metric_name(bare)} ({unit})" if unit else words.metric_name(bare)
