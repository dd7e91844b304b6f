"""What parsers hand over: rows, refusals, and where in the file each stood.

Pure: no Django. A refusal carries a code and parameters, never a text of an answer; its sentences
are made in `webapp.catalog.refusals`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

ITEM_LIMIT = 4 * 1024 * 1024
UNPACKED_LIMIT = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class Limits:
    """Lengths in characters, except `item` in bytes (lines) or characters (list items), and
    `unpacked`: the bytes that an archive may unpack to.
    """

    summary: int = 100
    item: int = ITEM_LIMIT
    unpacked: int = UNPACKED_LIMIT
    features: tuple[str, ...] = ()
    feature_value: int = 32


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column from 1 (columns count characters); `item` from 1 in list formats."""

    line: int
    column: int = 1
    item: int = 0


class RowError(Exception):
    """One value that cannot be used; becomes a Refusal with its place."""

    def __init__(self, code: str, field: str = "", *, column: int = 0, **params: object) -> None:
        super().__init__(code)
        self.code, self.field, self.column = code, field, column
        self.params = {name: str(value) for name, value in params.items()}


class FormatError(Exception):
    """The file as a whole cannot be read in this format."""

    def __init__(self, code: str, **params: object) -> None:
        super().__init__(code)
        self.code = code
        self.params = {name: str(value) for name, value in params.items()}


@dataclass(frozen=True, slots=True)
class Refusal:
    """`offset`: bytes read when it was found. `row`: what stood there, if it may be given back."""

    place: Place
    code: str
    field: str = ""
    params: dict[str, str] = dataclasses.field(default_factory=dict)
    offset: int = 0
    row: Any = None

    @classmethod
    def at(cls, place: Place, bad: RowError, offset: int, row: Any = None) -> Refusal:
        if bad.column:
            place = Place(place.line, bad.column, place.item)
        return cls(place, bad.code, bad.field, bad.params, offset, row)


@dataclass(frozen=True, slots=True)
class PersonaSpec:
    pseudonym: str
    summary: str
    features: tuple[tuple[str, str], ...] = ()
    consent: str = ""


@dataclass(frozen=True, slots=True)
class ContestantSpec:
    """None: the file does not say. `sampling` is canonical JSON, so that specs compare."""

    name: str
    version: str = ""
    vendor: str | None = None
    system_prompt: str | None = None
    uses_persona: bool | None = None
    sampling: str | None = None

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Row:
    """One answer. `messages` is a tuple of (role, content)."""

    place: Place
    offset: int
    persona: PersonaSpec | None
    messages: tuple[tuple[str, str], ...]
    contestant: ContestantSpec
    answer: str
    draw: int = 0
    category: str = ""
    language: str = ""
    finish_reason: str = ""


Parsed = Row | Refusal


class Parser(Protocol):
    """Rows and refusals in file order, the first `skip` of them left out."""

    def __call__(self, stream: BinaryIO, *, limits: Limits, skip: int = 0) -> Iterator[Parsed]: ...
