"""Imports of a project as its manager sees them. No text that a seal covers leaves here (V1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.enums import Axis, ItemFlag, Verdict
from annotation.models import Project
from webapp.catalog import selectors, uploads
from webapp.catalog.models import ImportRun, Seal
from webapp.catalog.texts import sha256

KIND = "pairs"
LINES = 200  # of an error file that are looked at together
NAMES_SHOWN = 50

# Titles of the formats, in the order of the choice.
TITLES: dict[str, Any] = {
    "palate_pairs": gettext_lazy("ours, JSON Lines"),
    "palate_csv": gettext_lazy("ours, CSV"),
    "columns": gettext_lazy("a table whose columns you name"),
    "trl": gettext_lazy("TRL preference, UltraFeedback, Argilla"),
    "hh_rlhf": "HH-RLHF",
    "helpsteer3": "HelpSteer3",
    "summarize": "summarize_from_feedback",
    "arena": gettext_lazy("Arena battles, MT-bench judgements"),
    "arena_table": gettext_lazy("Arena battles, the 55k table"),
    "alpaca_eval": gettext_lazy("AlpacaEval annotations"),
    "llmbar": "LLMBar",
    "pandalm": "PandaLM",
    "oasst": gettext_lazy("Open-Assistant trees or messages"),
    "prism": gettext_lazy("PRISM (zip of utterances and survey)"),
}
COUNTS: dict[str, Any] = {
    "labels_added": gettext_lazy("New labels"),
    "labels_known": gettext_lazy("Labels known already"),
    "labels_repeated": gettext_lazy("Of the new ones: repeats by the same annotator"),
    "labels_beside": gettext_lazy("Of the new ones: beside the count, an axis is missing"),
    "unlabelled": gettext_lazy("Rows without a label"),
    "gold": gettext_lazy("Rows with a known answer"),
}


def runs_of(project: Project) -> QuerySet[ImportRun]:
    rows = ImportRun.objects.filter(kind=KIND, subject=project.pk)
    return rows.select_related("created_by")


@dataclass(frozen=True)
class PairsView:
    """What the page of an import shows, besides what all imports show (`base`)."""

    base: selectors.ImportView
    format: str
    options: list[tuple[str, str]]
    counts: list[tuple[str, int]]
    held: list[tuple[str, int]]
    producers: list[tuple[str, int]]
    annotators: list[tuple[str, int]]
    samples: list[dict[str, Any]]
    columns: list[list[str]]
    needs_columns: bool


def view_run(run: ImportRun) -> PairsView:
    report, base = run.report, selectors.view_import(run)
    failure = report.get("failure") or {}
    flags = report.get("flags", {})
    return PairsView(
        base=base,
        format=str(TITLES.get(run.format, run.format)),
        options=_options(run),
        counts=[(str(title), report[name]) for name, title in COUNTS.items() if report.get(name)],
        held=[(str(ItemFlag(flag).label), n) for flag, n in sorted(flags.items())],
        producers=_largest(report.get("producers", {})),
        annotators=_largest(report.get("annotators", {})),
        samples=_samples(base.samples) if base.may_start else [],
        columns=columns_of(run),
        needs_columns=failure.get("code") == "choose_columns",
    )


def _options(run: ImportRun) -> list[tuple[str, str]]:
    given = run.options
    found = []
    if given.get("gold"):
        found.append((_("Labels"), _("known answers (gold)")))
    if given.get("no_labels"):
        found.append((_("Labels"), _("left out")))
    if given.get("axis"):
        found.append((_("About"), str(Axis(given["axis"]).label)))
    if given.get("annotator"):
        found.append((_("Annotator"), given["annotator"]))
    return found


def _largest(tally: dict[str, int]) -> list[tuple[str, int]]:
    ordered = sorted(tally.items(), key=lambda entry: (-entry[1], entry[0]))
    return ordered[:NAMES_SHOWN]


def _samples(kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that no live seal covers, with their labels in words."""
    sealed = sealed_hashes(h for sample in kept for h in sample["hashes"])
    return [
        {
            **sample,
            "said": [_said(label) for label in sample["labels"]],
            "gold": _said(sample["gold"]) if sample["gold"] else "",
        }
        for sample in kept
        if not sealed & set(sample["hashes"])
    ]


def columns_of(run: ImportRun) -> list[list[str]]:
    """Names of columns with an example each, none of a text that a live seal covers."""
    kept = run.report.get("columns", [])
    sealed = sealed_hashes(digest for _name, _example, digest in kept)
    return [[name, "" if digest in sealed else example] for name, example, digest in kept]


def _said(verdicts: dict[str, str]) -> str:
    parts = [f"{Axis(axis).label}: {Verdict(said).label}" for axis, said in verdicts.items()]
    return "; ".join(parts)


def sealed_hashes(hashes: Iterable[str]) -> set[str]:
    """Those of these hashes that are of a text under a live seal."""
    wanted = sorted(set(hashes))
    found: set[str] = set()
    for start in range(0, len(wanted), 500):
        rows = Seal.objects.filter(
            released_at=None, answer__text_sha256__in=wanted[start : start + 500]
        )
        found.update(rows.values_list("answer__text_sha256", flat=True))
    return found


# The file of refused rows


def error_lines(run: ImportRun) -> Iterator[str]:
    """Lines of the file of refused rows. A row with a sealed text in it is left out."""
    yield from _checked(uploads.errors_path(run.pk))


def _checked(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as stream:
        while lines := list(islice(stream, LINES)):
            rows = [json.loads(line) for line in lines]
            hashes = [{sha256(text) for text in _texts(row.get("row"))} for row in rows]
            sealed = sealed_hashes(h for found in hashes for h in found)
            for line, row, found in zip(lines, rows, hashes, strict=True):
                if not sealed & found:
                    yield line
                    continue
                kept = {**row, "row": None, "left_out": "sealed"}
                yield json.dumps(kept, ensure_ascii=False) + "\n"


def _texts(value: Any) -> Iterator[str]:
    """Every text in a row, also in JSON that stands in a text."""
    if isinstance(value, str):
        yield value
        if value.strip() != value:
            yield value.strip()
        if value.startswith(("[", "{")):
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                return
            yield from _texts(inner)
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
