"""PRISM: answers that a person rated in talks of her own, with what she said about herself. Pure.

The file is `utterances.jsonl`; who the people are stands in `survey.jsonl`, joined on `user_id`.
The pairs are those of the answers within one turn; the better score is the better answer. The
earlier turns of the talk, with the answers that she went on with, belong to the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from annotation.formats import taking
from annotation.formats.each import Format, refused
from annotation.formats.rows import Options, PairRow, ParsedPair, Turns
from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item, json_lines
from webapp.catalog.formats.rows import FormatError, Limits, PersonaSpec, RowError

People = dict[str, "PersonaSpec | RowError"]
MOST_TURNS = 1000
_AGES = re.compile(r"\d+(?:-\d+|\+)")


def read_survey(stream: BinaryIO, limits: Limits) -> People:
    """The people by their ids; a RowError where somebody's description cannot be a summary."""
    people: People = {}
    for item in json_lines(stream, limit=limits.item):
        if item.bad is not None or not isinstance(item.value, dict):
            raise FormatError("survey_line", line=item.place.line)
        user = item.value.get("user_id")
        if isinstance(user, str):
            people[user] = _person(user, item.value, limits)
    if not people:
        raise FormatError("survey_empty")
    return people


def _person(user: str, source: Mapping[str, Any], limits: Limits) -> PersonaSpec | RowError:
    try:
        said = fields.text(source.get("self_description"), "self_description").strip()
        if len(said) > limits.summary:
            raise RowError("long", "self_description", count=len(said), limit=limits.summary)
    except RowError as bad:
        return bad
    ages = _AGES.match(str(source.get("age", "")))
    features = (("age_band", ages[0]),) if ages and "age_band" in limits.features else ()
    return PersonaSpec(pseudonym=f"prism-{user}"[:64], summary=said, features=features)


def parse(items: Iterator[Item], options: Options) -> Iterator[ParsedPair]:
    """Rows of one talk stand one after the other."""
    talk: list[Item] = []
    for item in items:
        bad = item.bad or _trouble(item.value)
        if bad is not None:
            yield refused(item, bad)
            continue
        if talk and talk[-1].value["conversation_id"] != item.value["conversation_id"]:
            yield from _talk_pairs(talk, options)
            talk = []
        talk.append(item)
    yield from _talk_pairs(talk, options)


def _trouble(value: Any) -> RowError | None:
    """What keeps a row from being used at all."""
    try:
        source = fields.mapping(value, "")
        for name in ("conversation_id", "user_id", "user_prompt"):
            fields.text(fields.required(source, name), name)
        taking.required_answer(source, "model_response")
        taking.whole(fields.required(source, "turn"), "turn", 0, MOST_TURNS)
        taking.number(fields.required(source, "score"), "score")
    except RowError as bad:
        return bad
    return None


def _talk_pairs(talk: list[Item], options: Options) -> Iterator[ParsedPair]:
    turns: dict[int, list[Item]] = {}
    for item in talk:
        turn = taking.whole(item.value["turn"], "turn", 0, MOST_TURNS)
        turns.setdefault(turn, []).append(item)
    before: Turns = ()
    for n in sorted(turns):
        rows = turns[n]
        asked: Turns = (*before, ("user", rows[0].value["user_prompt"]))
        if len(rows) == 1:
            yield refused(rows[0], RowError("no_pair"))
        person = options.people.get(rows[0].value["user_id"]) or RowError("no_person", "user_id")
        if isinstance(person, RowError):
            yield from (refused(item, person) for item in (rows if len(rows) > 1 else ()))
        else:
            yield from _turn_pairs(rows, asked, person, options)
        before = (*asked, ("assistant", _gone_on_with(rows)))


def _gone_on_with(rows: list[Item]) -> str:
    """The answer that the talk went on with: the chosen one, else the one with the best score."""
    best = max(rows, key=lambda item: (item.value.get("if_chosen") is True, _score(item)))
    return str(best.value["model_response"])


def _score(item: Item) -> float:
    return taking.number(item.value["score"], "score")


def _turn_pairs(
    rows: list[Item], asked: Turns, person: PersonaSpec, options: Options
) -> Iterator[ParsedPair]:
    for one, other in taking.pairs_of(len(rows)):
        first, second = rows[one].value, rows[other].value
        verdict = taking.by_sign(_score(rows[one]) - _score(rows[other]))
        annotator = f"prism-{first['user_id']}"[: taking.NAME_LIMIT]
        yield PairRow(
            place=rows[other].place,
            offset=rows[other].offset,
            messages=asked,
            first=first["model_response"],
            second=second["model_response"],
            persona=person,
            first_producer=taking.producer(first.get("model_name"), "model_name"),
            second_producer=taking.producer(second.get("model_name"), "model_name"),
            labels=taking.one_label(options, verdict, annotator),
            gold=taking.gold(options, verdict),
            details={
                "first_utterance": first.get("utterance_id"),
                "second_utterance": second.get("utterance_id"),
                "scores": [first["score"], second["score"]],
            },
            raw=rows[other].value,
        )


KEYS = frozenset({"conversation_id", "user_id", "model_response", "turn"})
FORMAT = Format("prism", (KEYS,), parse)
