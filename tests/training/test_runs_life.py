"""The life of a run: queued, started detached, read while it works, and what comes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.training.factories import admin
from tests.training.run_factories import ended, sft, started, until
from training import processes, storage
from training.engine.rundir import RunDir, read_json
from training.enums import RunState
from training.models import Device, MetricLine, TrainingRun
from training.selectors.queue import queue_position
from training.services import running, runs, watching
from training.services.findings import look_from_outside
from training.services.ingest import ingest
from training.storage import directory
from webapp.core.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trainer")]


def is_free() -> bool:
    return not Device.objects.exclude(run=None).exists()


def test_a_run_goes_from_the_queue_to_its_end(tmp_path: Path) -> None:
    run = sft(tmp_path)
    assert (run.state, queue_position(run)) == ("queued", 1)
    run = ended(run)
    assert (run.state, run.reason, run.step, run.attempts) == ("succeeded", "", 5, 1)
    assert [line.step for line in run.metrics.all()] == [1, 2, 3, 4, 5]
    assert run.samples.count() == 5
    assert [event.kind for event in run.events.all()] == ["started", "alert"]
    alert = run.alerts.get()
    assert (alert.rule, alert.changes) == ("hacking", {"grpo.beta": 0.06})
    assert alert.evidence["message"] == "so many words"
    final = run.checkpoints.get()
    assert (final.path, final.final, final.size > 0) == ("model", True, True)
    assert final.sha256 == run.manifest["files"]["model/model.safetensors"]
    assert run.first_metric_at is not None
    assert run.first_metric_at >= run.created_at - timedelta(seconds=1)
    assert "a line of the log" in run.log_tail
    assert is_free()
    said = list(Event.objects.filter(object_type="training.trainingrun").values_list("action"))
    assert [a for (a,) in said] == ["launch_run", "run_started", "run_ended"]


def test_the_directory_holds_the_frozen_rows_and_their_hashes(tmp_path: Path) -> None:
    run = ended(sft(tmp_path))
    config = read_json(directory(run.directory) / "config.json")
    assert config["data"]["train"] == "data/train.jsonl"
    assert config["data"]["heldout"] == ""
    rows = (directory(run.directory) / "data" / "train.jsonl").read_text().splitlines()
    assert {"persona", "prompt", "answer"} <= set(json.loads(rows[0]))
    assert len(config["data"]["sha256"]["data/train.jsonl"]) == 64


def test_the_trainer_sees_no_secret_and_is_nobodys_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    monkeypatch.setenv("REDIS_URL", "redis://secret")
    monkeypatch.setenv("PALATE_JUDGE_KEY", "for-the-judge")
    run = ended(sft(tmp_path))
    seen = read_json(directory(run.directory) / "seen.json")
    assert not {"DATABASE_URL", "SECRET_KEY", "REDIS_URL", "PALATE_HOME"} & set(seen["env"])
    assert "secret" not in json.dumps(seen["env"])
    assert seen["env"]["PALATE_JUDGE_KEY"] == "for-the-judge"
    assert seen["env"]["OMP_NUM_THREADS"] == "1"
    assert seen["ppid"] != os.getpid()


def test_the_second_run_waits_for_the_device(tmp_path: Path) -> None:
    first, second = sft(tmp_path, "steps=40 pause=0.05"), sft(tmp_path)
    assert started(first).state == "running"
    second.refresh_from_db()
    assert (second.state, queue_position(second)) == ("queued", 1)
    assert Device.objects.get().run == first
    runs.cancel(actor=admin(), run=first)
    assert ended(first).state == "cancelled"
    assert ended(second).state == "succeeded"
    assert is_free()


def test_two_devices_run_two(tmp_path: Path, settings: Any) -> None:
    settings.PALATE_DEVICES = ["one", "two:1+2"]
    first, second = sft(tmp_path, "steps=60 pause=0.05"), sft(tmp_path, "steps=60 pause=0.05")
    assert started(first).state == started(second).state == "running"
    two = Device.objects.get(name="two").run
    assert two is not None
    seen = read_json(directory(two.directory) / "seen.json")
    assert seen["env"]["CUDA_VISIBLE_DEVICES"] == "1,2"
    for run in (first, second):
        runs.cancel(actor=admin(), run=run)
    assert ended(first).state == ended(second).state == "cancelled"


def test_stopped_and_resumed_it_goes_on_to_the_same_curve(tmp_path: Path) -> None:
    whole = ended(sft(tmp_path, "steps=12"))
    run = started(sft(tmp_path, "steps=12 pause=0.1"))
    until(run, lambda row: row.step >= 3)
    runs.cancel(actor=admin(), run=run)
    runs.cancel(actor=admin(), run=run)
    run = ended(run)
    assert (run.state, run.reason) == ("cancelled", "cancelled")
    assert run.checkpoints.get().step == run.step < 12
    run = ended(runs.resume(actor=admin(), run=run))
    assert (run.state, run.attempts) == ("succeeded", 2)
    assert run.metrics.count() == 12  # from the checkpoint on, not from the start
    curve = {line.step: line.values for line in run.metrics.all()}
    assert curve == {line.step: line.values for line in whole.metrics.all()}


def test_cancelled_in_the_queue_it_never_starts(tmp_path: Path) -> None:
    run = runs.cancel(actor=admin(), run=sft(tmp_path))
    assert run.state == "cancelled"
    watching.watch_runs()
    run.refresh_from_db()
    assert (run.state, run.attempts) == ("cancelled", 0)
    assert ended(runs.resume(actor=admin(), run=run)).state == "succeeded"


def test_killed_it_can_be_resumed_and_the_half_line_is_lost_alone(tmp_path: Path) -> None:
    run = ended(sft(tmp_path, "kill steps=6"))
    assert (run.state, run.reason) == ("failed", "killed")
    assert "a line of the log" in run.log_tail
    assert is_free()
    assert [line.step for line in run.metrics.all()] == [1, 2, 3]
    run = ended(runs.resume(actor=admin(), run=run))
    assert run.state == "succeeded", (run.reason, run.message, run.log_tail)
    assert [line.step for line in run.metrics.all()] == [1, 2, 3, 4, 5, 6]


def test_what_a_killed_trainer_started_is_ended_with_it(tmp_path: Path) -> None:
    run = ended(sft(tmp_path, "child kill"))
    child = read_json(directory(run.directory) / "child.json")["pid"]
    end = time.monotonic() + 60
    while processes.session_of(child) is not None:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("does", "reason", "changes"),
    [
        ("nan", "nonfinite", {"grpo.learning_rate": 1e-4}),
        ("fail=out_of_memory", "out_of_memory", {"grpo.batch": 8}),
        ("fail=disk_full", "disk_full", {}),
        ("refuse", "config", {}),
    ],
)
def test_every_failure_has_its_reason_and_its_remedy(
    tmp_path: Path, does: str, reason: str, changes: dict[str, Any]
) -> None:
    run = ended(sft(tmp_path, does))
    assert (run.state, run.reason, run.changes) == ("failed", reason, changes)
    assert run.message
    assert is_free()


def test_a_full_disk_refuses_the_start_with_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sft(tmp_path)
    monkeypatch.setattr(storage, "free_gb", lambda: 0.1)
    run = ended(run)
    assert (run.state, run.reason) == ("failed", "disk_full")
    assert "0.1 GB" in run.message
    assert "0.5 GB" in run.message
    assert is_free()


def test_reading_again_adds_nothing(tmp_path: Path) -> None:
    run = ended(sft(tmp_path))
    before = (MetricLine.objects.count(), run.events.count(), run.alerts.count())
    TrainingRun.objects.filter(pk=run.pk).update(offsets={})
    ingest(run)
    watching.watch_runs()
    assert (MetricLine.objects.count(), run.events.count(), run.alerts.count()) == before


def test_a_start_that_crashed_before_the_process_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sft(tmp_path)
    running.ensure_devices()
    leased = running.lease_next()
    assert leased is not None
    assert leased.state == "starting"
    watching.watch_runs()
    run.refresh_from_db()
    assert run.pid is None  # somebody may be preparing it right now
    monkeypatch.setattr(watching, "BEGIN_AGAIN", timedelta())
    assert ended(run).state == "succeeded"
    assert TrainingRun.objects.get(pk=run.pk).attempts == 1


def test_cancelled_between_lease_and_start_it_never_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BEGIN_AGAIN", timedelta())
    run = sft(tmp_path)
    running.ensure_devices()
    leased = running.lease_next()
    assert leased is not None
    runs.cancel(actor=admin(), run=leased)
    run = ended(run)
    assert (run.state, run.reason, run.pid) == ("cancelled", "cancelled", None)
    assert is_free()


def test_a_manifest_of_the_attempt_before_ends_nothing(tmp_path: Path) -> None:
    run = ended(sft(tmp_path, "nan"))
    assert run.state == "failed"
    runs.resume(actor=admin(), run=run)
    leased = running.lease_next()
    assert leased is not None
    watching.watch_runs()  # while somebody else prepares the next attempt
    run.refresh_from_db()
    assert (run.state, run.attempts, run.heartbeat_at) == ("starting", 2, None)


def test_what_no_database_keeps_is_left_out(tmp_path: Path) -> None:
    run = ended(sft(tmp_path, "steps=1"))
    line = {"kind": "phrases", "at": 1.0, "found": ["a\x00b", "\ud800"], "n": float("nan")}
    with (directory(run.directory) / "events.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    ingest(run)
    assert run.events.get(kind="phrases").facts == {"found": ["ab", "?"], "n": None}


def test_a_process_that_nobody_noted_is_found_not_doubled(tmp_path: Path) -> None:
    run = started(sft(tmp_path, "steps=60 pause=0.05"))
    pid = run.pid
    TrainingRun.objects.filter(pk=run.pk).update(pid=None)
    watching.watch_runs()
    run.refresh_from_db()
    assert (run.pid, run.attempts) == (pid, 1)
    runs.cancel(actor=admin(), run=run)
    assert ended(run).state == "cancelled"


def test_a_process_that_does_not_listen_is_killed(tmp_path: Path, settings: Any) -> None:
    settings.RUN_STOP_SECONDS = 1
    run = started(sft(tmp_path, "steps=500 pause=0.05 deaf"))
    runs.cancel(actor=admin(), run=run)
    run = ended(run)
    assert (run.state, run.reason) == ("cancelled", "killed")
    assert is_free()


def test_of_several_processes_all_are_killed(tmp_path: Path) -> None:
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    mine, other = (
        subprocess.Popen([*sleeping, str(tmp_path / name)], start_new_session=True)
        for name in ("mine", "mine-too")
    )
    until_seen = time.monotonic() + 60
    while processes.trainers(tmp_path / "mine") != [mine.pid]:
        assert time.monotonic() < until_seen
        time.sleep(0.02)
    assert processes.end(None, tmp_path / "mine", kill=True)
    assert mine.wait(60) == -signal.SIGKILL
    assert other.poll() is None
    other.kill()
    other.wait(60)


def test_sigterm_from_outside_leaves_a_run_that_can_go_on(tmp_path: Path) -> None:
    run = started(sft(tmp_path, "steps=60 pause=0.05"))
    assert run.pid is not None
    os.kill(run.pid, signal.SIGTERM)
    run = ended(run)
    assert (run.state, run.reason) == ("cancelled", "stopped")


def test_of_another_machine_only_the_silence_is_seen(tmp_path: Path, settings: Any) -> None:
    run = started(sft(tmp_path, "steps=200 pause=0.05"))
    TrainingRun.objects.filter(pk=run.pk).update(host="far-away")
    watching.watch_runs()
    assert TrainingRun.objects.get(pk=run.pk).state == "running"
    assert processes.end(run.pid, directory(run.directory), kill=True)
    watching.watch_runs()
    assert TrainingRun.objects.get(pk=run.pk).state == "running"
    settings.RUN_LOST_SECONDS = 0
    time.sleep(0.1)
    watching.watch_runs()
    run.refresh_from_db()
    assert (run.state, run.reason) == ("failed", "lost")
    assert "far-away" in run.message
    assert is_free()


def test_a_long_silence_raises_one_alert(tmp_path: Path) -> None:
    run = started(sft(tmp_path, "steps=100 pause=0.2"))
    run = until(run, lambda row: row.step >= 1)
    long_ago = timezone.now() - timedelta(hours=2)
    found = RunDir(directory(run.directory))
    run.heartbeat_at = long_ago
    look_from_outside(run, found)
    look_from_outside(run, found)
    assert list(run.alerts.filter(rule="hang").values_list("severity", flat=True)) == ["critical"]
    runs.cancel(actor=admin(), run=run)
    assert ended(run).state == RunState.CANCELLED
