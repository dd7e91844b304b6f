"""Guards over the whole tree: what every view, task and table must keep to."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.urls import URLPattern, URLResolver, get_resolver

from webapp.core.triggers import Guard

STAND_ALONE = ("verify_bundle.py",)  # one file that a stranger can run
ROOT = Path(__file__).resolve().parent.parent
OURS = ("webapp", "arena", "annotation", "training", "workers")
TORCH = "training.engine.jobs"  # runs in a process of its own; the rest of the engine is torch-free
PUBLIC = {
    "health", "set_language", "schema", "accounts:login", "accounts:accept", "accounts:theme",
    "arena:leaderboard", "arena:leaderboard_csv", "arena:leaderboard_json",
    "arena:leaderboard_svg", "arena:heatmap", "arena:history", "arena:methodology",
    "arena:verify", "arena:bundle", "arena:verify_script", "arena:votes_file",
}  # fmt: skip


def guards() -> Iterator[Guard]:
    loader = MigrationLoader(connection)
    for migration in loader.disk_migrations.values():
        for operation in migration.operations:
            if isinstance(operation, Guard):
                yield operation


@pytest.mark.django_db
def test_every_guard_of_the_migrations_is_in_the_database() -> None:
    """A rebuilt table loses its triggers on SQLite: then a later migration must set them again."""
    query = {
        "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgname, tgrelid::regclass::text FROM pg_trigger",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(query)
        present = set(cursor.fetchall())
    if connection.vendor == "sqlite":
        wanted = {(g.name, g.table) for g in guards() if g.event != "TRUNCATE"}
    else:
        wanted = {(g.name, g.table) for g in guards()}
    missing = wanted - present
    assert not missing


def patterns(resolver: Any = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            name = f"{prefix}{entry.namespace}:" if entry.namespace else prefix
            yield from patterns(entry, name)
        else:
            yield f"{prefix}{entry.name}", entry


def test_every_view_asks_for_a_login_unless_it_is_listed_as_public() -> None:
    open_views = {
        name
        for name, pattern in patterns()
        # API views answer tokens; the test_openapi.py of each domain looks at their permissions.
        if not name.startswith(("admin:", "api:", "annotation-api:"))
        and not getattr(pattern.callback, "login_required", True)
    }
    assert open_views == PUBLIC


def test_every_task_has_a_name_a_queue_and_a_time_limit() -> None:
    ours = [task for name, task in current_app.tasks.items() if name.startswith("workers.")]
    assert ours
    for task in ours:
        assert task.name in current_app.conf.task_routes, task.name
        assert task.time_limit, task.name


def python_files() -> Iterator[Path]:
    for folder in OURS:
        for path in (ROOT / folder).rglob("*.py"):
            if "migrations" not in path.parts:
                yield path


def test_functions_are_small_and_files_are_split_by_noun() -> None:
    long = []
    for path in python_files():
        text = path.read_text()
        if text.count("\n") > (500 if path.name in STAND_ALONE else 420):
            long.append(f"{path.name}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 60:
                    long.append(f"{path.name}:{node.lineno} {node.name}: {length} lines")
    assert not long


def test_every_module_has_a_docstring_where_it_holds_code() -> None:
    missing = [
        str(path.relative_to(ROOT))
        for path in python_files()
        if path.name not in ("__init__.py", "apps.py", "urls.py")
        and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not missing


def test_no_database_error_is_caught_inside_a_transaction() -> None:
    """PostgreSQL refuses everything after an error: catch outside the atomic block."""
    found = []
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.With) and "atomic" in ast.dump(node.items[0]):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Try) and any(
                        "IntegrityError" in ast.dump(h.type) for h in inner.handlers if h.type
                    ):
                        nested = [n for n in ast.walk(inner) if isinstance(n, ast.With)]
                        if not any("atomic" in ast.dump(n.items[0]) for n in nested):
                            found.append(f"{path.name}:{inner.lineno}")
    assert not found


IMPORT_EVERYTHING = """
import importlib, pkgutil, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "trl"):
            raise SystemExit(f"{name} is imported")

sys.meta_path.insert(0, NoTorch())
import django
django.setup()
for name in OURS:
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if not module.name.startswith(TORCH):
            importlib.import_module(module.name)
            print(module.name)
"""


def import_everything(more: str = "") -> subprocess.CompletedProcess[str]:
    code = IMPORT_EVERYTHING.replace("OURS", repr(OURS)).replace("TORCH", repr(TORCH)) + more
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_the_web_process_never_imports_torch() -> None:
    """All modules are imported where torch would end the process; torch need not be installed."""
    done = import_everything()
    assert done.returncode == 0, done.stderr
    seen = set(done.stdout.split())
    assert {"webapp.settings", "arena.views.ballots", "workers.tasks"} <= seen
    assert {"training.engine.monitor.rules", "training.engine.__main__"} <= seen
    caught = import_everything("import torch")
    assert caught.returncode == 1
    assert "torch is imported" in caught.stderr


START = """
import sys, django
django.setup()
from django.urls import get_resolver
get_resolver().url_patterns
sys.exit("scipy.stats" in sys.modules)
"""


def test_web_and_worker_start_without_what_few_requests_need() -> None:
    """scipy.stats takes half a second of every start, in the web process, workers and commands."""
    assert subprocess.run([sys.executable, "-c", START], cwd=ROOT).returncode == 0
