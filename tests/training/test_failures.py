"""Real failures of a running GRPO process: a full disk, no more memory. It says so, and goes on."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.test_jobs import copy_of, curve, engine, execute, loop, wait_for_step
from training.engine.rundir import RunDir, read_json, read_lines

__all__ = ["loop"]  # the fixture


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 40 MB. Only root may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)])
    if made.returncode:
        pytest.skip("a file system of its own can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Somebody else takes all the room."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as out:
        size = 1 << 20
        while size:
            try:
                out.write(b"x" * size)
            except OSError:
                size //= 2
    assert shutil.disk_usage(folder).free == 0
    return filler


def test_a_disk_that_became_full_is_named_and_the_run_goes_on(loop: Path, small_disk: Path) -> None:
    run = copy_of(loop, small_disk / "run", {"hardware": {"disk_gb": 0.0}})
    with engine("run", str(run.path)) as process:
        wait_for_step(run, 5, process)  # a checkpoint lies at 4
        filler = fill(small_disk)
        process.wait(timeout=300)
    manifest = read_json(run.manifest)
    assert (process.returncode, manifest["state"]) == (3, "failed")
    assert manifest["reason"] == "disk_full"
    assert "No space left" in manifest["message"] or "are free" in manifest["message"]
    filler.unlink()
    code, manifest = execute(run.path)
    assert (code, manifest["state"]) == (0, "succeeded")
    assert curve(run) == curve(RunDir(loop / "grpo"))


def test_memory_that_ends_is_named_with_a_smaller_batch(loop: Path, tmp_path: Path) -> None:
    """The address space of the process is closed while it trains."""
    run = copy_of(loop, tmp_path / "run")
    with engine("run", str(run.path)) as process:
        wait_for_step(run, 5, process)
        limit = resource.prlimit(process.pid, resource.RLIMIT_AS)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (1 << 20, limit[1]))
        process.wait(timeout=300)
    manifest = read_json(run.manifest)
    assert (process.returncode, manifest["state"]) == (3, "failed")
    assert manifest["reason"] == "out_of_memory"
    assert manifest["changes"] == {"grpo.batch": 8, "grpo.accumulation": 2}
    assert execute(run.path)[0] == 0
    assert curve(run) == curve(RunDir(loop / "grpo"))
    started = [event for event in read_lines(run.events) if event["kind"] == "started"]
    assert [event["resumed"] for event in started] == [False, True]


def test_the_room_for_last_words_is_given_back(loop: Path) -> None:
    for name in ("sft", "quality", "grpo"):
        assert not (loop / name / ".reserve").exists()
    assert os.path.getsize(loop / "grpo" / "manifest.json") < 1 << 18
