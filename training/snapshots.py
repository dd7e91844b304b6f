"""Files of a frozen dataset: the same bytes whenever they are written (V10).

Two forms. "rows" has the columns of `training.rows`, which TRL and `datasets` load as they are.
"engine" is what a run directory takes (see `training.engine.snapshots`): texts instead of turns of
the assistant; besides, `swaps.jsonl` (two answers and the two persons who prefer the one and the
other) and `prompts-<split>.jsonl`.

Rows whose texts were erased since the freeze are left out, and the manifest names them (V14).
Nothing here says who wrote an answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from training import policies
from training.filters import PAIRS, SPLITS
from training.models import Dataset, DatasetItem, RowText
from training.rows import OPTIONAL, arrow_schema, columns_of, digest_of, spoken
from webapp.catalog.texts import canonical_json, sha256
from webapp.core.errors import Refused

FORMAT = "palate-dataset-1"
CHUNK = 500
ROW_GROUP = 1000
ROWS, ENGINE = "rows", "engine"


class Damaged(Refused):
    """A stored text does not have the hash under which it was frozen."""


def items(dataset: Dataset, split: str) -> Iterator[list[DatasetItem]]:
    """The items of a split by hash, a chunk at a time."""
    rows = DatasetItem.objects.filter(dataset=dataset, split=split).order_by("row_sha256")
    last = ""
    while chunk := list(rows.filter(row_sha256__gt=last)[:CHUNK]):
        yield chunk
        last = chunk[-1].row_sha256


def read_rows(dataset: Dataset, split: str, gone: list[str] | None = None) -> Iterator[Any]:
    """The rows of a split with all their columns; hashes of erased ones are added to `gone`."""
    policies.check_frozen(dataset)
    empty = no_tasks(dataset)
    for chunk in items(dataset, split):
        texts = RowText.objects.in_bulk([item.row_sha256 for item in chunk])
        for item in chunk:
            text = texts.get(item.row_sha256)
            if text is None:
                if gone is not None:
                    gone.append(item.row_sha256)
                continue
            if digest_of(dataset.kind, text.line) != item.row_sha256:
                raise Damaged(f"row {item.row_sha256} is not what was frozen", code="damaged")
            found = {**empty, **json.loads(text.line)}
            yield {"id": item.row_sha256, **found, "stratum": item.stratum}


def no_tasks(dataset: Dataset) -> dict[str, str]:
    """The optional columns, empty, where some row of the dataset has one; else none (V10)."""
    names = OPTIONAL.get(dataset.kind, ()) if dataset.counts.get("tasks") else ()
    return dict.fromkeys(names, "")


def jsonl(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    for row in rows:
        yield canonical_json(row).encode() + b"\n"


def write_snapshot(
    dataset: Dataset, folder: Path, *, form: str = ROWS, types: tuple[str, ...] = ("jsonl",)
) -> dict[str, Any]:
    """Write all splits and the manifest into a folder; the manifest. Flat memory.

    `types` are "jsonl" and "parquet"; the engine's form is JSON Lines only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    gone: list[str] = []
    files: dict[str, Any] = {}
    for split in [name for name in SPLITS if name in dataset.split_sha256]:
        if form == ENGINE:
            engine = map(as_engine, read_rows(dataset, split, gone))
            files |= _write_jsonl(folder / f"{split}.jsonl", engine)
            files |= _write_jsonl(folder / f"prompts-{split}.jsonl", prompts(dataset, split))
            continue
        missing = gone
        if "jsonl" in types:
            rows = read_rows(dataset, split, missing)
            files |= _write_jsonl(folder / f"{split}.jsonl", rows)
            missing = []
        if "parquet" in types:
            rows = read_rows(dataset, split, missing)
            files |= _write_parquet(dataset.kind, folder / f"{split}.parquet", rows)
    if form == ENGINE and dataset.kind in PAIRS:
        files |= _write_jsonl(folder / "swaps.jsonl", swaps(dataset))
    found = manifest(dataset, files, gone, form)
    (folder / "manifest.json").write_bytes(canonical_json(found).encode() + b"\n")
    return found


def manifest(
    dataset: Dataset, files: Mapping[str, Any], gone: Iterable[str], form: str = ROWS
) -> dict[str, Any]:
    """What the files are, without a time: writing again gives the same bytes."""
    return {
        "format": FORMAT,
        "form": form,
        "dataset": dataset.pk,
        "name": dataset.name,
        "kind": dataset.kind,
        "content_sha256": dataset.content_sha256,
        "split_sha256": dataset.split_sha256,
        "rows": dataset.counts["groups"]["split"],
        "gone": sorted(gone),
        "columns": columns_in(dataset),
        "filter": dataset.filter,
        "lineage": dataset.lineage,
        "code_version": dataset.code_version,
        "frozen_at": dataset.frozen_at.isoformat() if dataset.frozen_at else "",
        "files": dict(files),
    }


