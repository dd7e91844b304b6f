"""Writing the directory of a run: its configuration, and the frozen rows of its inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from training import snapshots
from training.engine.config.load import as_dict, load
from training.engine.config.schema import RunConfig
from training.engine.rundir import STOP_FILE, RunDir, read_json, sha256_file, write_json
from training.enums import RunKind
from training.launching import InputSpec, digest, values_of
from training.models import Dataset, TrainingRun
from training.policies import check_predictable
from training.roles import ROLES, file_of, written
from training.rows import spoken
from training.selectors.round_answers import answers_of
from training.services import edges
from training.services.runs import inputs_of
from training.storage import ATTEMPT, directory
from webapp.core.errors import Refused

Rows = Iterator[Mapping[str, Any]]
EDGES, ANSWERS = "data/edges.jsonl", "data/answers.jsonl"


def prepare(run: TrainingRun) -> RunConfig:
    """Everything that the engine reads. A resumed run keeps its configuration and its outputs."""
    found = RunDir(directory(run.directory))
    (found.path / "data").mkdir(parents=True, exist_ok=True)
    inputs = inputs_of(run)
    config = _kept(found) or _resolved(run, inputs)
    hashes = {
        file_of(role): write_rows(found.path / file_of(role), role, run.kind, inputs[role])
        for role in written(run.kind)
        if role in inputs
    }
    if cases := list(edges.rows_of(config.evaluate.edges)):
        hashes[EDGES] = write_lines(found.path / EDGES, iter(cases))
    if run.kind == RunKind.PREDICT:
        asked = answers_of(check_predictable(config.predict.round))
        hashes[ANSWERS] = write_lines(found.path / ANSWERS, asked)
    values = as_dict(config)
    named = {"edges": EDGES if EDGES in hashes else ""}
    named |= {"answers": ANSWERS if ANSWERS in hashes else ""}
    values["data"] = {**values["data"], **named, "sha256": hashes}
    write_json(found.config, values)
    for left in (found.path / STOP_FILE, found.manifest, found.heartbeat):
        left.unlink(missing_ok=True)
    write_json(found.path / ATTEMPT, run.attempts)
    return load(values)


def _kept(found: RunDir) -> RunConfig | None:
    return load(read_json(found.config)) if found.config.exists() else None


def _resolved(run: TrainingRun, inputs: Mapping[str, InputSpec]) -> RunConfig:
    """As it was when the run was launched, or refused: presets may have changed since (V10)."""
    config = load(values_of(run.kind, run.preset, run.config, inputs, run.seed))
    if digest(config, inputs) != run.config_sha256:
        raise Refused(
            _("The settings behind this run changed since it was launched. Clone it."),
            code="config",
        )
    return config


def write_rows(path: Path, role: str, kind: str, spec: InputSpec) -> str:
    """The rows of one input in the form that the engine reads; the hash of the file."""
    assert spec.dataset is not None
    form = ROLES[kind][role].form
    return write_lines(path, FORMS[form](spec.dataset, spec.split))


def write_lines(path: Path, rows: Rows) -> str:
    """A file of JSON lines, replaced only where it differs; its hash."""
    wanted, part = hashlib.sha256(), path.with_suffix(".part")
    with part.open("wb") as out:
        for line in snapshots.jsonl(rows):
            out.write(line)
            wanted.update(line)
    if path.exists() and sha256_file(path) == wanted.hexdigest():
        part.unlink()
    else:
        part.replace(path)
    return wanted.hexdigest()


def plain(dataset: Dataset, split: str) -> Rows:
    """Instructions and pairs."""
    yield from map(snapshots.as_engine, snapshots.read_rows(dataset, split))


def probes(dataset: Dataset, split: str) -> Rows:
    """Counter-examples with a better answer: the reason names the defect."""
    for row in snapshots.read_rows(dataset, split):
        if row["better"]:
            good, bad = spoken(row["better"]), spoken(row["completion"])
            asked = {"id": row["id"], "persona": row["persona"], "prompt": row["prompt"]}
            asked |= snapshots.task_of(row)
            yield {**asked, "good": good, "bad": bad, "defect": row["reason"]}


def labelled(dataset: Dataset, split: str) -> Rows:
    """Every answer of a counter-example with what it is worth."""
    for row in probes(dataset, split):
        asked = {name: row[name] for name in ("persona", "prompt", "task") if name in row}
        yield {**asked, "answer": row["good"], "right": True}
        yield {**asked, "answer": row["bad"], "right": False}


FORMS = {
    "instructions": plain,
    "pairs": plain,
    "prompts": snapshots.prompts,
    "probes": probes,
    "swaps": snapshots.swaps,
    "labelled": labelled,
}
