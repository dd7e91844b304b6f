"""Database triggers that a raw UPDATE meets too, as migration operations for both databases.

`append_only("arena_vote")` refuses UPDATE, DELETE and TRUNCATE. `Guard(...)` refuses a change while
a condition on OLD and NEW holds.

A later migration that alters a guarded table must set its guards again: SQLite rebuilds the table
and forgets its triggers. `tests/test_architecture.py` finds what is missing.
"""

from __future__ import annotations

from typing import Any

from django.db.migrations.operations.base import Operation


class Guard(Operation):
    """Refuse `event` (INSERT, UPDATE, DELETE, TRUNCATE) on `table` where the SQL `condition` holds.

    TRUNCATE has no condition and no SQLite counterpart. A condition may name OLD and NEW and hold
    subqueries; it must be valid in SQLite and PostgreSQL.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(
        self, name: str, table: str, event: str, message: str, condition: str = "1=1"
    ) -> None:
        self.name, self.table, self.event = name, table, event
        self.message, self.condition = message, condition

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        args = [self.name, self.table, self.event, self.message, self.condition]
        return self.__class__.__qualname__, args, {}

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Triggers are no part of Django's model state."""

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        for statement in self._create(schema_editor.connection.vendor):
            schema_editor.execute(statement, params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP FUNCTION {self.name}() CASCADE", params=None)
        elif self.event != "TRUNCATE":
            schema_editor.execute(f"DROP TRIGGER {self.name}", params=None)

    def describe(self) -> str:
        return f"Guard {self.event} on {self.table}: {self.message}"

    def _create(self, vendor: str) -> list[str]:
        if self.event == "TRUNCATE":
            return self._create_truncate() if vendor == "postgresql" else []
        if vendor == "postgresql":
            row = "OLD" if self.event == "DELETE" else "NEW"
            return [
                f"CREATE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                f"IF {self.condition} THEN RAISE EXCEPTION '{self.message}' "
                f"USING ERRCODE = 'integrity_constraint_violation'; END IF; "
                f"RETURN {row}; END $$",
                f"CREATE TRIGGER {self.name} BEFORE {self.event} ON {self.table} "
                f"FOR EACH ROW EXECUTE FUNCTION {self.name}()",
            ]
        return [
            f"CREATE TRIGGER {self.name} BEFORE {self.event} ON {self.table} FOR EACH ROW "
            f"WHEN {self.condition} BEGIN SELECT RAISE(ABORT, '{self.message}'); END"
        ]

    def _create_truncate(self) -> list[str]:
        return [
            f"CREATE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"RAISE EXCEPTION '{self.message}' "
            f"USING ERRCODE = 'integrity_constraint_violation'; END $$",
            f"CREATE TRIGGER {self.name} BEFORE TRUNCATE ON {self.table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {self.name}()",
        ]


def never_emptied(table: str) -> Guard:
    """Row triggers do not see TRUNCATE; this one does."""
    message = f"{table} is never emptied"
    return Guard(f"{table}_no_truncate", table, "TRUNCATE", message)


def append_only(table: str) -> list[Operation]:
    """Rows of `table` can be neither changed nor deleted, nor the whole table emptied."""
    message = f"{table} is append-only"
    return [
        Guard(f"{table}_no_update", table, "UPDATE", message),
        Guard(f"{table}_no_delete", table, "DELETE", message),
        never_emptied(table),
    ]