def columns_in(dataset: Dataset) -> dict[str, str]:
    """The columns that the rows of a frozen set have."""
    rows = DatasetItem.objects.filter(dataset=dataset).values("row_sha256")
    text = RowText.objects.filter(sha256__in=rows).first()
    found = json.loads(text.line) if text else {}
    return columns_of(dataset.kind, {**found, **no_tasks(dataset)})


def gone_rows(dataset: Dataset) -> Iterator[str]:
    """Hashes of the rows whose texts were erased."""
    for split in dataset.split_sha256:
        for chunk in items(dataset, split):
            digests = [item.row_sha256 for item in chunk]
            there = set(RowText.objects.filter(sha256__in=digests).values_list("sha256", flat=True))
            yield from (digest for digest in digests if digest not in there)


# The engine's form


def as_engine(row: Mapping[str, Any]) -> dict[str, Any]:
    """One row as the engine reads it: what the assistant said is a text."""
    texts = {"chosen": "chosen", "rejected": "rejected", "completion": "answer"}
    found = {name: value for name, value in row.items() if name not in texts}
    found |= {new: spoken(row[old]) for old, new in texts.items() if old in row}
    if "better" in row:
        found["better"] = spoken(row["better"])
    return found | task_of(row)


def task_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The task of a stored row as the engine reads it: `task`, an object or None; {} where no row
    of the dataset has one."""
    return {"task": json.loads(row["task"]) if row["task"] else None} if "task" in row else {}


def prompts(dataset: Dataset, split: str) -> Iterator[dict[str, Any]]:
    """Every prompt with every persona of a split once, with its task: what a policy is asked.

    One question under several personas stands together, so that a batch compares them.
    """
    policies.check_frozen(dataset)
    rows = DatasetItem.objects.filter(dataset=dataset, split=split)
    ordered = rows.order_by("prompt_sha256", "persona_id", "row_sha256")
    waiting = iter(ordered.values_list("row_sha256", "stratum").iterator(chunk_size=CHUNK))
    last, asked = None, dict[str, dict[str, Any]]()  # of the last prompt, by persona
    while chunk := list(islice(waiting, CHUNK)):
        texts = RowText.objects.in_bulk([digest for digest, _stratum in chunk])
        for digest, stratum in chunk:
            row = json.loads(texts[digest].line) if digest in texts else {}
            if "prompt" not in row:
                continue
            if row["prompt"] != last:
                yield from asked.values()
                last, asked = row["prompt"], {}
            found = asked.setdefault(row["persona"], _prompt(row, stratum))
            if row.get("task"):  # all rows of a prompt and persona that have one have the same
                found |= task_of(row)
    yield from asked.values()


def _prompt(row: Mapping[str, Any], stratum: str) -> dict[str, Any]:
    asked = {"persona": row["persona"], "prompt": row["prompt"]}
    about = {name: row[name] for name in ("persona_id", "language")}
    return {"id": sha256(canonical_json(asked)), **asked, **about, "stratum": stratum}


def swaps(dataset: Dataset, split: str = "") -> Iterator[dict[str, Any]]:
    """Two answers and two persons of whom each prefers another one, from both directions.

    Of a counterfactual both directions have one name; of what people judged, the same two answers
    to the same question under two personas.
    """
    halves: dict[str, tuple[str, str]] = {}  # of what is looked for: row, hash of its better answer
    for name in [split] if split else [s for s in SPLITS if s in dataset.split_sha256]:
        for row in read_rows(dataset, name):
            better, worse = spoken(row["chosen"]), spoken(row["rejected"])
            key = row["pair"] or sha256(canonical_json([row["prompt"], sorted([better, worse])]))
            first = halves.setdefault(key, (row["id"], sha256(better)))
            other = _half(first[0]) if first[1] == sha256(worse) else None
            if other is None or other["persona"] == row["persona"]:
                continue
            del halves[key]
            yield {
                "id": key,
                "prompt": row["prompt"],
                "first": worse,
                "second": better,
                "persona_first": other["persona"],
                "persona_second": row["persona"],
                "split": name,
            }


def _half(digest: str) -> Any:
    """The other direction of a swap; None where it was erased since."""
    text = RowText.objects.filter(pk=digest).first()
    return json.loads(text.line) if text else None


# Files


def _write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    digest, count, size = hashlib.sha256(), 0, 0
    with path.open("wb") as out:
        for line in jsonl(rows):
            out.write(line)
            digest.update(line)
            count += 1
            size += len(line)
    return {path.name: {"sha256": digest.hexdigest(), "rows": count, "size": size}}


def _write_parquet(kind: str, path: Path, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    waiting, count = iter(rows), 0
    first = list(islice(waiting, 1))
    schema = arrow_schema(kind, first[0] if first else None)
    waiting = chain(first, waiting)
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        while batch := list(islice(waiting, ROW_GROUP)):
            out.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    with path.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return {path.name: {"sha256": digest, "rows": count, "size": path.stat().st_size}}
