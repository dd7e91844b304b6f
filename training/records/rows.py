"""What the parsers of records hand over. Pure: no Django."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from training.records.tasks import task
from webapp.catalog.formats import fields
from webapp.catalog.formats.palate import persona
from webapp.catalog.formats.reading import Item, json_lines
from webapp.catalog.formats.rows import Limits, PersonaSpec, Place, Refusal, RowError
from webapp.catalog.texts import prompt_hash

ABOUT = ("persona", "language", "category", "synthetic", "meta")
Turns = list[dict[str, str]]
Make = Callable[[Mapping[str, Any]], tuple[dict[str, Any], Turns]]


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A checked record. `columns` are those of its kind without what is said about the persona."""

    place: Place
    offset: int
    columns: dict[str, Any]
    prompt_sha256: str
    persona: PersonaSpec | None
    language: str
    category: str
    synthetic: bool


Parsed = RecordRow | Refusal


def parse_lines(
    stream: BinaryIO, make: Make, keys: tuple[str, ...], *, limits: Limits, skip: int = 0
) -> Iterator[Parsed]:
    """Rows and refusals in file order, the first `skip` left out."""
    for item in json_lines(stream, limit=limits.item, skip=skip):
        try:
            yield _row(item, make, keys, limits)
        except RowError as bad:
            yield Refusal.at(item.place, bad, item.offset)


def _row(item: Item, make: Make, keys: tuple[str, ...], limits: Limits) -> RecordRow:
    if item.bad is not None:
        raise item.bad
    line = fields.mapping(item.value, "")
    fields.known_keys(line, "", (*keys, *ABOUT))
    columns, prompt = make(line)
    if "task" in keys and (wanted := task(line.get("task"))):
        columns["task"] = wanted
    return RecordRow(
        place=item.place,
        offset=item.offset,
        columns=columns,
        prompt_sha256=prompt_hash(prompt),
        persona=persona(line.get("persona"), limits),
        language=fields.optional_text(line, "language", "language", limit=16),
        category=fields.optional_text(line, "category", "category", limit=64),
        synthetic=fields.flag(line.get("synthetic", False), "synthetic"),
    )


def messages(turns: tuple[tuple[str, str], ...]) -> Turns:
    return [{"role": role, "content": content} for role, content in turns]


def said(text: str) -> Turns:
    return [{"role": "assistant", "content": text}]
