"""Taking typed fields out of decoded JSON. Every refusal names the field and what was found."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from webapp.catalog.formats.rows import RowError
from webapp.catalog.texts import canonical_json, is_blank

DRAW_LIMIT = 1_000_000
ROLES = ("system", "user", "assistant")
FINISH_REASONS = ("stop", "length", "")


def kind(value: Any) -> str:
    """The JSON type of a value, with the value where it is short and no text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"number {str(value)[:20]}"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"


def mapping(value: Any, field: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RowError("type", field, found=kind(value), wanted="object")
    return value


def known_keys(value: Mapping[str, Any], field: str, allowed: Collection[str]) -> None:
    for name in value:
        if name not in allowed:
            where = f"{field}.{name}" if field else name
            raise RowError("unknown_field", where[:80], allowed=", ".join(allowed))


def text(value: Any, field: str, *, limit: int = 0) -> str:
    """A text that is not blank."""
    if not isinstance(value, str):
        raise RowError("type", field, found=kind(value), wanted="text")
    if is_blank(value):
        raise RowError("empty", field)
    if limit and len(value) > limit:
        raise RowError("long", field, count=len(value), limit=limit)
    return value


def optional_text(source: Mapping[str, Any], name: str, field: str, *, limit: int = 0) -> str:
    """A text; "" where it is missing, null or empty."""
    value = source.get(name)
    if value is None or value == "":
        return ""
    return text(value, field, limit=limit).strip()


def required(source: Mapping[str, Any], name: str, field: str = "") -> Any:
    if name not in source:
        raise RowError("missing", field or name)
    return source[name]


def draw(value: Any, field: str = "draw") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise RowError("type", field, found=kind(value), wanted="whole number")
    if not 0 <= value < DRAW_LIMIT:
        raise RowError("range", field, found=str(value)[:20], low=0, high=DRAW_LIMIT - 1)
    return value


def flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise RowError("type", field, found=kind(value), wanted="true or false")
    return value


def choice(value: Any, field: str, allowed: Collection[str]) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowError("type", field, found=kind(value), wanted="text")
    if value not in allowed:
        names = ", ".join(name for name in allowed if name)
        raise RowError("choice", field, found=value[:40], allowed=names)
    return value


def settings_json(value: Any, field: str) -> str:
    """Sampling settings as canonical JSON, so that equal settings are equal texts."""
    return canonical_json(mapping(value, field))


def conversation(value: Any, field: str = "prompt") -> tuple[tuple[str, str], ...]:
    """A text (one turn of the user) or a list of turns whose last one is the user's."""
    if isinstance(value, str):
        return (("user", text(value, field)),)
    if not isinstance(value, list):
        raise RowError("type", field, found=kind(value), wanted="text or list of turns")
    if not value:
        raise RowError("empty", field)
    turns = tuple(_turn(entry, f"{field}[{n}]") for n, entry in enumerate(value))
    if turns[-1][0] != "user":
        raise RowError("last_turn", field, found=turns[-1][0])
    return turns


def _turn(value: Any, field: str) -> tuple[str, str]:
    turn = mapping(value, field)
    known_keys(turn, field, ("role", "content"))
    role = choice(required(turn, "role", f"{field}.role"), f"{field}.role", ROLES)
    if not role:
        raise RowError("empty", f"{field}.role")
    return role, text(required(turn, "content", f"{field}.content"), f"{field}.content")
