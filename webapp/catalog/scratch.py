"""What an import remembers of the rows before, on disk and in flat memory."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType


class Scratch:
    """A map from keys to the first value said for each. Deleted when the work ends."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = MEMORY")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE said (key BLOB PRIMARY KEY, value) WITHOUT ROWID")

    @contextmanager
    def step(self) -> Iterator[None]:
        """What is noted inside is forgotten where it raises: the batch is tried again."""
        self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def count(self, *key: object) -> int:
        """How often this key was counted before; now once more."""
        statement = (
            "INSERT INTO said VALUES (?, 1) "
            "ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value"
        )
        return int(self._db.execute(statement, [_hash(key)]).fetchone()[0]) - 1

    def is_new(self, *key: object, value: str) -> bool:
        """Whether nothing was said for this key before; then this value is."""
        added = self._db.execute("INSERT OR IGNORE INTO said VALUES (?, ?)", [_hash(key), value])
        return added.rowcount == 1

    def first_said(self, *key: object, value: str) -> str:
        """The value that was said first for this key: the given one if there was none."""
        row = self._db.execute("SELECT value FROM said WHERE key = ?", [_hash(key)]).fetchone()
        if row is not None:
            return str(row[0])
        self.is_new(*key, value=value)
        return value

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)


def _hash(key: tuple[object, ...]) -> bytes:
    return hashlib.sha256(repr(key).encode()).digest()
