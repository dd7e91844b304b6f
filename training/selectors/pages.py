"""What the page of a dataset shows: counts as tables, histograms, samples, lineage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.enums import DecisionSource
from training.balance import Direction, leans
from training.enums import DatasetState, Kind, Source, Split
from training.filters import Filter, parse
from training.mix import REFERENCE
from training.models import Dataset, DatasetItem, RowText
from training.refusals import FEATURES, explain_freeze
from training.rows import columns_of, spoken
from training.selectors.limits import balance_limits
from training.selectors.preview import left_out
from webapp.catalog.enums import STRATUM_FEATURES, Axis
from webapp.catalog.strata import stratum_label
from webapp.core.charts_histograms import Counted, histogram

SAMPLES = 5
STATES = {
    DatasetState.FREEZING.value: "info",
    DatasetState.FROZEN.value: "ok",
    DatasetState.DISCARDED.value: "",
}
STAGES: dict[str, Any] = {
    "collect": gettext_lazy("collecting rows"),
    "store": gettext_lazy("storing rows"),
    "finish": gettext_lazy("claiming splits"),
}
TEXTS: dict[str, Any] = {
    "prompt": gettext_lazy("prompt"),
    "chosen": gettext_lazy("better answer"),
    "rejected": gettext_lazy("other answer"),
    "completion": gettext_lazy("answer"),
    "trace": gettext_lazy("whole trace"),
}
MARKS: dict[str, Any] = {
    "synthetic": gettext_lazy("a program wrote a part of it"),
    "simulated": gettext_lazy("a program judged"),
    "owner": gettext_lazy("the person behind the persona voted"),
}
DECIDED: dict[str, Any] = {
    **dict(DecisionSource.choices),
    "votes": gettext_lazy("votes"),
    "import": gettext_lazy("imported"),
}


@dataclass(frozen=True)
class Table:
    """Rows of (name, counts per split, total)."""

    splits: list[str]
    rows: list[tuple[str, list[int], int]]
    totals: list[int]
    total: int


@dataclass(frozen=True)
class BalanceRow:
    feature: str
    more: int
    less: int
    equal: int
    percent: float | None
    leans: bool


@dataclass(frozen=True)
class Sample:
    """One row to read. Nothing here says who wrote an answer."""

    persona: str
    turns: list[tuple[str, str]]
    texts: list[tuple[str, str]]
    notes: list[str]


@dataclass(frozen=True)
class Progress:
    stage: str
    value: int
    max: int


def badge_of(dataset: Dataset) -> str:
    return STATES.get(dataset.state, "")


def progress_of(dataset: Dataset) -> Progress:
    stage = str(STAGES.get(dataset.stage, _("waiting for a worker")))
    return Progress(stage, dataset.rows_done, dataset.rows_total)


def refusal_of(dataset: Dataset) -> str:
    """Why the last freeze was refused, in the reader's language."""
    refusal = dataset.report.get("refusal")
    return explain_freeze(refusal) if refusal else ""


def strata_table(dataset: Dataset) -> Table:
    """Rows by stratum and split."""
    by_split: Mapping[str, Mapping[str, int]] = dataset.counts.get("strata", {})
    splits = [split for split in Split.values if split in by_split]
    names = sorted({stratum for counts in by_split.values() for stratum in counts})
    rows = []
    for name in names:
        counts = [by_split[split].get(name, 0) for split in splits]
        rows.append((stratum_label(name), counts, sum(counts)))
    totals = [sum(by_split[split].values()) for split in splits]
    return Table([str(Split(split).label) for split in splits], rows, totals, sum(totals))


def groups(dataset: Dataset) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """Rows by language, category, source and way of deciding: (name, rows, percent)."""
    named: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
        ("language", _("Language"), {}),
        ("category", _("Category"), {}),
        ("source", _("Source"), dict(Source.choices)),
        ("decided", _("Decided"), DECIDED),
    )
    found = []
    for key, title, words in named:
        counts: Mapping[str, int] = dataset.counts.get("groups", {}).get(key, {})
        rows = [
            (str(words.get(name, name)) or _("not said"), n, round(100 * n / (dataset.rows or 1)))
            for name, n in counts.items()
        ]
        if rows:
            found.append((title, rows))
    return found


