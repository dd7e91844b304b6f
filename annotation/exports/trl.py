"""TRL's formats: preference with explicit or implicit prompt, and unpaired preference (KTO). Pure.

Names and shapes: TRL's "Dataset formats and types". The columns behind them say where a row comes
from; trainers ignore them. None has a name to which a trainer gives a meaning of its own, such as
`margin`, `tools` or `images`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from annotation.exports import rendering
from annotation.exports.columns import Columns
from annotation.exports.options import TRL, TRL_IMPLICIT, TRL_UNPAIRED, Options
from annotation.exports.rows import BOTH_BAD, FIRST, SECOND, LabelRow, PairRow
from annotation.exports.selection import Verdict

PROVENANCE: Columns = {
    "item": "string",
    "axis": "string",
    "outcome": "string",
    "posterior": "float64",
    "label_smoothing": "float64",
    "strength": "float64",
    "prompt_sha256": "string",
    "language": "string",
    "category": "string",
    "persona": "string",
    "persona_version": "int64",
    "synthetic": "bool",
    "counterfactual_pair": "string",
    "import_source": "string",
    "split": "string",
    "labelled_by": "labels",
}


def columns(options: Options) -> Columns:
    text = "messages" if options.style == "conversational" else "string"
    shapes: dict[str, Columns] = {
        TRL: {"prompt": text, "chosen": text, "rejected": text},
        TRL_IMPLICIT: {"chosen": text, "rejected": text},
        TRL_UNPAIRED: {"prompt": text, "completion": text, "label": "bool"},
    }
    return {**shapes[options.format], **PROVENANCE}


def records(
    row: PairRow, verdict: Verdict, options: Options, split: str
) -> Iterator[dict[str, Any]]:
    """The records of an item: one pair, or two single completions."""
    sides = {FIRST: row.first, SECOND: row.second}
    if options.format == TRL_UNPAIRED:
        for side in (FIRST, SECOND):
            good = verdict.verdict == side or verdict.verdict not in (FIRST, SECOND, BOTH_BAD)
            yield {
                "prompt": _prompt(row, options),
                "completion": _completion(sides[side], options),
                "label": good,
                **provenance(row, verdict, options, split, side),
            }
        return
    chosen = verdict.verdict
    rejected = SECOND if chosen == FIRST else FIRST
    prompt = _prompt(row, options)
    pair = {
        "chosen": _completion(sides[chosen], options),
        "rejected": _completion(sides[rejected], options),
    }
    if options.format == TRL_IMPLICIT:
        texts = {name: prompt + said for name, said in pair.items()}
    else:
        texts = {"prompt": prompt, **pair}
    yield {**texts, **provenance(row, verdict, options, split, chosen)}


def _prompt(row: PairRow, options: Options) -> Any:
    turns = rendering.conversation(row.messages, row.summary if options.persona_in_prompt else "")
    return turns if options.style == "conversational" else rendering.transcript(turns)


def _completion(text: str, options: Options) -> Any:
    return rendering.answer(text) if options.style == "conversational" else text


def provenance(
    row: PairRow, verdict: Verdict, options: Options, split: str, side: str
) -> dict[str, Any]:
    """Where a row comes from; `side` is the answer of the item that it calls chosen."""
    labels = labels_on(row, options.axis)
    return {
        "item": row.id,
        "axis": options.axis,
        "outcome": verdict.source,
        "posterior": verdict.probability,
        "label_smoothing": verdict.smoothing,
        "strength": _strength(labels, options.axis, verdict.verdict),
        "prompt_sha256": row.prompt_sha256,
        "language": row.language,
        "category": row.category,
        "persona": row.persona,
        "persona_version": row.persona_version,
        "synthetic": row.facts.synthetic,
        "counterfactual_pair": row.facts.pair,
        "import_source": row.source,
        "split": split,
        "labelled_by": [_label(label, options.axis, side) for label in labels],
    }


def labels_on(row: PairRow, axis: str) -> list[LabelRow]:
    """The labels that the outcome rests on."""
    return [
        label
        for label in row.labels
        if not label.extra and not label.repeat and label.verdicts.get(axis)
    ]


def _strength(labels: Sequence[LabelRow], axis: str, verdict: str) -> float:
    """Mean strength of the labels that agree with the outcome; 0 where it was not asked."""
    given = [
        label.strengths[axis]
        for label in labels
        if label.verdicts[axis] == verdict and label.strengths.get(axis)
    ]
    return round(sum(given) / len(given), 3) if given else 0.0


def _label(label: LabelRow, axis: str, side: str) -> dict[str, Any]:
    verdict = label.verdicts[axis]
    if verdict in (FIRST, SECOND):
        verdict = "chosen" if verdict == side else "rejected"
    return {
        "annotator": label.pseudonym,
        "verdict": verdict,
        "left": label.first_left == (side == FIRST),
        "at": label.at,
        "guideline": label.guideline,
        "strength": label.strengths.get(axis, 0),
        "late": label.late,
    }
