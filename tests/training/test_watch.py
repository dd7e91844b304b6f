"""What connects a trainer with its run directory, and how its endings are named. Imports torch."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from training.engine.config.load import load
from training.engine.rundir import RunDir, read_lines

pytestmark = pytest.mark.filterwarnings("ignore")
CONFIG = load({"kind": "grpo", "preset": "tiny", "model": {"path": "m"}})


def state(step: int) -> Any:
    return SimpleNamespace(
        global_step=step, max_steps=10, num_input_tokens_seen=0, is_world_process_zero=True
    )


def watch(folder: Path) -> Any:
    from training.engine.jobs.watch import Stop, Watch

    run = RunDir(folder)
    return Watch(run, CONFIG, Stop(run), stage="grpo")


def test_a_step_becomes_one_line_with_our_names(tmp_path: Path) -> None:
    found = watch(tmp_path)
    found.on_train_begin(None, state(0), None)
    logs = {"loss": 0.1, "reward": 0.5, "kl": 0.01, "step_time": 2.0, "num_tokens": 100.0}
    logs["completions/mean_length"] = 14.0
    logs["rewards/composed/mean"] = 0.5
    found.on_log(None, state(1), None, logs)
    rows = RunDir(tmp_path).history()
    assert rows == {
        1: {"loss": 0.1, "reward": 0.5, "kl": 0.01, "step_time": 2.0, "tokens": 100.0,
            "tokens_per_second": 50.0, "length/mean": 14.0}
    }  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_stored_as_null_and_ends_the_run(
    tmp_path: Path, value: float
) -> None:
    from training.engine.jobs.watch import NonFinite

    found = watch(tmp_path)
    with pytest.raises(NonFinite, match="loss is not a number at step 3"):
        found.on_log(None, state(3), None, {"loss": value, "reward": 0.5})
    run = RunDir(tmp_path)
    assert run.history()[3]["loss"] is None
    assert [e["rule"] for e in read_lines(run.events)] == ["nonfinite"]


def test_an_alert_speaks_once_also_after_a_resume(tmp_path: Path) -> None:
    found = watch(tmp_path)
    for step in range(1, 30):
        found.on_log(None, state(step), None, {"loss": 0.1, "completions/clipped_ratio": 0.9})
    resumed = watch(tmp_path)
    resumed.on_train_begin(None, state(29), None)
    for step in range(30, 40):
        resumed.on_log(None, state(step), None, {"loss": 0.1, "completions/clipped_ratio": 0.9})
    assert [e["rule"] for e in read_lines(RunDir(tmp_path).events)] == ["clipped"]


def test_a_stop_file_ends_the_run_at_the_next_step(tmp_path: Path) -> None:
    found = watch(tmp_path)
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    found.on_step_end(None, state(1), control)
    assert not control.should_training_stop
    (tmp_path / "stop").touch()
    found.on_step_end(None, state(2), control)
    assert control.should_save
    assert control.should_training_stop


def test_sigterm_only_asks(tmp_path: Path) -> None:
    from training.engine.jobs.watch import Stop

    stop = Stop(RunDir(tmp_path))
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        stop.listen()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_room_for_three_checkpoints_is_demanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from training.engine.jobs.watch import OutOfDisk, need_disk

    run = RunDir(tmp_path)
    need_disk(run, CONFIG, 1e6)
    usage = shutil.disk_usage(tmp_path)._replace(free=10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OutOfDisk):
        need_disk(run, CONFIG, 4e8)
    assert [e["rule"] for e in read_lines(run.events)] == ["disk"]


def test_every_ending_has_a_reason_and_perhaps_a_change() -> None:
    import torch

    from training.engine.jobs.run import explain
    from training.engine.jobs.scoring import NotUsable
    from training.engine.jobs.watch import NonFinite
    from training.engine.snapshots import BadSnapshot

    cooler = {"grpo.learning_rate": CONFIG.grpo.learning_rate / 2}
    smaller = {"grpo.batch": 32, "grpo.accumulation": 2}
    cases: list[tuple[Exception, tuple[str, dict[str, Any]]]] = [
        (NonFinite("loss"), ("nonfinite", cooler)),
        (RuntimeError("probability tensor contains either `inf`, `nan`"), ("nonfinite", cooler)),
        (OSError(errno.ENOSPC, "No space left on device"), ("disk_full", {})),
        (RuntimeError("I/O error: No space left on device (os error 28)"), ("disk_full", {})),
        (torch.OutOfMemoryError("CUDA out of memory"), ("out_of_memory", smaller)),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), ("out_of_memory", smaller)),
        (NotUsable("gate"), ("reward_model", {})),
        (BadSnapshot("row 3"), ("data", {})),
        (KeyError("x"), ("error", {})),
    ]
    for error, expected in cases:
        assert explain(error, CONFIG) == expected


def test_the_policy_prompt_is_the_beginning_of_what_the_reward_model_reads() -> None:
    from training.engine.jobs.models import make_tokenizer
    from training.engine.jobs.texts import encode, policy_text, reward_ids, reward_text

    tokenizer = make_tokenizer(["How do I clean the lamp? system user assistant"] * 20, 320)
    persona, question, answer = "Busy expert，先给结论", "How do I clean the lamp?", "用软布。"
    asked = policy_text(tokenizer, persona, question)
    judged = reward_text(tokenizer, "personalization", persona, question, answer)
    assert judged.startswith(asked)
    assert reward_text(tokenizer, "quality", persona, question, answer).startswith(
        policy_text(tokenizer, "", question)
    )
    ids = reward_ids(tokenizer, "personalization", [(persona, question, answer)], 512)[0]
    assert tokenizer.decode(ids) == judged
    assert encode(tokenizer, judged, 10) == ids[-10:]
