"""What reward models say of answers that were given elsewhere: nothing is generated or trained.

predictions.jsonl holds one row an answer: its id and `parts` by scorer (null where it could not
score). It holds no texts: those lie in data/answers.jsonl alone. A resumed run goes on there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from training.engine.config.schema import BRANCHES, RunConfig
from training.engine.contracts import Scorer, score_all
from training.engine.jobs.evaluation import ENSEMBLES, means, values_of
from training.engine.jobs.scoring import load_ensemble
from training.engine.jobs.watch import Stop
from training.engine.rewards.predictions import FILE, REPORT
from training.engine.rundir import RunDir, read_json, read_lines, write_json
from training.engine.snapshots import Row, read_rows, rollout_of


def predict(run: RunDir, config: RunConfig, stop: Stop) -> dict[str, Any]:
    """Score batch by batch; what was scored before is kept."""
    rows = read_rows(run.path / config.data.answers, "answers")
    done = {row["id"] for row in read_lines(run.path / FILE) if "id" in row}
    left = [row for row in rows if row["id"] not in done]
    scorers = load_scorers(config)
    size = config.predict.batch
    for number, start in enumerate(range(0, len(left), size)):
        run.beat(number, "predict")
        began = time.monotonic()
        found = list(scored(left[start : start + size], scorers))
        for line in found:
            run.append(run.path / FILE, line)
        done |= {line["id"] for line in found}
        note(run, found, len(done), time.monotonic() - began)
        if stop and start + size < len(left):
            return {"scored": len(done), "answers": len(rows)}
    facts = report(run, [row["id"] for row in rows])
    facts["scorers"] = {name: scorer.version for name, scorer in scorers.items()}
    write_json(run.path / REPORT, facts)
    return facts


def load_scorers(config: RunConfig) -> dict[str, Scorer]:
    """Members and auditors of every reward model that is given, by name."""
    found: dict[str, Scorer] = {}
    for branch in BRANCHES:
        given = getattr(config.reward, branch)
        if not given or given == "rules":
            continue
        folder = Path(given)
        for kind in ENSEMBLES:
            name = branch if kind == "members" else f"{branch}/{kind}"
            if kind == "members" or read_json(folder / "reward_model.json").get(kind):
                found[name] = load_ensemble(folder, config.model, kind, force=True)
    return found


def scored(rows: Sequence[Row], scorers: Mapping[str, Scorer]) -> Iterator[dict[str, Any]]:
    """Lines of predictions.jsonl."""
    rollouts = [rollout_of(row, row["completion"]) for row in rows]
    columns = {name: score_all(scorer, rollouts) for name, scorer in scorers.items()}
    for i, row in enumerate(rows):
        parts = {name: values_of(column[i]) for name, column in columns.items()}
        yield {"id": row["id"], "parts": parts}


def note(run: RunDir, found: Sequence[Mapping[str, Any]], done: int, seconds: float) -> None:
    """A metric line a batch; its step is the number of answers that are scored."""
    metrics = {**means(found), "step_time": seconds, "answered": done}
    line = {"at": round(time.time(), 3), "step": done, "stage": "predict", "metrics": metrics}
    run.append(run.metrics, line)
    run.beat(done, "predict")


def report(run: RunDir, wanted: Sequence[str]) -> dict[str, Any]:
    """Facts for the manifest: failures are counted, never scores (V12)."""
    known = set(wanted)
    rows = [row for row in read_lines(run.path / FILE) if row.get("id") in known]
    errors = sum(any(parts is None for parts in row["parts"].values()) for row in rows)
    return {
        "answers": len(rows),
        "n_ok": len(rows) - errors,
        "n_err": errors,
        "means": means(rows),
    }
