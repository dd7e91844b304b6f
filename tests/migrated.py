"""Empty tables on SQLite that were migrated once: migrating takes longer than most test files.

The file is made anew whenever a migration, a model or Django changes. The migrations themselves are
tried by the tests on PostgreSQL and by those of operations.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("*/migrations/*.py", "*/*/migrations/*.py", "*/models.py", "*/models/*.py",
           "*/*/models.py", "*/*/models/*.py", "webapp/core/triggers.py")  # fmt: skip
NAME = "palate.sqlite3"


def migrated(cache: Path) -> Path:
    """The file, below `cache`; of several processes one makes it and the others wait."""
    place = cache / f"{_key()}.sqlite3"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _migrate(cache / "home")
            copy(cache / "home" / NAME, cache / "new")
            (cache / "new").replace(place)
    return place


def copy(source: Path, target: Path) -> None:
    """The database as it is now, whatever its journal still holds."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def _key() -> str:
    found = hashlib.sha256(django.__version__.encode())
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        found.update(f"\n{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def _migrate(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / NAME).unlink(missing_ok=True)
    asked = {"PALATE_HOME": str(home), "SECRET_KEY": "only-for-tests"}
    asked["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    command = [sys.executable, "manage.py", "migrate", "-v0"]
    subprocess.run(command, cwd=ROOT, env={**inherited, **asked}, check=True)
