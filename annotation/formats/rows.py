"""What the parsers of preference pairs hand over. Pure: no Django.

Places, refusals and personas are those of the catalog's formats. Verdicts are canonical: of the
first and second answer as the file gives them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from webapp.catalog.formats.rows import Limits, PersonaSpec, Place, Refusal, RowError

FIRST, SECOND, TIE, BOTH_BAD = "first", "second", "tie", "both_bad"
VERDICTS = (FIRST, TIE, SECOND, BOTH_BAD)
AXES = ("quality", "personalization")
DATASET = "dataset"  # the annotator of labels whose author a file does not name

Turns = tuple[tuple[str, str], ...]


def flipped(verdict: str) -> str:
    """The verdict where the two answers change places."""
    return {FIRST: SECOND, SECOND: FIRST}.get(verdict, verdict)


@dataclass(frozen=True, slots=True)
class LabelSpec:
    """A label that a file has already. `verdicts` and `strengths` are by axis.

    `first_left`: the first answer stood left. `extra`: kept beside the labels that count.
    """

    annotator: str
    verdicts: Mapping[str, str]
    strengths: Mapping[str, int] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    comment: str = ""
    active_ms: int = 0
    at: datetime | None = None
    first_left: bool = True
    late: bool = False
    extra: bool = False
    repeat: int = 0
    guideline: int = 0


@dataclass(frozen=True, slots=True)
class DecisionSpec:
    """The outcome on one axis that a file of ours carries."""

    verdict: str
    source: str
    labels: int = 0
    posterior: Mapping[str, float] = field(default_factory=dict)
    blind_verdict: str = ""
    reason: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PairRow:
    """One pair. `messages` is a tuple of (role, content) that ends with the user's turn.

    `gold` is the known right verdict of a pair, by axis. `raw` is the record that the row was made
    of, given back when the row is refused after all.
    """

    place: Place
    offset: int
    messages: Turns
    first: str
    second: str
    persona: PersonaSpec | None = None
    category: str = ""
    language: str = ""
    first_producer: str = ""
    second_producer: str = ""
    labels: tuple[LabelSpec, ...] = ()
    decisions: Mapping[str, DecisionSpec] = field(default_factory=dict)
    gold: Mapping[str, str] = field(default_factory=dict)
    kind: str = "imported"
    synthetic: bool = False
    state: str = ""
    source: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    raw: Any = None


ParsedPair = PairRow | Refusal


def without_labels(row: ParsedPair) -> ParsedPair:
    """The bare pair, to be labelled anew. What was held back or dropped stays so."""
    if isinstance(row, Refusal):
        return row
    state = row.state if row.state in ("held", "dropped") else ""
    return dataclasses.replace(row, labels=(), decisions={}, state=state)


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is read. `annotator` names the labels whose author the file does not name;
    `labels`: whether they come in, and what they came to.

    `mapping` is {what: column} for files whose columns nobody knows; `people` are those of a survey
    by their ids, or what is wrong with them.
    """

    axis: str = AXES[0]
    gold: bool = False
    labels: bool = True
    annotator: str = DATASET
    mapping: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, PersonaSpec | RowError] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
