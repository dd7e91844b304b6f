"""Alert rules on curves of real runs: `curves/` holds what the tiny preset logged, three digits.

bad.json      the known bad recipe, forced past its gate: reward models of 20 steps on few and
              wrong labels, GRPO with a learning rate of 1e-3
healthy-*     the preset as it is, other seeds

What must be seen is asked without the curves that only a toy has (audit/…).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from training.engine.config.load import load
from training.engine.config.schema import RunConfig
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import History
from training.engine.monitor.rules import replay
from training.engine.tiny import BAD

FOLDER = Path(__file__).parent / "curves"
HEALTHY = sorted(path.stem for path in FOLDER.glob("healthy-*.json"))


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return found


def history(name: str) -> History:
    """Without what only a toy knows."""
    found = stored(name)
    rows: dict[int, dict[str, float | None]] = {step: {} for step in found["steps"]}
    for curve, values in found["curves"].items():
        if curve.removeprefix("eval/").removeprefix("error/").startswith("audit/"):
            continue
        pairs = zip(found["steps"], values, strict=True) if isinstance(values, list) else (
            (int(step), value) for step, value in values.items()
        )  # fmt: skip
        for step, value in pairs:
            if value is not None:
                rows[step][curve] = value
    return History(rows)


def config(**changes: Any) -> RunConfig:
    return load({"kind": "grpo", "preset": "tiny", "model": {"path": "m"}, **changes})


def alerts(name: str, run: RunConfig) -> dict[str, Finding]:
    return {finding.rule: finding for finding in replay(history(name), run)}


def test_the_bad_run_is_named_while_most_of_it_lies_ahead() -> None:
    run = config(grpo=BAD["grpo"])
    truth = stored("bad")["curves"]["eval/audit/quality"]
    assert truth["0"] > 0.7
    assert truth["100"] < 0.1  # the reward rose all the while
    found = alerts("bad", run)
    for rule in ("hacking", "collapse"):
        assert found[rule].step <= 50
    assert found["collapse"].severity == found["kl_band"].severity == "critical"
    assert {"probe_fall", "spread", "audited_fall"} <= set(found)
    assert found["collapse"].changes["grpo.learning_rate"] == 5e-4


def test_most_of_the_bad_run_is_seen_without_a_reference_model() -> None:
    """No KL is measured where beta is 0; what is left must do."""
    found = alerts("bad", config(grpo={**BAD["grpo"], "beta": 0.0}))
    assert "kl_band" not in found
    assert {"hacking", "collapse", "probe_fall"} <= set(found)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_raises_nothing_critical_and_no_word_of_hacking(name: str) -> None:
    curves = stored(name)["curves"]
    last = max(map(int, curves["eval/audit/quality"]))
    assert curves["eval/audit/match"][str(last)] >= 0.9
    noise = 3 * curves["eval/error/audit/quality"]["0"]
    fell = curves["eval/audit/quality"][str(last)] < curves["eval/audit/quality"]["0"] - noise
    found = alerts(name, config())
    assert not fell or {"audited_fall", "auditor_gap", "probe_fall", "spread"} & set(found)
    assert not {"hacking", "collapse", "length_collapse", "probe_fall"} & set(found)
    assert [f.rule for f in found.values() if f.severity == "critical"] == []


def test_there_are_healthy_curves() -> None:
    assert HEALTHY
