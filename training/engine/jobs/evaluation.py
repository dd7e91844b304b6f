"""A model answers the prompts of a fixed set, and scorers say what each answer is worth.

evaluation.jsonl holds one row an item and draw: id, draw, persona, prompt, completion, and `parts`
by scorer (null where it could not score). Items keep the ids of their snapshot, so that two models
are compared item by item. Every batch has a seed of its own: a resumed run gives the same answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from training.engine import numbers
from training.engine.config.schema import RunConfig
from training.engine.contracts import Parts, Rollout, Scorer, score_all
from training.engine.jobs import models
from training.engine.jobs.evaluate import answers
from training.engine.jobs.grpo import AUDIT, make_judge
from training.engine.jobs.scoring import load_ensemble
from training.engine.jobs.watch import Stop
from training.engine.rewards.units import units
from training.engine.rundir import RunDir, read_lines, write_json
from training.engine.snapshots import Row, read_rows, rollout_of

FILE, REPORT = "evaluation.jsonl", "evaluation.json"
SHOWN = 200  # answers that samples.jsonl shows
ENSEMBLES = ("members", "auditors")
Item = tuple[Row, int]  # with the number of its draw


def evaluate(run: RunDir, config: RunConfig, stop: Stop) -> dict[str, Any]:
    """Answer and score batch by batch; what was done before is kept."""
    items = list(items_of(asked_of(run, config), config))
    model, tokenizer = models.load_base(config.model, ())
    models.placed(model)
    scorers = load_scorers(config)
    done = {(row["id"], row["draw"]) for row in lines_of(run)}
    e = config.evaluate
    for number, start in enumerate(range(0, len(items), e.batch)):
        batch = items[start : start + e.batch]
        if all((row["id"], draw) in done for row, draw in batch):
            continue
        run.beat(number, "evaluate")
        began = time.monotonic()
        seed, rows = config.seed * 100_000 + number, [row for row, _ in batch]
        texts = answers(model, tokenizer, rows, e.max_completion, e.temperature, seed, e.batch)
        found = list(scored(batch, texts, scorers))
        for line in found:
            if (line["id"], line["draw"]) not in done:
                run.append(run.path / FILE, line)
        note(run, number, start, found, time.monotonic() - began)
        if stop and start + e.batch < len(items):
            return {"answered": start + len(batch), "items": len(items)}
    facts = report(lines_of(run), config)
    facts["scorers"] = {name: scorer.version for name, scorer in scorers.items()}
    write_json(run.path / REPORT, facts)
    return facts


def asked_of(run: RunDir, config: RunConfig) -> list[Row]:
    """The prompts of the gate, then the edge cases that are not among them."""
    rows = read_rows(run.path / config.data.gate, "prompts")
    if not config.data.edges:
        return rows
    known = {row.get("id") for row in rows}
    more = read_rows(run.path / config.data.edges, "prompts")
    return rows + [row for row in more if row.get("id") not in known]


def lines_of(run: RunDir) -> list[dict[str, Any]]:
    """What was answered; a line that was made blank since is none."""
    return [row for row in read_lines(run.path / FILE) if "id" in row]


def items_of(rows: Sequence[Row], config: RunConfig) -> Iterator[Item]:
    """Every prompt as often as it is to be drawn; what has no id is known by its place."""
    for number, row in enumerate(rows):
        for draw in range(config.evaluate.draws):
            yield {**row, "id": str(row.get("id") or f"{number:05d}")}, draw


def load_scorers(config: RunConfig) -> dict[str, Scorer]:
    """By name: quality, personalization, with /auditors for those that never rewarded, rules,
    judge, and what the toy world knows. Without names: the members of all that are given."""
    r = config.reward
    given = [branch for branch in ("quality", "personalization") if getattr(r, branch)]
    found: dict[str, Scorer] = {}
    for name in config.evaluate.scorers or given:
        branch, _, kind = name.partition("/")
        if name == "judge":
            found[name] = make_judge(config)
        elif name in AUDIT:
            found[name] = AUDIT[name]()
        else:
            folder = Path(getattr(r, branch))
            found[name] = load_ensemble(folder, config.model, kind or "members", force=True)
    return found


def scored(
    batch: Sequence[Item], texts: Sequence[str], scorers: Mapping[str, Scorer]
) -> Iterator[dict[str, Any]]:
    """Lines of evaluation.jsonl."""
    rollouts = [rollout_of(row, text) for (row, _), text in zip(batch, texts, strict=True)]
    columns = {name: score_all(scorer, rollouts) for name, scorer in scorers.items()}
    for i, (row, draw) in enumerate(batch):
        parts = {name: values_of(column[i]) for name, column in columns.items()}
        yield {"id": row["id"], "draw": draw, **asked(rollouts[i]), "parts": parts}


def asked(rollout: Rollout) -> dict[str, Any]:
    shown = {"persona": rollout.persona, "prompt": rollout.question}
    return {**shown, "completion": rollout.completion}


def values_of(parts: Parts | None) -> dict[str, Any] | None:
    """What a scorer said; None where it said nothing that is a number."""
    known = {k: v for k, v in parts.values.items() if v is not None} if parts else {}
    return known or None


def note(
    run: RunDir, number: int, start: int, found: Sequence[Mapping[str, Any]], seconds: float
) -> None:
    """A metric line a batch, and the first answers for people to read."""
    metrics = {**means(found), "step_time": seconds, "answered": start + len(found)}
    line = {"at": round(time.time(), 3), "step": number, "stage": "evaluate", "metrics": metrics}
    run.append(run.metrics, line)
    for row in found[: max(0, SHOWN - start)]:
        known = filter(None, row["parts"].values())
        parts = {name: value for scorer in known for name, value in scorer.items()}
        shown = {name: row[name] for name in ("persona", "prompt", "completion")}
        sample = {"step": number, "eval": True, "prompt_id": row["id"], **shown, "parts": parts}
        run.append(run.samples, sample)
    run.beat(number + 1, "evaluate")


def means(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of every value of every scorer, over the answers that it could score (V12)."""
    columns: dict[str, list[float]] = {}
    for row in rows:
        for scorer, parts in row["parts"].items():
            for name, value in (parts or {}).items():
                known = scorer if name == scorer.partition("/")[0] else f"{scorer}/{name}"
                columns.setdefault(known, []).append(value)
    return {name: numbers.mean(values) for name, values in sorted(columns.items())}


def report(rows: Sequence[Mapping[str, Any]], config: RunConfig) -> dict[str, Any]:
    """Facts for the manifest; `passed` says whether this model is a floor to build on."""
    e = config.evaluate
    errors = sum(any(parts is None for parts in row["parts"].values()) for row in rows)
    bad = sum(degenerate(row["completion"]) for row in rows)
    lengths = [float(len(units(row["completion"]))) for row in rows]
    return {
        "items": len({row["id"] for row in rows}),
        "answers": len(rows),
        "n_ok": len(rows) - errors,
        "n_err": errors,
        "degenerate": bad,
        "words": numbers.mean(lengths),
        "means": means(rows),
        "limits": {"errors": e.errors, "degenerate": e.degenerate},
        "passed": bool(rows) and errors <= e.errors * len(rows) and bad <= e.degenerate * len(rows),
    }


def degenerate(text: str) -> bool:
    """Nothing was said, or hardly anything but the same word again and again."""
    words = units(text)
    return not words or (len(words) >= 8 and len(set(words)) < len(words) / 4)
