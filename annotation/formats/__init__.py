"""Formats of preference pairs: pure parsers, and telling them apart.

Described for users in docs/annotation-formats.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from annotation.formats import (
    arena,
    chosen,
    columns,
    judged,
    oasst,
    palate_csv,
    palate_pairs,
    prism,
)
from annotation.formats.containers import Records
from annotation.formats.each import Format, record_format
from annotation.formats.rows import Options, PairRow
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import FormatError

LOOKED_AT = 20  # records from which a format is told


def _palate_table(item: Item, options: Options) -> Iterator[PairRow]:
    record = palate_csv.from_cells(item.value)
    yield from palate_pairs.pairs(Item(item.place, item.offset, value=record), options)


# The more particular ones first: some files have the keys of two.
_ALL = (
    record_format("palate_csv", _palate_table, "prompt_turns first second labels"),
    record_format("palate_pairs", palate_pairs.pairs, "prompt first second"),
    oasst.FORMAT,
    prism.FORMAT,
    record_format(
        "pandalm",
        judged.pandalm_pairs,
        "instruction response1 response2 cmp_key",
        "instruction response1 response2 annotator1",
    ),
    record_format("llmbar", judged.llmbar_pairs, "input output_1 output_2 label"),
    record_format("alpaca_eval", judged.alpaca_pairs, "instruction output_1 output_2 preference"),
    record_format(
        "helpsteer3", judged.helpsteer_pairs, "context response1 response2 overall_preference"
    ),
    record_format("summarize", judged.summary_pairs, "info summaries choice"),
    record_format("arena", arena.pairs, "winner conversation_a conversation_b"),
    record_format(
        "arena_table", arena.table_pairs, "prompt response_a response_b winner_model_a winner_tie"
    ),
    record_format("hh_rlhf", chosen.hh_pairs, "chosen rejected"),
    record_format("trl", chosen.pairs, "chosen rejected", "chosen_response rejected_response"),
    Format("columns", (), record_format("columns", columns.pairs).parse),
)
FORMATS: dict[str, Format] = {known.name: known for known in _ALL}


@dataclass(frozen=True)
class Look:
    """What the first records of a file show. `examples`: a short value of each column."""

    format: str
    columns: tuple[str, ...]
    examples: dict[str, str]


def look(records: Records) -> Look:
    """Tell the format of a file from its first records. "columns": a mapping is needed."""
    seen = [item.value for item in islice(records.items, LOOKED_AT)]
    found = [value for value in seen if isinstance(value, dict)]
    if not found and not records.columns:
        raise FormatError("no_records")
    names = records.columns or tuple(dict.fromkeys(name for value in found for name in value))
    votes = [format_of(value) for value in found] or [format_of(dict.fromkeys(names, ""))]
    best = max(dict.fromkeys(votes), key=votes.count)
    return Look(best, names, _examples(names, found))


def format_of(value: Mapping[str, Any]) -> str:
    """The format that a record has the keys of."""
    fitting = [known.name for known in _ALL if known.fits(value)]
    if "hh_rlhf" in fitting and not str(value.get("chosen")).startswith(chosen.HUMAN):
        fitting.remove("hh_rlhf")
    return fitting[0] if fitting else "columns"


def _examples(names: tuple[str, ...], found: list[dict[str, Any]]) -> dict[str, str]:
    """A whole value per column, each from another record, so that none stands beside its neighbour.

    Lists and objects give none: what is in them cannot be told apart from what is sealed.
    """
    shown = {}
    for n, name in enumerate(names):
        order = found[n % len(found) :] + found[: n % len(found)] if found else []
        values = (value.get(name) for value in order)
        shown[name] = next((str(value) for value in values if _is_simple(value)), "")
    return shown


def _is_simple(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value) and not value.startswith(("[", "{"))
    return isinstance(value, int | float)


def check_format(name: str, shown: Look, options: Options) -> None:
    """Raise FormatError where a file has nothing that the chosen format could read."""
    if name not in FORMATS:
        raise FormatError("no_format", name=name[:40], formats=", ".join(FORMATS))
    if name == "columns":
        columns.check_mapping(options.mapping, shown.columns)
    elif not FORMATS[name].fits(shown.columns):
        wanted = " ".join(sorted(FORMATS[name].keys[0]))
        raise FormatError("lacks", wanted=name, keys=wanted, columns=", ".join(shown.columns)[:200])
