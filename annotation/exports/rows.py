"""What an export knows of an item. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FIRST, SECOND, TIE, BOTH_BAD = "first", "second", "tie", "both_bad"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision of an item on one axis, with its soft label."""

    verdict: str
    source: str
    posterior: Mapping[str, float]
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides whether an item is exported, without its texts.

    `outcomes` by axis. `persona` is the persona's id (0: none), `prompt_key` a part of the prompt's
    hash, `pair` what the two directions of a counterfactual share. `labels` were submitted.
    """

    item: int
    state: str
    prompt: int
    persona: int
    prompt_key: int
    outcomes: Mapping[str, Outcome]
    labels: int = 0
    gold: bool = False
    readable: bool = True
    holdout: bool = False
    external: bool = False
    synthetic: bool = False
    same_text: bool = False
    pair: str = ""
    review: str = ""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One annotator's label. `annotator`: the name that an import gave her, else the pseudonym.

    Verdicts are canonical; `first_left`: the first answer stood left.
    """

    annotator: str
    pseudonym: str
    verdicts: Mapping[str, str]
    strengths: Mapping[str, int]
    first_left: bool
    at: str
    guideline: int = 0
    tags: Sequence[str] = ()
    comment: str = ""
    active_ms: int = 0
    late: bool = False
    extra: bool = False
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class PairRow:
    """An item with everything that a record may say of it."""

    id: str
    facts: Facts
    messages: Sequence[Mapping[str, str]]
    prompt_sha256: str
    category: str
    language: str
    persona: str
    persona_version: int
    summary: str
    features: Mapping[str, str]
    first: str
    second: str
    producers: tuple[str, str]
    kind: str
    source: str
    labels: Sequence[LabelRow] = ()
    decisions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # as stored, by axis
    details: Mapping[str, Any] = field(default_factory=dict)


def clean(value: Any) -> Any:
    """The same without halves of surrogate pairs, which no file in UTF-8 can hold."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
        return value
    if isinstance(value, dict):
        return {clean(key): clean(inner) for key, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list) else value
