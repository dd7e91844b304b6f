"""How much a packed file may unpack to: a small archive must not fill the machine. Pure."""

from __future__ import annotations

import io
from typing import Any

from webapp.catalog.formats.rows import FormatError

STEP = 1 << 16
VALUE_BYTES = 8  # what the places of the values of a column take, at least


def too_large(limit: int) -> FormatError:
    """`limit` in bytes; told in MB."""
    return FormatError("unpacked", limit=max(limit // (1024 * 1024), 1))


class Measured(io.RawIOBase):
    """The unpacked stream of an archive, which refuses to go on after `limit` bytes."""

    def __init__(self, inner: Any, limit: int) -> None:
        self._inner, self._limit, self._at, self._seen = inner, limit, 0, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._inner.seekable())

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._moved(self._at + len(data))
        return len(data)

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """What was not unpacked yet is unpacked step by step, so that the limit holds here, too."""
        if whence == io.SEEK_CUR:
            offset += self._at
        if whence == io.SEEK_END:
            self._forward(None)
            offset += self._seen
        elif offset > self._seen:
            self._forward(offset)
        self._inner.seek(offset)
        self._at = offset
        return offset

    def _forward(self, to: int | None) -> None:
        self._inner.seek(self._seen)
        self._at = self._seen
        while to is None or self._at < to:
            data = self._inner.read(STEP if to is None else min(STEP, to - self._at))
            if not data:
                return
            self._moved(self._at + len(data))

    def _moved(self, at: int) -> None:
        self._at, self._seen = at, max(self._seen, at)
        if self._seen > self._limit:
            raise too_large(self._limit)


def check_parquet(metadata: Any, limit: int) -> None:
    """Raise where a Parquet file says itself that it unpacks to more than `limit` bytes."""
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    columns = [group.column(n) for group in groups for n in range(group.num_columns)]
    stored = sum(column.total_uncompressed_size for column in columns)
    if max(stored, VALUE_BYTES * sum(column.num_values for column in columns)) > limit:
        raise too_large(limit)


def text_columns(metadata: Any) -> list[str]:
    """Columns of texts. Read as dictionaries, a text that stands a million times is held once, so
    that `unpacked_bytes` can be asked before the rows are made. Parquet's reader does this for
    columns outside of lists and structures only; those within are measured when they are read.
    """
    columns = [metadata.schema.column(n) for n in range(metadata.num_columns)]
    return [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY"
        and column.path == column.name
        and column.logical_type.type in ("STRING", "JSON", "ENUM", "NONE")
    ]


def unpacked_bytes(column: Any) -> int:
    """What a column of a batch takes when every value is written out."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        sizes = pc.take(pc.binary_length(column.dictionary), column.indices)
        return int(pc.sum(pc.cast(sizes, "int64")).as_py() or 0)
    return int(column.nbytes)
