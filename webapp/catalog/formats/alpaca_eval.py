"""AlpacaEval's model outputs: one JSON list of {instruction, output, generator}."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item, JsonReader, each, list_items
from webapp.catalog.formats.rows import ContestantSpec, Limits, Parsed, Row


def parse(stream: BinaryIO, *, limits: Limits, skip: int = 0) -> Iterator[Parsed]:
    reader = JsonReader(stream, limit=limits.item)
    for n, parsed in enumerate(each(list_items(reader), _rows)):
        if n >= skip:
            yield parsed


def _rows(item: Item) -> Iterator[Row]:
    """Other keys of the item are left alone; an old file's `input` follows the instruction."""
    source = fields.mapping(item.value, "")
    question = fields.text(fields.required(source, "instruction"), "instruction")
    extra = fields.optional_text(source, "input", "input")
    name = fields.text(fields.required(source, "generator"), "generator", limit=120).strip()
    yield Row(
        place=item.place,
        offset=item.offset,
        persona=None,
        messages=(("user", f"{question}\n\n{extra}" if extra else question),),
        contestant=ContestantSpec(name=name),
        answer=fields.text(fields.required(source, "output"), "output"),
        category=fields.optional_text(source, "dataset", "dataset", limit=64),
    )
