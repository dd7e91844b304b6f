"""Writing records as they come: JSON Lines, CSV, Parquet; packing several files into one. Pure.

A writer holds one record or one row group at a time, so that memory stays flat.
"""

from __future__ import annotations

import csv
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from annotation.exports.columns import Columns, arrow_schema

GROUP = 1000  # rows of a Parquet row group
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same rows give the same archive


class Writer(Protocol):
    rows: int

    def write(self, record: Mapping[str, Any]) -> None: ...
    def close(self) -> None: ...


def line(record: Any) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": ")) + "\n"


class JsonLines:
    def __init__(self, path: Path) -> None:
        self._out = path.open("w", encoding="utf-8", newline="\n")
        self.rows = 0

    def write(self, record: Mapping[str, Any]) -> None:
        self._out.write(line(record))
        self.rows += 1

    def close(self) -> None:
        _durable(self._out)


class Csv:
    """RFC 4180: commas, quotes where needed, CRLF between records, UTF-8. `cells` makes a row."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        cells: Callable[[Mapping[str, Any]], Sequence[str]],
    ) -> None:
        self._out = path.open("w", encoding="utf-8", newline="")
        self._csv = csv.writer(self._out)
        self._csv.writerow(columns)
        self._cells = cells
        self.rows = 0

    def write(self, record: Mapping[str, Any]) -> None:
        self._csv.writerow(self._cells(record))
        self.rows += 1

    def close(self) -> None:
        _durable(self._out)


class Parquet:
    def __init__(self, path: Path, columns: Columns) -> None:
        import pyarrow.parquet

        self._schema = arrow_schema(columns)
        self._path = path
        self._out = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._held: list[Mapping[str, Any]] = []
        self.rows = 0

    def write(self, record: Mapping[str, Any]) -> None:
        self._held.append(record)
        self.rows += 1
        if len(self._held) >= GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._held:
            self._out.write_table(pa.Table.from_pylist(self._held, schema=self._schema))
            self._held = []

    def close(self) -> None:
        self._flush()
        self._out.close()
        with self._path.open("rb+") as written:
            os.fsync(written.fileno())


def _durable(out: Any) -> None:
    out.flush()
    os.fsync(out.fileno())
    out.close()


class Closing:
    """Closes every writer, whatever happens."""

    def __init__(self, writers: Iterable[Writer]) -> None:
        self._writers = list(writers)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self._writers:
            writer.close()


def pack(files: Mapping[str, Path], target: Path) -> None:
    """Put files into one zip under their names, in order, without times."""
    with zipfile.ZipFile(target, "w") as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            stored = path.suffix in (".parquet", ".arrow")
            entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as out:
                while chunk := source.read(1 << 20):
                    out.write(chunk)
