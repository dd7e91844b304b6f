"""Reading JSON Lines and large JSON lists piece by piece, with line and column of every trouble.

The standard decoder is used on one value at a time. (The yajl behind ijson turns a lone surrogate
into "?" without a word and knows no positions.)
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from webapp.catalog.formats.rows import Parsed, Place, Refusal, Row, RowError
from webapp.catalog.texts import unstorable

CHUNK = 256 * 1024
_SPACE = re.compile(r"[ \t\n\r]*")
_ESCAPES = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})(\\u[dD][c-fC-F][0-9a-fA-F]{2})?"
    r"|u([dD][c-fC-F][0-9a-fA-F]{2})|u(0000)|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Item:
    """A decoded value, or what was bad about it and, where it is at hand, the text as it stood.

    `offset`: bytes of the file read so far.
    """

    place: Place
    offset: int
    value: Any = None
    bad: RowError | None = None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RowError("duplicate_key", name=twice[:60].encode("utf-8", "replace").decode())
    return found


def _no_constant(name: str) -> Any:
    raise RowError("number", value=name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise RowError("number", value=digits[:40])
    return number


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
)
_LENIENT = json.JSONDecoder()


def check_storable(value: Any, raw: str, path: str = "") -> None:
    """Refuse NUL, lone surrogates and undecodable bytes anywhere in a value (keys included)."""
    if isinstance(value, str):
        trouble = unstorable(value)
        if trouble:
            code, position = trouble
            if code == "surrogate" and 0xDC80 <= ord(value[position - 1]) <= 0xDCFF:
                code = "utf8" if unstorable(raw) else code
            raise RowError(code, path, column=_column(raw, value[position - 1]), position=position)
    elif isinstance(value, list):
        for n, entry in enumerate(value):
            check_storable(entry, raw, f"{path}[{n}]")
    elif isinstance(value, dict):
        for name, entry in value.items():
            check_storable(name, raw, path)
            check_storable(entry, raw, f"{path}.{name}" if path else name)


def _column(raw: str, character: str) -> int:
    """Column of a bad character in its first line of source; 0 where the source has more lines."""
    at = raw.find(character)
    if at < 0:
        found = (m for m in _ESCAPES.finditer(raw) if (m[1] and not m[2]) or m[3] or m[4])
        match = next(found, None)
        at = match.start() if match else -1
    return 0 if at < 0 or "\n" in raw[:at] else at + 1


def decode(raw: str, place: Place, offset: int) -> Item:
    """One JSON value that fills the whole text."""
    try:
        value = _STRICT.decode(raw)
        if "\\u" in raw:
            check_storable(value, raw)
    except json.JSONDecodeError as error:
        return Item(place, offset, raw, RowError("json", column=error.colno, detail=error.msg))
    except RecursionError:
        return Item(place, offset, raw, RowError("json", detail="nested too deeply"))
    except RowError as bad:
        if bad.code == "number" and not bad.column:
            bad.column = raw.find(bad.params["value"]) + 1
        return Item(place, offset, raw, bad)
    except ValueError:
        return Item(place, offset, raw, RowError("number", value="a huge integer"))
    return Item(place, offset, value=value)


def json_lines(stream: BinaryIO, *, limit: int, skip: int = 0) -> Iterator[Item]:
    """One value a line; blank lines do not count. `skip` leaves out that many non-blank lines."""
    line = offset = 0
    while raw := stream.readline(limit + 1):
        line += 1
        offset += len(raw)
        too_long = len(raw) > limit
        if too_long:
            offset += _finish_line(stream, raw)
        if line == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        raw = raw.rstrip(b"\r\n \t")
        if not raw.strip(b" \t"):
            continue
        if skip:
            skip -= 1
        elif too_long:
            yield Item(Place(line), offset, bad=RowError("line_long", limit=limit // 1024))
        else:
            yield _decode_line(raw, Place(line), offset)


def _finish_line(stream: BinaryIO, raw: bytes) -> int:
    """Bytes skipped up to the end of a line that is too long."""
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(CHUNK)
        skipped += len(raw)
    return skipped


def _decode_line(raw: bytes, place: Place, offset: int) -> Item:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode()) + 1
        value = f"0x{raw[error.start]:02X}"
        return Item(place, offset, bad=RowError("utf8", column=column, value=value))
    at = text.find("\x00")
    if at >= 0:
        return Item(place, offset, bad=RowError("nul", column=at + 1, position=at + 1))
    return decode(text, place, offset)


class JsonReader:
    """Walks through one JSON document; keeps only the value being read in memory."""

    def __init__(self, stream: BinaryIO, *, limit: int) -> None:
        self._stream, self._limit = stream, limit
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text, self._at, self._ended = "", 0, False
        self.line, self.column, self.offset = 1, 1, 0

    @property
    def place(self) -> Place:
        return Place(self.line, self.column)

    def peek(self) -> str:
        """The next character after white space, "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._move(match.end() if match else self._at)
            if self._at < len(self._text) or not self._fill():
                return self._text[self._at : self._at + 1]

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise RowError("json", column=self.column, detail=f"Expecting '{expected}'")
        self._move(self._at + 1)

    def value(self) -> tuple[Any, str]:
        """The next value, decoded without the finer checks, and its source text."""
        self.peek()
        while True:
            try:
                found, end = _LENIENT.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._final(error) or not self._fill():
                    raise self._broken(error) from error
            except (RecursionError, ValueError) as error:
                raise RowError("json", column=self.column, detail="nested too deeply") from error
            else:
                if end < len(self._text) or not self._fill():
                    return self._finish(found, end)
            if len(self._text) - self._at > self._limit + CHUNK:
                raise RowError("line_long", column=self.column, limit=self._limit // 1024)

    def _finish(self, found: Any, end: int) -> tuple[Any, str]:
        raw = self._text[self._at : end]
        self._move(end)
        return found, raw

    def _final(self, error: json.JSONDecodeError) -> bool:
        """More text would not help: the trouble is well before the end of what was read."""
        return not error.msg.startswith("Unterminated") and error.pos < len(self._text) - 64

    def _broken(self, error: json.JSONDecodeError) -> RowError:
        self._move(error.pos)
        return RowError("json", column=self.column, detail=error.msg)

    def _move(self, to: int) -> None:
        breaks = self._text.count("\n", self._at, to)
        if breaks:
            self.line += breaks
            self.column = to - self._text.rfind("\n", self._at, to)
        else:
            self.column += to - self._at
        self._at = to

    def _fill(self) -> bool:
        """Read more (twice as much as is pending, so that long values stay linear)."""
        if self._ended:
            return False
        pending = self._text[self._at :]
        raw = self._stream.read(max(CHUNK, len(pending)))
        self.offset += len(raw)
        self._ended = not raw
        self._text, self._at = pending + self._decoder.decode(raw, final=self._ended), 0
        return True


def strict_value(reader: JsonReader) -> tuple[Any, RowError | None]:
    """The next value, read with all checks.

    A "json" or "line_long" error is raised, because nothing after it can be found.
    """
    found, raw = reader.value()
    try:
        found = _STRICT.decode(raw)
        if "\\u" in raw or "\x00" in raw or unstorable(raw):
            check_storable(found, raw)
    except RowError as bad:
        bad.column = 0  # columns of a part would mislead; the item's own place is kept
        return None, bad
    return found, None


def list_items(reader: JsonReader) -> Iterator[Item]:
    """The items of the list that comes next. A structural error ends it with a `rest` refusal."""
    number = 0
    reader.take("[")
    if reader.peek() == "]":
        reader.take("]")
        return
    while True:
        number += 1
        reader.peek()
        place = Place(reader.line, reader.column, number)
        try:
            value, bad = strict_value(reader)
            yield Item(place, reader.offset, value=value, bad=bad)
            if reader.peek() == "]":
                reader.take("]")
                return
            reader.take(",")
        except RowError as broken:
            where = Place(reader.line, reader.column, number)
            rest = RowError("rest" if broken.code == "json" else "rest_long")
            rest.params = broken.params
            yield Item(where, reader.offset, bad=rest)
            return


def each(items: Iterator[Item], make: Callable[[Item], Iterator[Row]]) -> Iterator[Parsed]:
    """Rows of every item that could be decoded, refusals of the others."""
    for item in items:
        if item.bad is not None:
            yield Refusal.at(item.place, item.bad, item.offset)
            continue
        try:
            yield from make(item)
        except RowError as bad:
            yield Refusal.at(item.place, bad, item.offset)
