"""Our pairs as a flat table for spreadsheets: the content of `palate_pairs`, one pair a row. Pure.

Columns, all texts; an empty cell is a missing value:

    prompt                  a single user turn as it is
    prompt_turns            any other conversation, as JSON (then `prompt` is empty)
    persona_pseudonym, persona_summary; persona_features as JSON
    first, first_producer, second, second_producer
    category, language, kind, synthetic (true), state, source
    details, labels, decisions       as JSON

A cell that a spreadsheet would run as a formula gets an apostrophe in front (`neutralise`), and the
import takes exactly that one away again (`restore`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from annotation.formats.taking import json_cell
from webapp.catalog.formats.rows import RowError

COLUMNS = (
    "prompt",
    "prompt_turns",
    "persona_pseudonym",
    "persona_summary",
    "persona_features",
    "first",
    "first_producer",
    "second",
    "second_producer",
    "category",
    "language",
    "kind",
    "synthetic",
    "state",
    "source",
    "details",
    "labels",
    "decisions",
)
PLAIN = ("category", "language", "kind", "state", "source")
AS_JSON = ("details", "labels", "decisions")
# "=1+1" and its like, also with apostrophes before it: adding one can always be undone.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def neutralise(cell: str) -> str:
    """The cell with an apostrophe in front if a spreadsheet could take it for a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def restore(cell: str) -> str:
    """The cell that `neutralise` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def to_cells(record: Mapping[str, Any]) -> list[str]:
    """A record of `palate_pairs` as a row of `COLUMNS`, neutralised."""
    persona = record.get("persona") or {}
    turns = isinstance(record["prompt"], list)
    cells = {
        "prompt": "" if turns else record["prompt"],
        "prompt_turns": _json(record["prompt"]) if turns else "",
        "persona_pseudonym": persona.get("pseudonym", ""),
        "persona_summary": persona.get("summary", ""),
        "persona_features": _json(persona.get("features")),
        "synthetic": "true" if record.get("synthetic") else "",
        **{name: record.get(name) or "" for name in PLAIN},
        **{name: _json(record.get(name)) for name in AS_JSON},
    }
    for name in ("first", "second"):
        side = record[name] if isinstance(record[name], Mapping) else {"text": record[name]}
        cells[name], cells[f"{name}_producer"] = side["text"], side.get("producer", "")
    return [neutralise(str(cells[name])) for name in COLUMNS]


def from_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """The record of `palate_pairs` that a row says. Raises RowError naming the column."""
    unknown = [name for name in row if name not in COLUMNS]
    if unknown:
        raise RowError("unknown_field", unknown[0][:80], allowed=", ".join(COLUMNS))
    cells = {name: restore(value) for name, value in row.items() if isinstance(value, str)}
    record: dict[str, Any] = {name: cells[name] for name in PLAIN if cells.get(name)}
    if cells.get("prompt_turns"):
        record["prompt"] = json_cell(cells["prompt_turns"], "prompt_turns")
    elif "prompt" in cells:
        record["prompt"] = cells["prompt"]
    for name in ("first", "second"):
        if name in cells:
            record[name] = {"text": cells[name]}
            if cells.get(f"{name}_producer"):
                record[name]["producer"] = cells[f"{name}_producer"]
    record |= {name: json_cell(cells[name], name) for name in AS_JSON if cells.get(name)}
    if cells.get("synthetic"):
        record["synthetic"] = _truth(cells["synthetic"])
    persona = _persona(cells)
    return {**record, "persona": persona} if persona else record


def _persona(cells: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("pseudonym", "summary"):
        if cells.get(f"persona_{name}"):
            found[name] = cells[f"persona_{name}"]
    if cells.get("persona_features"):
        found["features"] = json_cell(cells["persona_features"], "persona_features")
    return found


def _truth(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise RowError("choice", "synthetic", found=value[:40], allowed="true, false")
    return value.lower() == "true"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
