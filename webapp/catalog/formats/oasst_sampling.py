"""Open-Assistant's sampling reports: one model, prompts, several outputs per configuration.

`{"model_name", "prompts": [{"prompt", "results": [{"sampling_config", "sampling_params",
"outputs"}]}]}`. A model with a configuration is a contestant; the first output is draw 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item, JsonReader, list_items, strict_value
from webapp.catalog.formats.rows import (
    ContestantSpec,
    FormatError,
    Limits,
    Parsed,
    Place,
    Refusal,
    Row,
    RowError,
)


def parse(stream: BinaryIO, *, limits: Limits, skip: int = 0) -> Iterator[Parsed]:
    model = _model_name(stream, limits)
    stream.seek(0)
    reader = JsonReader(stream, limit=limits.item)
    _open_prompts(reader)
    for n, parsed in enumerate(_parsed(reader, model)):
        if n >= skip:
            yield parsed


def _model_name(stream: BinaryIO, limits: Limits) -> str:
    """The name usually stands first; if not, the whole file is walked through once for it."""
    reader = JsonReader(stream, limit=limits.item)
    try:
        for name in _keys(reader):
            if name == "model_name":
                value, bad = strict_value(reader)
                if bad:
                    raise bad
                return fields.text(value, "model_name", limit=120).strip()
            if name == "prompts":
                for _item in list_items(reader):
                    pass
            else:
                strict_value(reader)
    except RowError as bad:
        raise _format_error(bad, reader.place) from bad
    raise FormatError("no_key", name="model_name")


def _open_prompts(reader: JsonReader) -> None:
    try:
        for name in _keys(reader):
            if name == "prompts":
                if reader.peek() == "[":
                    return
                raise FormatError("no_key", name="prompts")
            strict_value(reader)
    except RowError as bad:
        raise _format_error(bad, reader.place) from bad
    raise FormatError("no_key", name="prompts")


def _format_error(bad: RowError, place: Place) -> FormatError:
    detail = bad.params.get("detail") or bad.code
    return FormatError("json", line=place.line, column=place.column, detail=detail)


def _keys(reader: JsonReader) -> Iterator[str]:
    """The keys of the outer object; the caller reads each value."""
    reader.take("{")
    while reader.peek() != "}":
        name, bad = strict_value(reader)
        if bad or not isinstance(name, str):
            raise bad or RowError("json", detail="Expecting a key")
        reader.take(":")
        yield name
        if reader.peek() == ",":
            reader.take(",")


def _parsed(reader: JsonReader, model: str) -> Iterator[Parsed]:
    for item in list_items(reader):
        if item.bad is not None:
            yield Refusal.at(item.place, item.bad, item.offset)
            continue
        try:
            source = fields.mapping(item.value, "")
            question = fields.conversation(fields.required(source, "prompt"))
            results = _listed(fields.required(source, "results"), "results")
        except RowError as bad:
            yield Refusal.at(item.place, bad, item.offset)
            continue
        for n, result in enumerate(results):
            yield from _result(item, question, model, result, f"results[{n}]")


def _listed(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise RowError("type", field, found=fields.kind(value), wanted="list")
    return value


def _result(
    item: Item, question: tuple[tuple[str, str], ...], model: str, value: Any, field: str
) -> Iterator[Parsed]:
    try:
        source = fields.mapping(value, field)
        config = f"{field}.sampling_config"
        version = fields.text(fields.required(source, "sampling_config", config), config, limit=64)
        params = source.get("sampling_params") or {}
        spec = ContestantSpec(
            name=model,
            version=version.strip(),
            vendor=model.split("/")[0][:64] if "/" in model else None,
            sampling=fields.settings_json(params, f"{field}.sampling_params"),
        )
        name = f"{field}.outputs"
        outputs = _listed(fields.required(source, "outputs", name), name)
    except RowError as bad:
        yield Refusal.at(item.place, bad, item.offset)
        return
    for n, output in enumerate(outputs):
        try:
            answer = fields.text(output, f"{field}.outputs[{n}]")
        except RowError as bad:
            yield Refusal.at(item.place, bad, item.offset)
        else:
            yield Row(item.place, item.offset, None, question, spec, answer, draw=n)