def marks(dataset: Dataset) -> list[tuple[str, int]]:
    return [(str(MARKS.get(k, k)), n) for k, n in dataset.counts.get("marks", {}).items()]


def reference(dataset: Dataset) -> int:
    """Rows that the reference recipe wants of this kind; 0 where it says nothing."""
    return REFERENCE.get(dataset.kind, 0)


def left(dataset: Dataset) -> list[tuple[str, int]]:
    """Why rows stayed out, of the frozen set or of the refused freeze."""
    return left_out(dataset.counts.get("left") or dataset.report.get("left") or {})


def clashes(dataset: Dataset) -> list[Mapping[str, str]]:
    found: list[Mapping[str, str]] = (
        dataset.counts.get("clashes") or dataset.report.get("clashes") or []
    )
    return [
        {**clash, "prompt_label": _split(clash["prompt_split"]),
         "persona_label": _split(clash["persona_split"])}
        for clash in found
    ]  # fmt: skip


def _split(name: str) -> str:
    return str(Split(name).label) if name in Split.values else "–"


def balance_rows(dataset: Dataset) -> list[BalanceRow]:
    """Directions of the training pairs by style feature, and which of them lean too far."""
    found = dataset.counts.get("balance") or dataset.report.get("balance") or []
    limits = balance_limits(dataset.kind, dataset.filter.get("axis", ""))
    rows = []
    for row in found:
        direction = Direction(row["feature"], row["more"], row["less"], row["equal"])
        rows.append(
            BalanceRow(
                str(FEATURES.get(row["feature"], row["feature"])),
                direction.more,
                direction.less,
                direction.equal,
                direction.percent_more,
                limits is not None and leans(direction, limits),
            )
        )
    return rows


# Pictures


@dataclass(frozen=True)
class Picture:
    title: str
    svg: SafeString


def pictures(dataset: Dataset) -> list[Picture]:
    """Histograms of lengths, style and of what the better answer has more."""
    known: Mapping[str, Any] = dataset.counts.get("histograms", {})
    drawn = []
    for texts, measure, title in (
        (("prompt",), "characters", _("Length of prompts, in characters")),
        (
            ("chosen", "rejected", "completion", "trace"),
            "characters",
            _("Length of answers, in characters"),
        ),
        (
            ("chosen", "rejected", "completion", "trace"),
            "lists",
            _("Lines that are list items, in %"),
        ),
        (
            ("chosen", "rejected", "completion", "trace"),
            "questions",
            _("Sentences that are questions, in %"),
        ),
        (("change",), "characters", _("Characters that the better answer has more")),
    ):
        found = [
            (text, known[f"{text}.{measure}"]) for text in texts if f"{text}.{measure}" in known
        ]
        if found:
            labels = bin_labels(found[0][1]["edges"], percent=measure != "characters")
            series = [Counted(str(TEXTS.get(text, title)), h["counts"]) for text, h in found]
            drawn.append(Picture(title, histogram(labels, series, title=title)))
    return drawn


def bin_labels(edges: Sequence[float], *, percent: bool = False) -> list[str]:
    """Names of bins: "100–200", "> 6400"; shares from 0 to 1 as percentages."""
    shown = [_number(100 * edge if percent else edge) for edge in edges]
    if percent:
        shown[1] = "0"  # the first bin holds nothing but 0
        return ["0", *[f"{a}–{b}" for a, b in zip(shown[1:], [*shown[2:], "100"], strict=True)]]
    if edges[0] >= 0:
        names = [f"{a}–{b}" for a, b in pairwise(shown)]
    else:
        names = [f"{a}…{b}" for a, b in pairwise(shown)]
        names[0] = f"< {shown[1]}"  # the first bin holds everything below
    return [*names, f"> {shown[-1]}"]


def _number(value: float) -> str:
    text = f"{value:,.0f}".replace("-", "−")
    return (
        f"{value / 1000:,.1f}k".replace("-", "−").replace(".0k", "k")
        if abs(value) >= 1000
        else text
    )


# Rows to read


