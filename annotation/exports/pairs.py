"""Our own format: every item with all its labels, one a line. Pure.

The keys and what is left out when: `annotation.formats.palate_pairs`, which reads it. Everything
stands in one order, so that exporting, importing and exporting again gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.exports.options import AXES
from annotation.exports.rows import BOTH_BAD, FIRST, SECOND, TIE, LabelRow, PairRow

VERDICTS = (FIRST, SECOND, TIE, BOTH_BAD)
_KEPT_EMPTY = ("prompt", "first", "second")


def record(row: PairRow) -> dict[str, Any]:
    found = {
        "prompt": _prompt(row.messages),
        "first": _answer(row.first, row.producers[0]),
        "second": _answer(row.second, row.producers[1]),
        "persona": _persona(row),
        "category": row.category,
        "language": row.language,
        "kind": "" if row.kind == "imported" else row.kind,
        "synthetic": row.facts.synthetic,
        "state": "" if row.facts.state == "open" else row.facts.state,
        "source": row.source or f"item:{row.id[:8]}",  # else the import would name its file
        "details": in_order(row.details),
        "labels": [_label(label) for label in row.labels],
        "decisions": {
            axis: _decision(row.decisions[axis]) for axis in AXES if axis in row.decisions
        },
    }
    return {name: value for name, value in found.items() if value or name in _KEPT_EMPTY}


def _prompt(messages: Sequence[Mapping[str, str]]) -> Any:
    if len(messages) == 1 and messages[0]["role"] == "user":
        return messages[0]["content"]
    return [{"role": m["role"], "content": m["content"]} for m in messages]


def _answer(text: str, producer: str) -> dict[str, str]:
    return {"text": text, "producer": producer} if producer else {"text": text}


def _persona(row: PairRow) -> dict[str, Any]:
    if not row.persona:
        return {}
    return {
        "pseudonym": row.persona,
        "summary": row.summary,
        "features": dict(sorted(row.features.items())),
    }


def _label(label: LabelRow) -> dict[str, Any]:
    found = {
        "annotator": label.annotator,
        "verdicts": {axis: label.verdicts[axis] for axis in AXES if label.verdicts.get(axis)},
        "strengths": {axis: label.strengths[axis] for axis in AXES if label.strengths.get(axis)},
        "tags": sorted(label.tags),
        "comment": label.comment,
        "active_ms": label.active_ms,
        "at": label.at,
        "guideline": label.guideline,
        "late": label.late,
        "extra": label.extra,
        "repeat": label.repeat,
    }
    kept = {n: v for n, v in found.items() if v or n in ("annotator", "verdicts", "at")}
    return kept if label.first_left else {**kept, "first_left": False}


def _decision(decision: Mapping[str, Any]) -> dict[str, Any]:
    posterior = decision["posterior"]
    found = {
        **decision,
        "posterior": {name: posterior[name] for name in VERDICTS if name in posterior},
    }
    always = ("verdict", "source", "labels", "posterior")
    return {name: value for name, value in found.items() if value or name in always}


def in_order(value: Any) -> Any:
    """The same with the keys of every object sorted: databases keep them in orders of their own."""
    if isinstance(value, Mapping):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(inner) for inner in value] if isinstance(value, list) else value
