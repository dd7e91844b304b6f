"""Fixtures of the whole suite: the cast, and a flush that may pass the guarding triggers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from django.core.cache import cache
from django.db import OperationalError, connection
from django.test import TransactionTestCase

from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.accounts.services import create_user

# The same examples every time, so that what passed passes again. To look for new ones:
# HYPOTHESIS_PROFILE=search
hypothesis.settings.register_profile("steady", derandomize=True)
hypothesis.settings.register_profile("search", derandomize=False)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

PASSWORD = "a-long-enough-passphrase"
SERVERS = ("DATABASE_URL", "REDIS_URL")


def pytest_report_header(config: pytest.Config) -> str:
    kind = "PostgreSQL" if os.environ.get("DATABASE_URL") else "SQLite"
    broker = "Redis" if os.environ.get("REDIS_URL") else "filesystem broker"
    return f"palate: {kind}, {broker}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked postgres need both servers; elsewhere they are skipped, and that is said."""
    if all(os.environ.get(name) for name in SERVERS):
        return
    skip = pytest.mark.skip(reason="needs DATABASE_URL and REDIS_URL (PostgreSQL and Redis)")
    for item in items:
        if "postgres" in item.keywords:
            item.add_marker(skip)


_teardown = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]


def _flush_past_triggers(self: TransactionTestCase) -> None:
    """Flush; on SQLite wait for a last request of the live server to let go of its tables."""
    if connection.vendor != "sqlite":
        _flush_postgresql(self)
        return
    for attempt in range(40):
        try:
            _flush_sqlite(self)
        except OperationalError as error:
            if "locked" not in str(error) or attempt == 39:
                raise
            time.sleep(0.25)
        else:
            return


def _flush_postgresql(self: TransactionTestCase) -> None:
    """PostgreSQL flushes with TRUNCATE, which guarded tables refuse too."""
    query = (
        "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgname LIKE '%no_truncate'"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        guards = cursor.fetchall()
        for table, name in guards:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
    try:
        _teardown(self)
    finally:
        with connection.cursor() as cursor:
            for table, name in guards:
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {name}")


def _flush_sqlite(self: TransactionTestCase) -> None:
    """SQLite flushes with DELETE, which append-only tables refuse: set the triggers aside."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
        for name, _sql in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
    try:
        _teardown(self)
    finally:
        with connection.cursor() as cursor:
            for _name, sql in triggers:
                cursor.execute(sql)


@pytest.fixture(scope="session", autouse=True)
def flush_past_triggers() -> Iterator[None]:
    TransactionTestCase._fixture_teardown = _flush_past_triggers  # type: ignore[attr-defined]
    yield
    TransactionTestCase._fixture_teardown = _teardown  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    cache.clear()


def make_user(name: str, role: str) -> User:
    return create_user(username=name, password=PASSWORD, role=role)


@pytest.fixture
def alice(db: Any) -> User:
    """The administrator who composes rounds."""
    return make_user("alice", Role.ADMIN)


@pytest.fixture
def anna(db: Any) -> User:
    """The second administrator."""
    return make_user("anna", Role.ADMIN)


@pytest.fixture
def bob(db: Any) -> User:
    """A seed user who votes."""
    return make_user("bob", Role.RATER)


@pytest.fixture
def chen(db: Any) -> User:
    """An annotator who also votes."""
    return make_user("chen", Role.ANNOTATOR)


@pytest.fixture
def vera(db: Any) -> User:
    """A viewer."""
    return make_user("vera", Role.VIEWER)
