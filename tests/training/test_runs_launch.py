"""Launching: what is refused and why, what a clone is, who may, what a double click does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.factories import admin, draft
from tests.training.run_factories import ended, instructions, sft
from training.engine.rundir import sha256_json
from training.enums import Role, RunState
from training.launching import InputSpec, preflight
from training.models import Alert, BaselineEvaluation, Device, RunInput, TrainingRun
from training.selectors.inputs import digest_of_run
from training.services import runs
from training.services.evaluations import note_evaluation
from training.services.running import start_next
from training.services.runs import NotReady
from webapp.accounts.models import User
from webapp.core.errors import Forbidden, PalateError, Refused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trainer")]


def fields(found: Any) -> set[str]:
    return {problem.field for problem in found.problems}


def made(tmp_path: Path, kind: str, name: str, **columns: Any) -> TrainingRun:
    """A run that succeeded, as its manifest would say."""
    run = sft(tmp_path, name=name)
    TrainingRun.objects.filter(pk=run.pk).update(state=RunState.STARTING)
    TrainingRun.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    TrainingRun.objects.filter(pk=run.pk).update(state=RunState.SUCCEEDED, **columns)
    found = TrainingRun.objects.get(pk=run.pk)
    found.kind = kind  # in the database it stays an SFT: what a run is never changes
    return found


def reward_model(tmp_path: Path, branch: str, *, passed: bool = True) -> TrainingRun:
    checks = [{"name": "accuracy", "passed": passed}]
    manifest = {
        "config": {"reward_model": {"branch": branch}},
        "facts": {"gate": {"passed": passed, "checks": checks}},
        "files": {f"members/0/{branch}": "b" * 64},
    }
    name = f"{branch} {TrainingRun.objects.count()}"
    return made(tmp_path, "reward_model", name, manifest=manifest)


def policy_inputs(tmp_path: Path, **gates: bool) -> dict[Any, InputSpec]:
    base = made(tmp_path, "sft", "Base", manifest={"files": {"model/m": "a" * 64}})
    return {
        Role.TRAIN: InputSpec(instructions(tmp_path), "train"),
        Role.BASE: InputSpec(source=base),
        **{
            Role(branch): InputSpec(source=reward_model(tmp_path, branch, passed=passed))
            for branch, passed in {"quality": True, "personalization": True, **gates}.items()
        },
    }


def baseline(spec: InputSpec, dataset: Any, *, passed: bool = True) -> None:
    assert spec.source is not None
    BaselineEvaluation.objects.create(
        base=spec.source.name,
        base_sha256=digest_of_run(spec.source),
        dataset=dataset,
        split_sha256=dataset.split_sha256["gate"],
        passed=passed,
    )


def test_a_double_click_is_one_run(tmp_path: Path) -> None:
    first, second = sft(tmp_path, name="One", key="k"), sft(tmp_path, name="One", key="k")
    assert first == second
    assert RunInput.objects.count() == 1
    with pytest.raises(PalateError, match="already"):
        sft(tmp_path, name="One")


def test_starting_twice_starts_once(tmp_path: Path) -> None:
    run = sft(tmp_path, "steps=30 pause=0.05")
    assert start_next() == [run.pk]
    assert start_next() == []
    assert Device.objects.get().run == run


def test_a_run_is_named_by_its_settings_and_its_inputs(tmp_path: Path) -> None:
    same = [sft(tmp_path).config_sha256 for _ in range(2)]
    assert same[0] == same[1]
    assert sft(tmp_path, seed=2).config_sha256 != same[0]
    assert sft(tmp_path, config={"sft": {"epochs": 3.0}}).config_sha256 != same[0]


def test_what_does_not_fit_is_refused_with_its_field(tmp_path: Path) -> None:
    dataset = instructions(tmp_path)
    train = {Role.TRAIN: InputSpec(dataset, "train")}
    assert preflight("sft", "tiny", {}, train).ready
    assert fields(preflight("sft", "tiny", {}, {})) == {"inputs.train"}
    assert fields(preflight("sft", "tiny", {}, {Role.TRAIN: InputSpec(draft("instructions"))})) == {
        "inputs.train"
    }
    assert fields(preflight("sft", "tiny", {}, {Role.TRAIN: InputSpec(dataset, "gate")})) == {
        "inputs.train"
    }
    assert fields(preflight("sft", "tiny", {}, {**train, Role.QUALITY: InputSpec()})) == {
        "inputs.quality"
    }
    assert "sft.bach" in fields(preflight("sft", "tiny", {"sft": {"bach": 3}}, train))
    assert "data.train" in fields(preflight("sft", "tiny", {"data": {"train": "/etc/x"}}, train))
    assert "preset" in fields(preflight("sft", "tinny", {}, train))
    found = preflight("grpo", "tiny", {"grpo": {"batch": 60}}, train)
    assert {"grpo.batch", "inputs.base", "inputs.quality", "inputs.personalization"} <= (
        fields(found)
    )
    assert next(p.nearest for p in found.problems if p.field == "grpo.batch") == 56


def test_what_follows_from_the_settings_is_told(tmp_path: Path) -> None:
    inputs = {Role.TRAIN: InputSpec(instructions(tmp_path), "train")}
    asked = {"grpo": {"steps": 7, "batch": 64, "group": 8}}
    facts = preflight("grpo", "tiny", asked, inputs).facts
    assert (facts["steps"], facts["groups"], facts["completions"]) == (7, 8, 64)
    assert preflight("sft", "tiny", {"sft": {"batch": 4}}, inputs).facts["steps"] == 5


def test_missing_packages_are_told_from_what_the_worker_said(
    tmp_path: Path, django_user_model: Any
) -> None:
    from django.utils import timezone

    inputs = {Role.TRAIN: InputSpec(instructions(tmp_path), "train")}
    Device.objects.create(
        name="local", host="far", seen_at=timezone.now(), facts={"packages": ["datasets"]}
    )
    found = preflight("sft", "tiny", {}, inputs)
    assert any("torch" in problem.message for problem in found.problems)
    assert not found.warnings or "gpu" not in str(found.warnings)


def test_a_policy_needs_a_measured_base_and_models_that_passed(tmp_path: Path) -> None:
    inputs = policy_inputs(tmp_path)
    dataset = inputs[Role.TRAIN].dataset
    assert fields(preflight("grpo", "tiny", {}, inputs)) == {"inputs.base"}
    baseline(inputs[Role.BASE], dataset, passed=False)
    assert fields(preflight("grpo", "tiny", {}, inputs)) == {"inputs.base"}
    baseline(inputs[Role.BASE], dataset)
    assert preflight("grpo", "tiny", {}, inputs).ready
    bad = {
        **inputs,
        Role.QUALITY: InputSpec(source=reward_model(tmp_path, "quality", passed=False)),
    }
    found = preflight("grpo", "tiny", {}, bad)
    assert fields(found) == {"inputs.quality"}
    assert "accuracy" in found.problems[0].message
    assert preflight("grpo", "tiny", {"reward": {"force": "to see it fail"}}, bad).ready
    swapped = {**inputs, Role.QUALITY: inputs[Role.PERSONALIZATION]}
    assert fields(preflight("grpo", "tiny", {}, swapped)) == {"inputs.quality"}


def test_an_evaluation_on_the_gate_split_becomes_a_baseline(tmp_path: Path) -> None:
    base = made(tmp_path, "sft", "Base", manifest={"files": {"model/m": "a" * 64}})
    run = made(tmp_path, "evaluate", "Measured", manifest={
        "config": {"model": {"path": ""}}, "facts": {"passed": True, "n_ok": 3}})  # fmt: skip
    RunInput.objects.create(
        run=run, role=Role.GATE, dataset=instructions(tmp_path), split="gate", sha256="c" * 64
    )
    RunInput.objects.create(run=run, role=Role.BASE, source=base, sha256="d" * 64)
    note_evaluation(run)
    found = BaselineEvaluation.objects.get()
    assert (found.base, found.passed) == ("Base", True)
    assert found.base_sha256 == sha256_json({"model/m": "a" * 64})
    assert found.result["run"] == run.pk


def test_a_clone_differs_in_exactly_what_the_alert_proposes(tmp_path: Path) -> None:
    run = ended(sft(tmp_path, "steps=3", name="Old"))
    alert: Alert = run.alerts.get()
    clone = runs.clone(actor=admin(), run=run, changes=alert.changes, from_alert=alert, key="c")
    assert clone == runs.clone(
        actor=admin(), run=run, changes=alert.changes, from_alert=alert, key="c"
    )
    assert (clone.name, clone.parent, clone.from_alert) == ("Old (2)", run, alert)
    assert clone.config == {**run.config, "grpo": {"beta": 0.06}}
    assert (clone.kind, clone.preset, clone.seed) == (run.kind, run.preset, run.seed)
    shown = ("role", "dataset", "split", "source", "sha256")
    assert list(clone.inputs.values(*shown)) == list(run.inputs.values(*shown))
    assert runs.clone(actor=admin(), run=clone, changes={}).name == "Old (3)"


def test_changed_presets_are_noticed_before_the_start(tmp_path: Path) -> None:
    run = sft(tmp_path)
    clone = sft(tmp_path, config={"sft": {"epochs": 3.0}})
    assert run.config_sha256 != clone.config_sha256
    from training.services import rundirs

    clone.config_sha256 = run.config_sha256
    with pytest.raises(Refused, match="Clone it"):
        rundirs.prepare(clone)


@pytest.mark.parametrize("who", ["bob", "chen", "vera"])
def test_only_administrators_touch_runs(
    tmp_path: Path, who: str, request: pytest.FixtureRequest
) -> None:
    run, person = sft(tmp_path), request.getfixturevalue(who)
    asks: list[Callable[[User], object]] = [
        lambda u: runs.cancel(actor=u, run=run),
        lambda u: runs.resume(actor=u, run=run),
        lambda u: runs.annotate(actor=u, run=run, note="x"),
        lambda u: runs.pin(actor=u, run=run, pinned=True),
        lambda u: runs.clone(actor=u, run=run, changes={}),
    ]
    for ask in asks:
        with pytest.raises(Forbidden):
            ask(person)


def test_notes_and_pins(tmp_path: Path) -> None:
    run = runs.annotate(actor=admin(), run=sft(tmp_path), note=" why it was made ")
    assert run.note == "why it was made"
    assert runs.pin(actor=admin(), run=run, pinned=True).pinned
    assert not runs.pin(actor=admin(), run=run, pinned=False).pinned
    with pytest.raises(PalateError):
        runs.annotate(actor=admin(), run=run, note="x" * 3000)


def test_what_succeeded_is_not_resumed(tmp_path: Path) -> None:
    run = ended(sft(tmp_path, "steps=1"))
    with pytest.raises(Refused):
        runs.resume(actor=admin(), run=run)
    again = runs.resume(actor=admin(), run=sft(tmp_path))
    assert again.state == "queued"


def test_problems_of_a_refused_launch_are_all_there(tmp_path: Path) -> None:
    with pytest.raises(NotReady) as refused:
        sft(tmp_path, config={"sft": {"batch": 0, "learning_rate": -1.0}})
    assert {p.field for p in refused.value.problems} == {"sft.batch", "sft.learning_rate"}