def samples(dataset: Dataset, split: str = "") -> list[Sample]:
    """A few rows by their hash, which tells nothing about order or origin."""
    rows = DatasetItem.objects.filter(dataset=dataset).order_by("row_sha256")
    if split:
        rows = rows.filter(split=split)
    shown = list(rows[: SAMPLES * 2])
    texts = RowText.objects.in_bulk([item.row_sha256 for item in shown])
    there = [item for item in shown if item.row_sha256 in texts][:SAMPLES]
    return [_sample(json.loads(texts[item.row_sha256].line), item) for item in there]


def _sample(row: Mapping[str, Any], item: DatasetItem) -> Sample:
    notes = [str(Split(item.split).label)]
    if item.stratum:
        notes.append(stratum_label(item.stratum))
    if "posterior" in row:
        notes.append(f"{DECIDED.get(row['decided'], row['decided'])}")
        notes.append(_("posterior %(p)s") % {"p": f"{row['posterior']:.2f}"})
    notes += [str(MARKS[name]) for name in ("synthetic", "simulated") if row.get(name)]
    if row.get("reason"):
        notes.append(row["reason"])
    texts = [
        (str(TEXTS[name]), spoken(row[name]))
        for name in ("completion", "chosen", "rejected")
        if name in row
    ]
    if "messages" in row:
        turns = [(turn["role"], _turn(turn)) for turn in row["messages"]]
    else:
        turns = [(turn["role"], turn["content"]) for turn in row["prompt"]]
    return Sample(row["persona"], turns, texts, notes)


def _turn(turn: Mapping[str, Any]) -> str:
    calls = [f"{c['function']['name']}({c['function']['arguments']})" for c in turn["tool_calls"]]
    return "\n".join([turn["content"], *calls]).strip()


# The filter in words


def asked(dataset: Dataset, names: Mapping[str, Mapping[int, str]]) -> list[tuple[str, str]]:
    """The filter as (setting, value) in words; `names` of projects, rounds and imports by id."""
    spec = parse(dataset.kind, dataset.filter)
    found = [(_("Sources"), ", ".join(str(Source(s).label) for s in spec.sources))]
    if spec.axis:
        found.append((_("Axis"), str(Axis(spec.axis).label)))
    for field, title in (
        ("projects", _("Projects")),
        ("rounds", _("Rounds")),
        ("imports", _("Imports")),
    ):
        chosen = getattr(spec, field)
        if chosen:
            found.append((title, ", ".join(names[field].get(pk, f"#{pk}") for pk in chosen)))
    found += _asked_pairs(dataset.kind, spec)
    features = [str(STRATUM_FEATURES.get(name, name)) for name in spec.stratum_features]
    found.append((_("Strata by"), ", ".join(features) or "–"))
    for chosen_names, title in (
        ([stratum_label(s) for s in spec.strata], _("Only strata")),
        (spec.languages, _("Only languages")),
        (spec.categories, _("Only categories")),
    ):
        if chosen_names:
            found.append((title, "; ".join(chosen_names)))
    shares = [f"{Split(s).label} {n} %" for s, n in spec.shares.items()]
    found.append((_("Splits"), ", ".join(shares)))
    found.append((_("Seed"), str(spec.seed)))
    return found


def _asked_pairs(kind: str, spec: Filter) -> list[tuple[str, str]]:
    if not {"annotation", "arena"} & set(spec.sources):
        return []
    found = []
    if "annotation" in spec.sources:
        decided = ", ".join(str(DECIDED.get(name, name)) for name in spec.decided)
        found.append((_("Decided"), decided))
    if kind != Kind.COUNTEREXAMPLES:
        found.append((_("Posterior, at least"), f"{spec.minimum} %"))
    if "arena" in spec.sources:
        found.append((_("Votes for the better answer, at least"), str(spec.votes)))
    if spec.extras:
        found.append((_("Late labels"), _("count in the posterior")))
    if spec.simulated:
        found.append((_("Simulated votes and labels"), _("taken, and marked")))
    return found


def column_rows(dataset: Dataset) -> list[tuple[str, str]]:
    rows = DatasetItem.objects.filter(dataset=dataset).values("row_sha256")
    text = RowText.objects.filter(sha256__in=rows).first()
    names = columns_of(dataset.kind, json.loads(text.line) if text else {})
    words = {"messages": "list of {role, content}", "trace": "list of turns with tool calls"}
    return [(name, words.get(kind, kind)) for name, kind in names.items()]
