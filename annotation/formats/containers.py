"""Files as records, whatever they are: JSON Lines, a JSON list, CSV, Parquet; gzip around it. Pure.

Every container gives `Item`s in file order, one at a time, with line and column (or number) of each
record, and says what was bad about those that could not be read.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO

from annotation.formats.bounds import (
    Measured,
    check_parquet,
    text_columns,
    too_large,
    unpacked_bytes,
)
from webapp.catalog.formats.reading import (
    Item,
    JsonReader,
    check_storable,
    decode,
    json_lines,
    list_items,
)
from webapp.catalog.formats.rows import FormatError, Limits, Place, RowError
from webapp.catalog.texts import unstorable

DELIMITERS = ",;\t"
PARQUET_ROWS = 64  # rows decoded at once
COLUMNS_LIMIT = 500
DAMAGED = (EOFError, OSError, zipfile.BadZipFile, zlib.error)
REFUSED_KEYS = {"file", "code", "reason", "row"}  # of a line in a file of refused rows


class Container(StrEnum):
    LINES = "JSON Lines"
    LIST = "JSON"
    CSV = "CSV"
    PARQUET = "Parquet"


@dataclass(frozen=True)
class Records:
    """The records of a file. `columns`: the header of a table; `survey`: opens PRISM's people."""

    container: Container
    items: Iterator[Item]
    columns: tuple[str, ...] = ()
    survey: Callable[[], BinaryIO] | None = None


def open_records(stream: BinaryIO, limits: Limits) -> Records:
    """Begin to read. Raises FormatError where the file as a whole cannot be read."""
    head = stream.read(4)
    stream.seek(0)
    if head.startswith(b"\x1f\x8b"):
        inner: Any = io.BufferedReader(Measured(gzip.GzipFile(fileobj=stream), limits.unpacked))
        return _guarded(_opened(inner, limits, stream.tell), None)
    if head == b"PK\x03\x04":
        inner, survey = _zip_member(stream, limits)
        return _guarded(_opened(inner, limits, stream.tell), survey)
    return _opened(stream, limits, stream.tell)


def _opened(stream: Any, limits: Limits, tell: Callable[[], int]) -> Records:
    try:
        head = bytes(stream.peek(4096)[:4096])
    except DAMAGED as error:
        raise FormatError("packed") from error
    container = container_of(head)
    if container is Container.PARQUET:
        return _parquet(stream, limits)
    if container is Container.CSV:
        return _csv(stream, limits, tell)
    if container is Container.LIST:
        items = list_items(JsonReader(stream, limit=limits.item))
    else:
        items = json_lines(stream, limit=limits.item)
    return Records(container, map(unwrapped, items))


