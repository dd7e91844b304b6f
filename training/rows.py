"""The rows of each kind: their columns, types and canonical text. Pure.

Columns are never null, so that no reader types one as null. Types are "string", "int64",
"float64", "bool", "messages" (list of {role, content}) and "trace" (messages with tool calls).
A row is stored as canonical JSON of its own columns and named by the SHA-256 of that text; an
export adds `id` (that hash) and `stratum`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webapp.catalog.texts import canonical_json, sha256

FORMAT = 1  # count up when the same content comes to be written otherwise
ABOUT = {
    "persona": "string",  # the summary; "" for none
    "persona_id": "string",  # the pseudonym
    "language": "string",
    "category": "string",
    "source": "string",  # annotation, arena, import
    "synthetic": "bool",  # a program wrote part of it
}
PAIR = {
    "prompt": "messages",
    "chosen": "messages",
    "rejected": "messages",
    "axis": "string",
    "decided": "string",  # unanimous, majority, adjudicated, synthetic; votes
    "posterior": "float64",  # of the verdict
    "judgements": "int64",  # labels or votes
    "agreeing": "int64",  # of them, for the chosen answer
    "owner_votes": "int64",  # of them, by the person behind the persona
    "weight": "float64",  # share for the chosen answer − share for the other one
    "raters": "string",  # pseudonyms of who voted, with commas; "" where annotators judged
    "simulated": "bool",  # a program judged
    "pair": "string",  # shared by the two directions of a counterfactual
}
COLUMNS: dict[str, dict[str, str]] = {
    "instructions": {"prompt": "messages", "completion": "messages", **ABOUT},
    "tool_traces": {"messages": "trace", "tools": "string", **ABOUT},
    "preferences": {**PAIR, **ABOUT},
    "counterfactuals": {**PAIR, **ABOUT},
    "counterexamples": {
        "prompt": "messages",
        "completion": "messages",  # the bad answer
        "label": "bool",  # always false: TRL's unpaired format
        "reason": "string",
        "better": "messages",  # what would have been right; may be empty
        **ABOUT,
    },
}
# What a row may have besides, never empty: a row without it is written as it always was.
OPTIONAL: dict[str, tuple[str, ...]] = {
    "instructions": ("task",),  # canonical JSON: what rules check, see `training.records.tasks`
    "counterexamples": ("task",),
}


def columns(kind: str) -> dict[str, str]:
    """The columns of the exported files of a kind."""
    more = dict.fromkeys(OPTIONAL.get(kind, ()), "string")
    return {"id": "string", **COLUMNS[kind], **more, "stratum": "string"}


NEWER = ("weight", "raters", "task")  # rows that were frozen before have none of them


def columns_of(kind: str, row: Mapping[str, Any]) -> dict[str, str]:
    """The columns of a frozen set that holds such a row: it stays as it was frozen (V10)."""
    known = columns(kind)
    return {n: of for n, of in known.items() if n not in NEWER or n in row}


def text_of(kind: str, row: Mapping[str, Any]) -> tuple[str, str]:
    """The canonical text of a row and its hash. Raises KeyError where a column lacks."""
    more = [name for name in OPTIONAL.get(kind, ()) if row.get(name)]
    line = canonical_json({name: row[name] for name in (*COLUMNS[kind], *more)})
    return line, digest_of(kind, line)


def digest_of(kind: str, line: str) -> str:
    """The hash by which a row is named."""
    return sha256(f"{FORMAT}\n{kind}\n{line}")


def said(text: str) -> list[dict[str, str]]:
    """One turn of the assistant."""
    return [{"role": "assistant", "content": text}]


def spoken(messages: Sequence[Mapping[str, Any]]) -> str:
    """The contents of turns as one text, for lengths and style."""
    return "\n".join(str(turn["content"]) for turn in messages if turn["content"])


def arrow_schema(kind: str, row: Mapping[str, Any] | None = None) -> Any:
    """The schema of pyarrow: explicit, so that empty columns keep their types.

    With a row, the columns of a frozen set that holds it.
    """
    import pyarrow as pa

    plain = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
    }
    function = pa.struct([("name", pa.string()), ("arguments", pa.string())])
    call = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", function)])
    message = [("role", pa.string()), ("content", pa.string())]
    lists = {
        "messages": pa.list_(pa.struct(message)),
        "trace": pa.list_(
            pa.struct(
                [
                    *message,
                    ("name", pa.string()),
                    ("tool_call_id", pa.string()),
                    ("tool_calls", pa.list_(call)),
                ]
            )
        ),
    }
    types = {**plain, **lists}
    names = columns(kind) if row is None else columns_of(kind, row)
    return pa.schema([(name, types[of]) for name, of in names.items()])
