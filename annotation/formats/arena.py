"""Battles of chat arenas: the JSON of conversations, MT-bench judgements, the 55k table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from annotation.formats import taking
from annotation.formats.rows import BOTH_BAD, FIRST, SECOND, TIE, Options, PairRow, Turns
from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import RowError

WINNERS = {
    "model_a": FIRST,
    "model_b": SECOND,
    "tie": TIE,
    "tie (bothbad)": BOTH_BAD,
    "tie(bothbad)": BOTH_BAD,
    "both_bad": BOTH_BAD,
    "bothbad": BOTH_BAD,
}
DETAILS = ("question_id", "turn", "tstamp", "anony", "is_code", "is_refusal")


def pairs(item: Item, options: Options) -> Iterator[PairRow]:
    """chatbot_arena_conversations, arena-100k (conversations as JSON texts), MT-bench."""
    source = fields.mapping(item.value, "")
    turns = _turns_judged(source)
    first = _conversation(source, "conversation_a", turns)
    second = _conversation(source, "conversation_b", turns)
    question, one, two = taking.split(first, second, "conversation_b")
    verdict = _winner(fields.required(source, "winner"))
    language = fields.optional_text(source, "language", "language")
    judge = next((name for name in ("judge", "judge_hash") if taking.present(source, name)), "")
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=question,
        first=one,
        second=two,
        language=language if len(language) <= 16 else "",
        first_producer=taking.producer(source.get("model_a"), "model_a"),
        second_producer=taking.producer(source.get("model_b"), "model_b"),
        labels=taking.one_label(
            options, verdict, taking.name(source[judge], judge) if judge else ""
        ),
        gold=taking.gold(options, verdict),
        details=taking.details(source, DETAILS),
    )


def _turns_judged(source: Mapping[str, Any]) -> int:
    """How many exchanges were judged; 0: all. An MT-bench judge of turn 1 saw no second one."""
    if not taking.present(source, "turn"):
        return 0
    return taking.whole(source["turn"], "turn", 1, 1000)


def _conversation(source: Mapping[str, Any], name: str, turns: int) -> Turns:
    found = taking.messages(taking.json_cell(fields.required(source, name), name), name)
    asked = [n for n, (role, _content) in enumerate(found) if role == "user"]
    return found[: asked[turns]] if turns and len(asked) > turns else found


def _winner(value: Any) -> str:
    if isinstance(value, str) and value.strip().lower() in WINNERS:
        return WINNERS[value.strip().lower()]
    found = value[:40] if isinstance(value, str) else fields.kind(value)
    allowed = "model_a, model_b, tie, tie (bothbad)"
    raise RowError("choice", "winner", found=found, allowed=allowed)


# The 55k table: prompt, response_a, response_b as JSON lists; winner_model_a/_b/winner_tie 0 or 1


def table_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    asked = _texts(source, "prompt")
    first = _talk(asked, _texts(source, "response_a"), "response_a")
    second = _talk(asked, _texts(source, "response_b"), "response_b")
    question, one, two = taking.split(first, second, "response_b")
    verdict = _flagged(source)
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=question,
        first=one,
        second=two,
        first_producer=taking.producer(source.get("model_a"), "model_a"),
        second_producer=taking.producer(source.get("model_b"), "model_b"),
        labels=taking.one_label(options, verdict),
        gold=taking.gold(options, verdict),
        details=taking.details(source, ("id",)),
    )


def _texts(source: Mapping[str, Any], name: str) -> list[str]:
    """A JSON list of texts in a cell; an answer that was never given is null there."""
    given = taking.json_cell(fields.required(source, name), name)
    if not isinstance(given, list):
        raise RowError("type", name, found=fields.kind(given), wanted="list")
    if not given:
        raise RowError("empty", name)
    return [
        "" if text is None and name != "prompt" else taking.answer(text, f"{name}[{n}]")
        for n, text in enumerate(given)
    ]


def _talk(asked: list[str], answers: list[str], field: str) -> Turns:
    if len(asked) != len(answers):
        raise RowError("turns", field, found=len(answers), wanted=len(asked))
    turns: list[tuple[str, str]] = []
    for question, answer in zip(asked, answers, strict=True):
        turns += [("user", question), ("assistant", answer)]
    return tuple(turns)


def _flagged(source: Mapping[str, Any]) -> str:
    names = {"winner_model_a": FIRST, "winner_model_b": SECOND, "winner_tie": TIE}
    said = [
        verdict
        for name, verdict in names.items()
        if taking.whole(fields.required(source, name), name, 0, 1)
    ]
    if len(said) != 1:
        raise RowError("one_winner", "winner_tie", found=len(said))
    return said[0]
