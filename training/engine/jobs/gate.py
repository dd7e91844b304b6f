"""Measures a reward model on the gate's rows; `rewards.gate` decides."""

from __future__ import annotations

from collections.abc import Sequence

from training.engine.config.schema import RunConfig
from training.engine.jobs.scoring import Ensemble, Judged
from training.engine.rewards.gate import Measured, sigmoid
from training.engine.rewards.units import units
from training.engine.rundir import RunDir
from training.engine.snapshots import Row, read_rows

JITTER_ROWS = 24


def measure(run: RunDir, config: RunConfig, ensemble: Ensemble) -> Measured:
    """Everything that the gate asks, on snapshots that no member was trained on."""
    rows = read_rows(run.path / (config.data.gate or config.data.heldout), "pairs")
    left = [(row["persona"], row["prompt"], row["chosen"]) for row in rows]
    right = [(row["persona"], row["prompt"], row["rejected"]) for row in rows]
    chosen = [value for value, _ in ensemble.judge(left)]
    rejected = [value for value, _ in ensemble.judge(right)]
    return Measured(
        chosen,
        rejected,
        probabilities(ensemble, left, right),
        [float(len(units(text))) for _, _, text in [*left, *right]],
        [*chosen, *rejected],
        jitter(ensemble, [*left, *right][:: max(1, 2 * len(rows) // JITTER_ROWS)]),
        probes(run, config, ensemble),
        swapped(run, config, ensemble),
    )


def probabilities(ensemble: Ensemble, left: list[Judged], right: list[Judged]) -> list[float]:
    """P(left is better), averaged over the members: σ of the calibrated difference."""
    columns = []
    for member in ensemble.members:
        t = member.calibration.temperature
        pairs = zip(member.logits(left), member.logits(right), strict=True)
        columns.append([sigmoid((a - b) / t) for a, b in pairs])
    return [sum(values) / len(values) for values in zip(*columns, strict=True)]


def jitter(ensemble: Ensemble, rows: Sequence[Judged]) -> float:
    """The same answers alone, together, and among long company: the largest difference."""
    alone = [ensemble.judge([row])[0][0] for row in rows]
    together = [value for value, _ in ensemble.judge(rows)]
    persona, prompt, answer = max(rows, key=lambda row: len(row[2]))
    company = [*rows, (persona, prompt, " ".join([answer] * 3))]
    crowded = [value for value, _ in ensemble.judge(company)][: len(rows)]
    columns = zip(alone, together, crowded, strict=True)
    return max(max(values) - min(values) for values in columns)


def probes(run: RunDir, config: RunConfig, ensemble: Ensemble) -> list[tuple[str, float, float]]:
    if not config.data.probes:
        return []
    rows = read_rows(run.path / config.data.probes, "probes")
    better = ensemble.judge([(row["persona"], row["prompt"], row["good"]) for row in rows])
    worse = ensemble.judge([(row["persona"], row["prompt"], row["bad"]) for row in rows])
    return [
        (str(row["defect"]), g, b) for row, (g, _), (b, _) in zip(rows, better, worse, strict=True)
    ]


def swapped(run: RunDir, config: RunConfig, ensemble: Ensemble) -> list[bool] | None:
    """Each person prefers the answer that suits them. Quality knows no persons: None."""
    if ensemble.branch != "personalization":
        return None
    if not config.data.swaps:
        return []
    rows: list[Row] = read_rows(run.path / config.data.swaps, "swaps")
    values = {
        (who, what): [
            value
            for value, _ in ensemble.judge(
                [(row[f"persona_{who}"], row["prompt"], row[what]) for row in rows]
            )
        ]
        for who in ("first", "second")
        for what in ("first", "second")
    }
    return [
        values["first", "first"][i] > values["first", "second"][i]
        and values["second", "second"][i] > values["second", "first"][i]
        for i in range(len(rows))
    ]