def _zip_member(stream: BinaryIO, limits: Limits) -> tuple[Any, Callable[[], BinaryIO] | None]:
    """The only file of an archive, or the utterances of PRISM beside its survey."""
    try:
        archive = zipfile.ZipFile(stream)
        names = [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
        if "xl/workbook.xml" in names:
            raise FormatError("excel")
        surveys = [name for name in names if name.endswith("survey.jsonl")]
        answers = [name for name in names if name.endswith("utterances.jsonl")] or names
        if len(answers) != 1:
            raise FormatError("zip_names", names=", ".join(names)[:200])
        survey = (lambda: _member(archive, surveys[0], limits)) if surveys else None
        return _member(archive, answers[0], limits), survey
    except (*DAMAGED, RuntimeError) as error:  # RuntimeError: a password is wanted
        raise FormatError("packed") from error


def _member(archive: zipfile.ZipFile, name: str, limits: Limits) -> BinaryIO:
    if archive.getinfo(name).file_size > limits.unpacked:
        raise too_large(limits.unpacked)
    return io.BufferedReader(Measured(archive.open(name), limits.unpacked))


def _guarded(records: Records, survey: Callable[[], BinaryIO] | None) -> Records:
    """The same, with a plain word where the archive turns out to be damaged."""

    def items() -> Iterator[Item]:
        try:
            yield from records.items
        except DAMAGED as error:
            raise FormatError("packed") from error

    return dataclasses.replace(records, items=items(), survey=survey)


def container_of(head: bytes) -> Container:
    """What the first bytes of a file are. Raises FormatError where nothing can be made of them."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FormatError("utf16")
    if head.startswith(b"PAR1"):
        return Container.PARQUET
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise FormatError("excel")
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if not text:
        raise FormatError("empty")
    if text.startswith(b"["):
        return Container.LIST
    return Container.LINES if text.startswith(b"{") else Container.CSV


# Rows that came back


def unwrapped(item: Item) -> Item:
    """The record itself where a file of refused rows is sent in again, repaired."""
    value = item.value
    if item.bad or not isinstance(value, dict) or not set(value) >= REFUSED_KEYS:
        return item
    row = value["row"]
    if isinstance(row, str):  # a line that was no JSON
        return decode(row, item.place, item.offset)
    return Item(item.place, item.offset, value=row)


# CSV


def _csv(stream: BinaryIO, limits: Limits, tell: Callable[[], int]) -> Records:
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    lines = _Lines(text, limits.item)
    header = lines.peek()
    delimiter = max(DELIMITERS, key=header.count)
    csv.field_size_limit(limits.item)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        names = tuple(name.strip() for name in next(reader))
    except (csv.Error, RowError) as error:
        raise FormatError("csv_header") from error
    _check_header(names)
    return Records(Container.CSV, _csv_items(reader, names, tell), names)


def _check_header(names: tuple[str, ...]) -> None:
    if any(unstorable(name) for name in names):
        raise FormatError("csv_header")
    if len(names) < 2:
        raise FormatError("one_column")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise FormatError("column_twice", name=twice[0][:60])
    if len(names) > COLUMNS_LIMIT:
        raise FormatError("csv_header")


class _Lines:
    """Lines of a text, none longer than `limit`: the reader of CSV would take any."""

    def __init__(self, text: io.TextIOWrapper, limit: int) -> None:
        self._text, self._limit, self._first = text, limit, ""

    def peek(self) -> str:
        self._first = self._text.readline(self._limit)
        return self._first

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line, self._first = self._first or self._text.readline(self._limit), ""
        if not line:
            raise StopIteration
        if len(line) >= self._limit:
            raise RowError("rest_long", limit=self._limit // 1024)
        return line


def _csv_items(reader: Any, names: tuple[str, ...], tell: Callable[[], int]) -> Iterator[Item]:
    while True:
        place = Place(reader.line_num + 1)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad = _csv_error(str(error))
            yield Item(place, tell(), bad=bad)
            if bad.code != "csv":
                return
            continue
        except RowError as bad:
            yield Item(place, tell(), bad=bad)
            return
        if cells:
            yield _csv_item(cells, names, place, tell())


def _csv_error(said: str) -> RowError:
    """A quotation mark that is never closed, or too late, swallows what comes after it."""
    if "limit" in said:
        return RowError("rest_long", limit=csv.field_size_limit() // 1024)
    return RowError("rest_csv" if "unexpected end" in said else "csv")


def _csv_item(cells: list[str], names: tuple[str, ...], place: Place, offset: int) -> Item:
    row: dict[str, Any] = dict(zip(names, cells, strict=False))
    if len(cells) != len(names):
        bad = RowError("cells", found=len(cells), wanted=len(names))
        return Item(place, offset, value=row, bad=bad)
    try:
        for name, cell in row.items():
            if unstorable(cell):
                check_storable(cell, "\n", name)
    except RowError as bad:
        code = "utf8" if bad.code == "surrogate" else bad.code  # a table has no escapes
        found = RowError(code, bad.field, position=bad.params["position"])
        return Item(place, offset, bad=found)
    return Item(place, offset, value=row)


# Parquet


def _parquet(stream: BinaryIO, limits: Limits) -> Records:
    import pyarrow  # the web process never reads such files
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(stream)
        check_parquet(metadata, limits.unpacked)
        texts = text_columns(metadata)
        file = pyarrow.parquet.ParquetFile(stream, metadata=metadata, read_dictionary=texts)
        names = tuple(file.schema_arrow.names)
    except (pyarrow.ArrowException, OSError) as error:
        raise FormatError("parquet") from error
    return Records(Container.PARQUET, _parquet_items(file, stream, limits), names)


def _parquet_items(file: Any, stream: BinaryIO, limits: Limits) -> Iterator[Item]:
    import pyarrow

    left, at_once = limits.unpacked, PARQUET_ROWS * limits.item
    size = stream.seek(0, io.SEEK_END)
    total, n = max(file.metadata.num_rows, 1), 0
    batches = file.iter_batches(batch_size=PARQUET_ROWS, use_threads=False)
    while True:
        try:
            batch = next(batches)
            unpacked = sum(map(unpacked_bytes, batch.columns))
            left -= unpacked
            if unpacked > at_once or left < 0:
                raise too_large(at_once if left >= 0 else limits.unpacked)
            rows = batch.to_pylist()
        except StopIteration:
            return
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            place = Place(0, 1, n + 1)
            yield Item(place, size, bad=RowError("rest_parquet", detail=type(error).__name__))
            return
        for row in rows:
            n += 1
            yield _parquet_item(row, Place(0, 1, n), size * n // total)


def _parquet_item(row: dict[str, Any], place: Place, offset: int) -> Item:
    try:
        value = _plain(row, "")
        check_storable(value, "\n")
    except RowError as bad:
        bad.column = 0
        return Item(place, offset, bad=bad)
    return Item(place, offset, value=value)


def _plain(value: Any, path: str) -> Any:
    """The value with JSON's types only; times and decimals become texts."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dict):
        return {str(k): _plain(v, f"{path}.{k}" if path else str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(entry, f"{path}[{n}]") for n, entry in enumerate(value)]
    if isinstance(value, bytes):
        raise RowError("type", path, found="bytes", wanted="text")
    return str(value)
