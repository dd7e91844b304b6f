"""Fixtures of the whole suite: the cast, and a flush that may pass the guarding triggers."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.core import management
from django.core.cache import cache
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connection, transaction
from django.test import TransactionTestCase

from tests.migrated import migrated
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


@pytest.fixture(scope="session")
def empty_database(request: pytest.FixtureRequest) -> Path:
    """A SQLite file with all tables and no rows."""
    return migrated(request.config.cache.mkdir("migrated"))


@pytest.fixture(scope="session")
def copied_tables(request: pytest.FixtureRequest) -> Iterator[None]:
    """On SQLite the test database gets its tables from a file instead of migrating."""
    if os.environ.get("DATABASE_URL"):
        yield
        return
    place = request.getfixturevalue("empty_database")

    def call(name: str, *args: Any, **options: Any) -> Any:
        if name != "migrate":
            return call_command(name, *args, **options)
        connection.ensure_connection()
        with closing(sqlite3.connect(place)) as source:
            source.backup(connection.connection)
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(management, "call_command", call)
        yield


@pytest.fixture(scope="session")
def django_db_setup(copied_tables: None, django_db_setup: None) -> None:
    """As pytest-django has it, after the tables are at hand."""


KEPT = {"django_content_type", "auth_permission"}  # made by migrating, the same for every test
_teardown = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]


def _empty_tables(self: TransactionTestCase) -> None:
    """Empty the tables that hold rows, past their guards, after a test that commits.

    Django would empty all of them, and make content types and permissions anew each time: by far
    the longest part of a short test.
    """
    with connection.cursor() as cursor, transaction.atomic():
        _empty(cursor)


def _empty(cursor: Any) -> None:
    found = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = sorted(set(found) - KEPT)
    cursor.execute(
        " UNION ALL ".join(
            f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables
        )
    )
    full = [row[0] for row in cursor.fetchall()]
    guards = _set_guards_aside(cursor, full)
    for name in full:
        cursor.execute(f"DELETE FROM {name}")
    if connection.vendor == "postgresql":
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # else tables with checks to come are busy
    for statement in guards:
        cursor.execute(statement)


def _set_guards_aside(cursor: Any, tables: list[str]) -> list[str]:
    """Statements that put the guarding triggers of these tables back."""
    if connection.vendor == "postgresql":
        for name in tables:
            cursor.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        return [f"ALTER TABLE {name} ENABLE TRIGGER USER" for name in tables]
    cursor.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
    triggers = [(name, sql) for name, table, sql in cursor.fetchall() if table in tables]
    for name, _sql in triggers:
        cursor.execute(f"DROP TRIGGER {name}")
    return [sql for _name, sql in triggers]


@pytest.fixture(scope="session", autouse=True)
def flush_past_triggers() -> Iterator[None]:
    TransactionTestCase._fixture_teardown = _empty_tables  # type: ignore[attr-defined]
    yield
    TransactionTestCase._fixture_teardown = _teardown  # type: ignore[attr-defined]


@pytest.fixture
def kept_connection() -> Iterator[None]:
    """A server closes its connection after a request; here it is the test's own."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


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


@pytest.fixture(autouse=True)
def same_luck(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seeds, salts and ids in every run of a test.

    They decide about sides and samples: without this, a test of shares and intervals would fail
    once in some hundred runs, and nobody could see it again.
    """
    luck = random.Random(request.node.nodeid)
    monkeypatch.setattr("secrets.token_bytes", lambda n=None: luck.randbytes(n or 32))
    monkeypatch.setattr("secrets.token_hex", lambda n=None: luck.randbytes(n or 32).hex())


def asks_for_login(response: Any) -> bool:
    """Whether nobody was let in: sent on to the login, or asked for it on the spot."""
    if response.request["REQUEST_METHOD"] == "POST":
        return bool(response.status_code == 401)
    moved: bool = response.status_code == 302
    return moved and str(response["Location"]).startswith("/accounts/login/?next=")
