"""Taking prompts, answers, verdicts and names out of records of preference pairs. Pure.

Records come from JSON, CSV or Parquet: a number may stand as text, a list as JSON text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotation.formats.rows import FIRST, SECOND, TIE, LabelSpec, Options, Turns
from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import decode
from webapp.catalog.formats.rows import Place, RowError
from webapp.catalog.texts import is_blank

ROLES = {
    "system": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "bot": "assistant",
}
HEADINGS = {"user": "**User:**", "assistant": "**Assistant:**", "system": "**System:**"}
NAME_LIMIT, PRODUCER_LIMIT = 120, 200


def answer(value: Any, field: str) -> str:
    """An answer as it is. It may be empty: such pairs are held back later, not lost."""
    if not isinstance(value, str):
        raise RowError("type", field, found=fields.kind(value), wanted="text")
    return value


def required_answer(source: Mapping[str, Any], name: str) -> str:
    return answer(fields.required(source, name), name)


def prompt(value: Any, field: str = "prompt") -> Turns:
    """A question: a text, or turns whose last one is the user's."""
    if isinstance(value, str):
        return (("user", fields.text(value, field)),)
    return ending_with_user(messages(value, field), field)


def ending_with_user(turns: Turns, field: str) -> Turns:
    if not turns:
        raise RowError("empty", field)
    if turns[-1][0] != "user":
        raise RowError("last_turn", field, found=turns[-1][0])
    for n, (_role, content) in enumerate(turns):
        fields.text(content, f"{field}[{n}].content")
    return turns


def messages(value: Any, field: str) -> Turns:
    """A list of {role, content} or {from, value}; other keys of a turn are left alone."""
    if not isinstance(value, list):
        raise RowError("type", field, found=fields.kind(value), wanted="text or list of turns")
    return tuple(_turn(entry, f"{field}[{n}]") for n, entry in enumerate(value))


def _turn(value: Any, field: str) -> tuple[str, str]:
    turn = fields.mapping(value, field)
    names = ("from", "value") if "from" in turn and "role" not in turn else ("role", "content")
    given = fields.required(turn, names[0], f"{field}.{names[0]}")
    role = ROLES.get(given) if isinstance(given, str) else None
    if role is None:
        found = given[:40] if isinstance(given, str) else fields.kind(given)
        raise RowError("choice", f"{field}.{names[0]}", found=found, allowed=", ".join(ROLES))
    content = fields.required(turn, names[1], f"{field}.{names[1]}")
    return role, _content(content, f"{field}.{names[1]}")


def _content(value: Any, field: str) -> str:
    """A text, or a list of text parts."""
    if not isinstance(value, list):
        return answer(value, field)
    parts = []
    for n, entry in enumerate(value):
        part = fields.mapping(entry, f"{field}[{n}]")
        if part.get("type") != "text":
            found = str(part.get("type"))[:40]
            raise RowError("choice", f"{field}[{n}].type", found=found, allowed="text")
        parts.append(answer(part.get("text"), f"{field}[{n}].text"))
    return "\n".join(parts)


def transcript(turns: Turns, field: str) -> str:
    """What follows the question: one answer as it is, several turns with their speakers."""
    if not turns:
        raise RowError("no_answer", field)
    if len(turns) == 1 and turns[0][0] == "assistant":
        return turns[0][1]
    if turns[-1][0] != "assistant":
        raise RowError("no_answer", field)
    (role, begin), *rest = turns
    told = [begin if role == "assistant" else f"{HEADINGS[role]} {begin}"]
    told += [f"{HEADINGS[role]} {content}" for role, content in rest]
    return "\n\n".join(told)


def split(first: Turns, second: Turns, field: str) -> tuple[Turns, str, str]:
    """Two conversations: the question that they share, and what follows in each.

    The shared part ends with the last user's turn before they differ, and at the latest before the
    last turn of either.
    """
    shared = 0
    longest = min(len(first), len(second)) - 1
    while shared < longest and first[shared] == second[shared]:
        shared += 1
    while shared and first[shared - 1][0] != "user":
        shared -= 1
    if not shared:
        raise RowError("no_shared_prompt", field)
    question = ending_with_user(first[:shared], field)
    return question, transcript(first[shared:], field), transcript(second[shared:], field)


# Names, numbers, JSON in cells


def present(source: Mapping[str, Any], name: str) -> bool:
    """Whether a value stands there: neither missing nor null nor an empty cell."""
    return source.get(name) not in (None, "")


def producer(value: Any, field: str) -> str:
    """A name of a model; "" where there is none."""
    if value is None or value == "":
        return ""
    return fields.text(value, field, limit=PRODUCER_LIMIT).strip()


def name(value: Any, field: str) -> str:
    """The name or number of an annotator."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return fields.text(value, field, limit=NAME_LIMIT).strip()


def number(value: Any, field: str) -> float:
    """A finite number; in a cell it stands as text."""
    found = value
    if isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            found = None
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        said = value[:40] if isinstance(value, str) else fields.kind(value)
        raise RowError("type", field, found=said, wanted="number")
    return found


def whole(value: Any, field: str, low: int, high: int) -> int:
    """A whole number in this range."""
    found = number(value, field)
    if found != int(found):
        raise RowError("type", field, found=str(value)[:40], wanted="whole number")
    if not low <= found <= high:
        raise RowError("range", field, found=str(value)[:40], low=low, high=high)
    return int(found)


def json_cell(value: Any, field: str) -> Any:
    """What JSON in a text says; lists and objects stay as they are."""
    if not isinstance(value, str):
        return value
    item = decode(value, Place(1), 0)
    if item.bad is not None:
        bad = RowError(item.bad.code, field)
        bad.params = item.bad.params
        raise bad
    return item.value


def same(one: str, other: str) -> bool:
    return one.strip() == other.strip()


def joined(*parts: str) -> str:
    """Texts that belong together, with an empty line between those that say something."""
    return "\n\n".join(part for part in parts if not is_blank(part))


def details(source: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """What else the source said, under its own names."""
    return {name: source[name] for name in names if present(source, name)}


# Verdicts


def by_sign(value: float, *, second_positive: bool = False) -> str:
    """The verdict of a difference: positive speaks for the first, or for the second."""
    if value == 0:
        return TIE
    return FIRST if (value > 0) != second_positive else SECOND


def one_label(options: Options, verdict: str, annotator: str = "") -> tuple[LabelSpec, ...]:
    """The label of a file that has one per pair; none for gold, which is no opinion."""
    if options.gold or not verdict:
        return ()
    return (LabelSpec(annotator or options.annotator, {options.axis: verdict}),)


def gold(options: Options, verdict: str) -> dict[str, str]:
    return {options.axis: verdict} if options.gold and verdict else {}


def pairs_of(count: int) -> Iterator[tuple[int, int]]:
    """All pairs of `count` things, the earlier one first."""
    for one in range(count):
        for other in range(one + 1, count):
            yield one, other
