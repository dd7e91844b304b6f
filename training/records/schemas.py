"""Arguments of a tool against its JSON schema: required names, types, choices. Pure.

The part of JSON schema that tool declarations use; keywords beyond it are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webapp.catalog.formats import fields
from webapp.catalog.formats.rows import RowError

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def check_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any], field: str) -> None:
    """Raise RowError naming the argument that does not fit."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if name not in arguments:
            raise RowError("argument_missing", field, name=str(name)[:60])
    for name, value in arguments.items():
        where = f"{field}.{name}"[:80]
        if name in properties and isinstance(properties[name], dict):
            _check_value(value, properties[name], where)
        elif schema.get("additionalProperties") is False:
            raise RowError("unknown_field", where, allowed=", ".join(map(str, properties)))


def _check_value(value: Any, schema: Mapping[str, Any], field: str) -> None:
    wanted = schema.get("type")
    names = wanted if isinstance(wanted, list) else [wanted] if isinstance(wanted, str) else []
    if names and not any(_is(value, name) for name in names):
        raise RowError("type", field, found=fields.kind(value), wanted=" / ".join(map(str, names)))
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        allowed = ", ".join(map(str, choices))[:200]
        raise RowError("choice", field, found=str(value)[:40], allowed=allowed)
    if isinstance(value, dict):
        check_arguments(value, schema, field)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        for n, entry in enumerate(value):
            _check_value(entry, items, f"{field}[{n}]"[:80])


def _is(value: Any, name: str) -> bool:
    """Whether a value has a JSON type; unknown names fit everything, true is no number."""
    if name not in TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[name])
