"""Verdicts, labels and decisions in words, for the pages of managers and adjudicators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from annotation.enums import Axis, Shown, Tag
from annotation.models import Decision, Item, Project
from annotation.selectors.review import SeenLabel
from annotation.selectors.tasks import as_shown


def say(verdict: str, first_left: bool = True) -> Any:
    """A canonical verdict as somebody says it who has the two answers before him as A and B."""
    shown = as_shown(verdict, first_left)
    return Shown(shown).label if shown in Shown.values else "–"


def tag_label(tag: str) -> Any:
    return Tag(tag).label if tag in Tag.values else tag


def tag_words(tags: Sequence[str]) -> list[Any]:
    return [tag_label(tag) for tag in tags]


@dataclass(frozen=True)
class Outcome:
    """A decision that holds, in words; `shares` is the soft label in percent."""

    axis: Any
    verdict: Any
    source: Any
    shares: list[tuple[Any, int]]
    decision: Decision | None


def outcomes_of(item: Item) -> list[Outcome]:
    """What holds on each axis of the project."""
    found = []
    for axis in item.project.axes:
        decision: Decision | None = getattr(item, f"{axis}_decision")
        found.append(
            Outcome(
                axis=Axis(axis).label,
                verdict=say(decision.verdict) if decision and decision.verdict else _("none"),
                source=decision.get_source_display() if decision else "",
                shares=shares(decision.posterior if decision else {}),
                decision=decision,
            )
        )
    return found


def shares(posterior: Mapping[str, float], first_left: bool = True) -> list[tuple[Any, int]]:
    """A soft label in percent, the likeliest first."""
    ordered = sorted(posterior.items(), key=lambda entry: -entry[1])
    return [(say(verdict, first_left), round(100 * share)) for verdict, share in ordered]


@dataclass(frozen=True)
class LabelRow:
    """A label as a table shows it."""

    label: SeenLabel
    verdicts: list[tuple[Any, Any]]
    tags: list[Any]


def label_rows(labels: Sequence[SeenLabel], project: Project) -> list[LabelRow]:
    return [
        LabelRow(
            label=label,
            verdicts=[
                (_shown(label.verdicts[axis]), label.strengths.get(axis, ""))
                for axis in project.axes
            ],
            tags=tag_words(label.tags),
        )
        for label in labels
    ]


def _shown(verdict: str) -> Any:
    return Shown(verdict).label if verdict in Shown.values else "–"
