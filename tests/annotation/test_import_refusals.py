"""Every refusal of an import of pairs has its sentence, and the sentence gets what it names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotation import refusals
from webapp.catalog import refusals as of_catalog

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("annotation/formats", "annotation/services")
ROWS = {**of_catalog.ROWS, **refusals.ROWS}
FILES = {**of_catalog.FILES, **refusals.FILES}
WORDED = {"RowError": ROWS, "FormatError": FILES}


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]


def raised() -> Iterator[tuple[str, str, set[str]]]:
    """(class, code, names of parameters) of every refusal in the code."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in WORDED and node.args and isinstance(node.args[0], ast.Constant):
                given = {keyword.arg for keyword in node.keywords if keyword.arg}
                yield node.func.id, str(node.args[0].value), given


@pytest.mark.parametrize("kind", sorted(WORDED))
def test_every_refusal_is_explained_with_what_it_names(kind: str) -> None:
    found = [(code, given) for name, code, given in raised() if name == kind]
    assert len(found) > 10
    for code, given in found:
        assert code in WORDED[kind], code
        said = WORDED[kind][code]
        words = " ".join(map(str, said)) if isinstance(said, tuple) else str(said)
        assert set(re.findall(r"%\((\w+)\)s", words)) <= given | {"detail"}, code


def test_no_sentence_is_left_over() -> None:
    text = "".join(path.read_text() for path in sources())
    for code in [*refusals.ROWS, *refusals.FILES]:
        assert f'"{code}"' in text, code
