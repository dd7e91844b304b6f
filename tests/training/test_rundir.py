"""The run directory survives whatever kills a writer."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path

import pytest

from training.engine.rundir import RunDir, clean, read_json, read_lines, write_json


def test_what_json_does_not_know_becomes_null() -> None:
    dirty = {"a": math.inf, "b": [math.nan, 1.5], "c": {"d": -math.inf}, "e": "inf"}
    assert clean(dirty) == {"a": None, "b": [None, 1.5], "c": {"d": None}, "e": "inf"}


def test_half_a_line_is_closed_and_passed_over(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.append(run.metrics, {"step": 1, "metrics": {"reward": 0.5}})
    with run.metrics.open("a") as out:
        out.write('{"step": 2, "metr')  # killed here
    assert [row["step"] for row in read_lines(run.metrics)] == [1]
    run.append(run.metrics, {"step": 2, "metrics": {"reward": 0.6}})
    assert [row["step"] for row in read_lines(run.metrics)] == [1, 2]


def test_after_a_resume_the_later_line_of_a_step_counts(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for step, value in [(1, 0.1), (2, 0.2), (3, 0.3), (2, 0.25)]:
        run.append(run.metrics, {"step": step, "metrics": {"reward": value}})
    assert [row["reward"] for row in run.history().values()] == [0.1, 0.25, 0.3]


def test_a_json_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "manifest.json"
    write_json(path, {"state": "first"})

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"state": "second"})
    assert read_json(path) == {"state": "first"}
    assert os.listdir(tmp_path) == ["manifest.json"]


def test_an_interrupted_checkpoint_is_passed_over(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert run.last_checkpoint() is None
    for step in (5, 20, 100):
        folder = run.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    (run.checkpoints / "checkpoint-100" / "checkpoint-is-incomplete.txt").touch()
    (run.checkpoints / "checkpoint-200").mkdir()  # killed before the state was written
    found = run.last_checkpoint()
    assert found is not None
    assert found.name == "checkpoint-20"


def test_chinese_stays_readable_in_the_files(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.append(run.samples, {"completion": "先给结论"})
    assert "先给结论" in run.samples.read_text(encoding="utf-8")
