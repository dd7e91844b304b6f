"""Columns of the written files and their types; never null, so that none can be typed null. Pure.

A kind is "string", "int64", "float64", "bool", "messages" (list of {role, content}) or "labels"
(list of LABEL). `tools/check_trl.py` knows the same words as features of `datasets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MESSAGE = {"role": "string", "content": "string"}
# One label behind a row, seen from the row's chosen answer (or its completion).
LABEL = {
    "annotator": "string",
    "verdict": "string",  # chosen, rejected, tie, both_bad
    "left": "bool",  # it stood left
    "at": "string",
    "guideline": "int64",
    "strength": "int64",  # 0: not asked
    "late": "bool",
}
STRUCTS = {"messages": MESSAGE, "labels": LABEL}
Columns = Mapping[str, str]


def arrow_schema(columns: Columns) -> Any:
    """The schema of pyarrow."""
    import pyarrow as pa

    plain = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
    }

    def of(kind: str) -> Any:
        if kind in plain:
            return plain[kind]
        return pa.list_(pa.struct([(name, plain[k]) for name, k in STRUCTS[kind].items()]))

    return pa.schema([(name, of(kind)) for name, kind in columns.items()])


def described(columns: Columns) -> dict[str, str]:
    """The columns in words for the page."""
    words = {
        kind: "list of {" + ", ".join(f"{n}: {k}" for n, k in fields.items()) + "}"
        for kind, fields in STRUCTS.items()
    }
    return {name: words.get(kind, kind) for name, kind in columns.items()}
