"""Tables whose columns nobody knows beforehand: a mapping says what each one holds. Pure.

A mapping is {what: column}. A pair is `first` and `second` with or without `label`, or `chosen` and
`rejected`. `values_first` and its kin say which words in the label's column mean what.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from annotation.formats import taking
from annotation.formats.rows import AXES, BOTH_BAD, FIRST, SECOND, TIE, LabelSpec, Options, PairRow
from webapp.catalog.formats import fields
from webapp.catalog.formats.palate import persona as read_persona
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import FormatError, Limits, PersonaSpec, RowError

FROM_COLUMNS = (
    "prompt",
    "system",
    "persona_pseudonym",
    "persona_summary",
    "first",
    "second",
    "chosen",
    "rejected",
    "label",
    "personalization_label",
    "annotator",
    "comment",
    "first_producer",
    "second_producer",
    "chosen_producer",
    "rejected_producer",
    "category",
    "language",
)
VALUES = {
    "values_first": FIRST,
    "values_second": SECOND,
    "values_tie": TIE,
    "values_both_bad": BOTH_BAD,
}
WORDS = {
    FIRST: "first, a, 1, left, model_a, response_a, answer_a, output_1, response1",
    SECOND: "second, b, 2, right, model_b, response_b, answer_b, output_2, response2",
    TIE: "tie, 0, equal, same, draw, both good",
    BOTH_BAD: "both_bad, both bad, tie (bothbad), neither, bad",
}
GUESSES = {
    "prompt": "prompt question instruction query user_prompt input",
    "system": "system system_prompt",
    "persona_pseudonym": "persona_pseudonym pseudonym persona_id user_id",
    "persona_summary": "persona_summary persona summary profile",
    "first": "first answer_a response_a answer_1 response_1 response1 output_1 a",
    "second": "second answer_b response_b answer_2 response_2 response2 output_2 b",
    "chosen": "chosen preferred chosen_response",
    "rejected": "rejected rejected_response",
    "label": "label winner preference verdict choice better",
    "annotator": "annotator worker judge rater annotator_id",
    "comment": "comment reason rationale",
    "first_producer": "first_producer model_a model_1 generator_1",
    "second_producer": "second_producer model_b model_2 generator_2",
    "category": "category domain topic",
    "language": "language lang",
}


def guess(columns: tuple[str, ...]) -> dict[str, str]:
    """What the names of the columns suggest."""
    lower = {name.lower().replace(" ", "_"): name for name in reversed(columns)}
    found: dict[str, str] = {}
    for what, names in GUESSES.items():
        column = next((lower[name] for name in names.split() if name in lower), None)
        if column is not None and column not in found.values():
            found[what] = column
    return found


def check_mapping(mapping: Mapping[str, str], columns: tuple[str, ...]) -> None:
    """Raise FormatError where the mapping gives no pairs, or names a column that is not there."""
    for what, column in mapping.items():
        if what not in FROM_COLUMNS and what not in VALUES:
            raise FormatError("no_such_what", name=what[:40], allowed=", ".join(FROM_COLUMNS))
        if what in FROM_COLUMNS and columns and column not in columns:
            shown = ", ".join(columns)[:300]
            raise FormatError("no_column", name=column[:60], columns=shown)
    pair = {"first", "second"} <= set(mapping)
    if pair == ({"chosen", "rejected"} <= set(mapping)) or "prompt" not in mapping:
        raise FormatError("choose_columns", columns=", ".join(columns)[:300])


def pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source, mapping = fields.mapping(item.value, ""), options.mapping

    def text(what: str) -> str:
        column = mapping.get(what)
        if column is None or source.get(column) in (None, ""):
            return ""
        return taking.answer(_as_text(source[column]), column)

    chosen = "chosen" in mapping
    sides = ("chosen", "rejected") if chosen else ("first", "second")
    first, second = (_side(source, mapping[side]) for side in sides)
    verdicts = _verdicts(mapping, options, text, chosen)
    annotator = text("annotator") or options.annotator
    labels = (
        (LabelSpec(annotator[: taking.NAME_LIMIT], verdicts, comment=text("comment")),)
        if verdicts and not options.gold
        else ()
    )
    asked = fields.text(_as_text(fields.required(source, mapping["prompt"])), mapping["prompt"])
    system = text("system")
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=((("system", system),) if system.strip() else ()) + (("user", asked),),
        first=first,
        second=second,
        persona=_persona(text("persona_pseudonym"), text("persona_summary"), options.limits),
        category=_short(text("category"), mapping, "category", 64),
        language=_short(text("language"), mapping, "language", 16),
        first_producer=_maker(text, mapping, sides[0]),
        second_producer=_maker(text, mapping, sides[1]),
        labels=labels,
        gold=verdicts if options.gold else {},
    )


def _as_text(value: Any) -> Any:
    """A number in a Parquet column is a text here; true and false are none."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _side(source: Mapping[str, Any], column: str) -> str:
    return taking.answer(_as_text(fields.required(source, column)), column)


def _short(value: str, mapping: Mapping[str, str], what: str, limit: int) -> str:
    return fields.text(value, mapping[what], limit=limit).strip() if value else ""


def _maker(text: Any, mapping: Mapping[str, str], side: str) -> str:
    what = f"{side}_producer"
    return taking.producer(text(what), mapping.get(what, what))


def _verdicts(
    mapping: Mapping[str, str], options: Options, text: Any, chosen: bool
) -> dict[str, str]:
    found = {options.axis: FIRST} if chosen else {}
    columns = {"label": options.axis, "personalization_label": AXES[1]}
    for what, axis in columns.items():
        said = text(what).strip()
        if said and not (chosen and what == "label"):
            found[axis] = _verdict(said, mapping, mapping[what])
    return found


def _verdict(said: str, mapping: Mapping[str, str], column: str) -> str:
    known: dict[str, str] = {}
    for what, verdict in VALUES.items():
        words = mapping.get(what)
        given = any(name in mapping for name in VALUES)
        for word in (words or ("" if given else WORDS[verdict])).split(","):
            if word.strip():
                known[word.strip().lower()] = verdict
    word = said.lower().removesuffix(".0")
    if word not in known:
        raise RowError("choice", column, found=said[:40], allowed=", ".join(known))
    return known[word]


def _persona(pseudonym: str, summary: str, limits: Limits) -> PersonaSpec | None:
    """Without a pseudonym the summary itself names the person."""
    if not pseudonym.strip() and not summary.strip():
        return None
    if not pseudonym.strip():
        pseudonym = f"p-{hashlib.sha256(summary.strip().encode()).hexdigest()[:12]}"
    return read_persona({"pseudonym": pseudonym, "summary": summary}, limits)
