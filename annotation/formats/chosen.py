"""Files that say which answer was chosen: TRL preference, UltraFeedback and its kin, HH-RLHF. Pure.

TRL's columns are prompt, chosen, rejected; each a text or a list of turns, and the prompt may be
implicit: then it is what the two conversations begin with. The Argilla and H4 files add ratings and
the names of the models, with hyphens or underscores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from annotation.formats import taking
from annotation.formats.rows import FIRST, Options, PairRow, Turns
from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import RowError

HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"
CHOSEN = ("chosen", "chosen_response")
REJECTED = ("rejected", "rejected_response")
PROMPT = ("prompt", "instruction", "question", "input")
DETAILS = (
    "prompt_id",
    "source",
    "dataset",
    "score_chosen",
    "score_rejected",
    "chosen-rating",
    "rejected-rating",
    "chosen_rating",
    "rejected_rating",
    "chosen_avg_rating",
    "rejected_avg_rating",
)


def pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    (one, chosen), (other, rejected) = _side(source, CHOSEN), _side(source, REJECTED)
    for name, value in ((one, chosen), (other, rejected)):
        if not isinstance(value, str | list):
            found = fields.kind(value)
            raise RowError("type", name, found=found, wanted="text or list of turns")
    if isinstance(chosen, str) != isinstance(rejected, str):
        raise RowError("mixed", other)
    if isinstance(chosen, str):
        question, first, second = _texts(source, chosen, taking.answer(rejected, other))
    else:
        question, first, second = _lists(
            source, taking.messages(chosen, one), taking.messages(rejected, other), one
        )
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=question,
        first=first,
        second=second,
        language=fields.optional_text(source, "language", "language", limit=16),
        first_producer=_producer(source, "chosen"),
        second_producer=_producer(source, "rejected"),
        labels=taking.one_label(options, FIRST),
        gold=taking.gold(options, FIRST),
        details=taking.details(source, DETAILS),
    )


def _side(source: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any]:
    name = next((name for name in names if name in source), names[0])
    value = fields.required(source, name)
    if isinstance(value, str) and value.startswith("[{"):  # a list of turns in a table's cell
        value = taking.json_cell(value, name)
    return name, value


def _producer(source: Mapping[str, Any], side: str) -> str:
    for name in (f"{side}-model", f"{side}_model"):
        if taking.present(source, name):
            return taking.producer(source[name], name)
    return ""


def _asked(source: Mapping[str, Any]) -> tuple[str, Any]:
    """The column of the question and what it says; None where the prompt is implicit."""
    for name in PROMPT:
        if taking.present(source, name):
            value = source[name]
            if isinstance(value, str) and value.startswith("[{"):
                value = taking.json_cell(value, name)
            return name, value
    return "prompt", None


def _texts(source: Mapping[str, Any], chosen: str, rejected: str) -> tuple[Turns, str, str]:
    name, asked = _asked(source)
    if asked is not None:
        return _with_system(source, taking.prompt(asked, name)), chosen, rejected
    if ASSISTANT in chosen:
        return dialogues(chosen, rejected)
    raise RowError("missing", name)


def _with_system(source: Mapping[str, Any], turns: Turns) -> Turns:
    system = fields.optional_text(source, "system", "system")
    return (("system", system), *turns) if system and turns[0][0] != "system" else turns


def _lists(
    source: Mapping[str, Any], chosen: Turns, rejected: Turns, field: str
) -> tuple[Turns, str, str]:
    """The answers alone after a prompt, or whole conversations with or without one."""
    name, asked = _asked(source)
    whole = bool(chosen and rejected and chosen[0][0] != "assistant")
    if whole or asked is None:
        return taking.split(chosen, rejected, field)
    question = _with_system(source, taking.prompt(asked, name))
    return question, taking.transcript(chosen, field), taking.transcript(rejected, "rejected")


# HH-RLHF


def hh_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    source = fields.mapping(item.value, "")
    chosen = fields.text(fields.required(source, "chosen"), "chosen")
    rejected = fields.text(fields.required(source, "rejected"), "rejected")
    question, first, second = dialogues(chosen, rejected)
    yield PairRow(
        place=item.place,
        offset=item.offset,
        messages=question,
        first=first,
        second=second,
        labels=taking.one_label(options, FIRST),
        gold=taking.gold(options, FIRST),
    )


def dialogues(chosen: str, rejected: str) -> tuple[Turns, str, str]:
    """Two dialogues of HH-RLHF. They part at the last turn of the assistant, never before (T21)."""
    before, first = _last_answer(chosen, "chosen")
    other, second = _last_answer(rejected, "rejected")
    if before == other:
        return taking.ending_with_user(_turns(before, "chosen"), "chosen"), first, second
    # Some dialogues part earlier; then all that follows the shared part is the answer.
    one, two = _turns(chosen, "chosen"), _turns(rejected, "rejected")
    return taking.split(one, two, "rejected")


def _last_answer(dialogue: str, field: str) -> tuple[str, str]:
    before, mark, answer = dialogue.rpartition(ASSISTANT)
    if not mark or HUMAN in answer:
        raise RowError("no_answer" if mark else "no_dialogue", field)
    return before, answer.strip()


def _turns(dialogue: str, field: str) -> Turns:
    """The turns of a dialogue; a role that speaks twice in a row keeps two turns."""
    found: list[tuple[str, str]] = []
    rest = dialogue if dialogue.startswith("\n\n") else f"\n\n{dialogue.lstrip()}"
    while rest:
        role = "user" if rest.startswith(HUMAN) else "assistant"
        mark = HUMAN if role == "user" else ASSISTANT
        if not rest.startswith(mark):
            raise RowError("no_dialogue", field)
        rest = rest[len(mark) :]
        ends = [at for at in (rest.find(HUMAN), rest.find(ASSISTANT)) if at >= 0]
        end = min(ends, default=len(rest))
        found.append((role, rest[:end].strip()))
        rest = rest[end:]
    return tuple(found)
