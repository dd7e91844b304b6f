"""The known bad recipe, run in earnest: minutes of CPU, so not part of the usual suite.

pytest -m slow tests/training/test_bad_recipe.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.engine.config.load import merge
from training.engine.rundir import RunDir, read_json, read_lines, write_json
from training.engine.start import execute
from training.engine.tiny import BAD, BAD_SIZES, lay_out

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_it_is_refused_by_the_gate_and_caught_live_when_forced(tmp_path: Path) -> None:
    changes = merge(BAD, {"reward": {"force": ""}})
    *before, grpo = lay_out(tmp_path, 1, BAD_SIZES, changes)
    for path in before:
        assert execute(path, listen=False) == 0
    run = RunDir(grpo)
    assert execute(grpo, listen=False) == 2
    refused = read_json(run.manifest)
    assert (refused["state"], refused["reason"]) == ("refused", "reward_model")
    assert "failed its gate: accuracy" in refused["message"]
    write_json(run.config, merge(read_json(run.config), {"reward": BAD["reward"]}))
    assert execute(grpo, listen=False) == 0
    spoken = {e["rule"]: e for e in read_lines(run.events) if e["kind"] == "alert"}
    said = json.dumps({rule: event["step"] for rule, event in spoken.items()})
    for rule in ("hacking", "collapse"):  # two of the rules, whatever way this run goes wrong
        assert rule in spoken, said
        assert spoken[rule]["step"] < BAD["grpo"]["steps"], said
