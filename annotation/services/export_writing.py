"""Writing what a plan keeps: the second pass, in chunks of 500 items, and packing the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from annotation.exports import columns, openai, pairs, trl, writers
from annotation.exports.options import OPENAI, TRL_IMPLICIT, TRL_UNPAIRED, Options
from annotation.exports.rows import PairRow
from annotation.exports.selection import Verdict, choose
from annotation.formats import palate_csv
from annotation.models import Project
from annotation.selectors.exports import ROWS_CHUNK, facts_by_id, rows_of
from annotation.services.export_plan import Plan

Beat = Callable[[int], None]  # told how many rows were written
PROVENANCE = "provenance.jsonl"


@dataclass
class Written:
    """Files by split, and what became of the items and labels."""

    files: dict[str, Path] = field(default_factory=dict)
    beside: dict[str, Path] = field(default_factory=dict)
    rows: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unlabelled: int = 0


def columns_of(options: Options) -> columns.Columns:
    """The columns that the files promise; none for formats whose lines are objects."""
    if options.own:
        return dict.fromkeys(palate_csv.COLUMNS, "string") if options.file_type == "csv" else {}
    return {} if options.format == OPENAI else trl.columns(options)


def kind_of(options: Options) -> str:
    """What the check calls this."""
    named = {TRL_IMPLICIT: "implicit", TRL_UNPAIRED: "unpaired", OPENAI: "openai"}
    return "pairs" if options.own else named.get(options.format, "preference")


def write_rows(project: Project, plan: Plan, work: Path, beat: Beat) -> Written:
    """Write every kept item into the file of its split."""
    options, done = plan.options, Written()
    made = {split: _writer(options, work, split, done) for split in options.splits}
    beside = _beside(options, work, done)
    with writers.Closing([*made.values(), *beside.values()]):
        for chunk in plan.chunks(ROWS_CHUNK):
            _write_chunk(project, options, chunk, (made, beside), done)
            beat(sum(done.rows.values()))
    return done


def _writer(options: Options, work: Path, split: str, done: Written) -> writers.Writer:
    suffix = "parquet" if options.file_type == "dataset" else options.file_type
    path = done.files[split] = work / f"{split}.{suffix}"
    if suffix == "csv":
        return writers.Csv(path, palate_csv.COLUMNS, palate_csv.to_cells)
    if suffix == "parquet":
        return writers.Parquet(path, columns_of(options))
    return writers.JsonLines(path)


def _beside(options: Options, work: Path, done: Written) -> dict[str, writers.Writer]:
    """Files for what the format itself has no place for."""
    if options.format != OPENAI:
        return {}
    found: dict[str, writers.Writer] = {}
    for split in options.splits:
        name = f"{split}.{PROVENANCE}"
        done.beside[name] = work / name
        found[split] = writers.JsonLines(work / name)
    return found


Targets = tuple[Mapping[str, writers.Writer], Mapping[str, writers.Writer]]


def _write_chunk(
    project: Project,
    options: Options,
    chunk: list[tuple[int, str]],
    targets: Targets,
    done: Written,
) -> None:
    """What changed since the plan was made is looked at again: it may leave no more."""
    facts = facts_by_id(project, [item for item, _split in chunk])
    chosen = {item: choose(found, options) for item, found in facts.items()}
    wanted = {item: found for item, found in facts.items() if not chosen[item].reason}
    rows = rows_of(wanted)
    for item, split in chunk:
        row = rows.get(item)
        if row is None:
            left = facts.get(item)
            reason = chosen[item].reason if item in chosen else ""
            done.left_out[reason or "changed"] += 1
            done.labels[reason or "changed"] += left.labels if left else 0
            continue
        _write_item(row, chosen[item].verdict, options, split, targets)
        _count(row, options, done)
    for split, writer in targets[0].items():
        done.rows[split] = writer.rows


def _write_item(
    row: PairRow, verdict: Verdict | None, options: Options, split: str, targets: Targets
) -> None:
    made, beside = targets[0][split], targets[1].get(split)
    if verdict is None:
        made.write(pairs.record(row))
        return
    if beside is not None:
        made.write(openai.record(row, verdict, options))
        beside.write(trl.provenance(row, verdict, options, split, verdict.verdict))
        return
    for record in trl.records(row, verdict, options, split):
        made.write(record)


def _count(row: PairRow, options: Options, done: Written) -> None:
    """Every submitted label is in a row or has a reason why it is not."""
    for reason in _label_fates(row, options):
        done.labels[reason] += 1
    done.unlabelled += not row.labels


def _label_fates(row: PairRow, options: Options) -> Iterator[str]:
    for label in row.labels:
        if options.own:
            yield "in_rows"
        elif label.repeat:
            yield "repeat"
        elif label.extra:
            yield "extra"
        else:
            yield "in_rows" if label.verdicts.get(options.axis) else "other_axis"


def pack(done: Written, work: Path, saved: Path | None) -> tuple[Path, str]:
    """One file to download, and its suffix. Several are packed into one zip."""
    files = {f"{split}{path.suffix}": path for split, path in done.files.items()}
    files |= dict(sorted(done.beside.items()))
    if saved is not None:
        files = {
            str(path.relative_to(saved)): path
            for path in sorted(saved.rglob("*"))
            if path.is_file()
        }
    elif len(files) == 1:
        path = next(iter(files.values()))
        return path, path.suffix
    target = work / "packed.zip"
    writers.pack(files, target)
    return target, ".zip"
