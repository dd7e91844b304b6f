"""Runs of kind predict: what the engine scores, what the site hands over, what it never does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from arena.models import Context, Entry, Round
from tests.training.evidence_factories import (
    closed_of,
    ended_as,
    evidence_round,
    predicted,
    trained_world,
)
from tests.training.gate_factories import reward_model
from training.engine.config.load import load
from training.engine.config.preflight import Machine, check
from training.engine.contracts import Parts, Rollout
from training.engine.jobs import predict as job
from training.engine.rundir import RunDir, read_lines, write_json
from training.engine.snapshots import BadSnapshot
from training.enums import Role, RunState
from training.launching import InputSpec, preflight
from training.models import RunInput, TrainingRun
from training.selectors.round_answers import answers_of, predictions_of
from training.services import runs
from training.services.predictions import launch_predictions
from training.services.rundirs import prepare
from training.storage import directory
from webapp.catalog.models import Contestant
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Forbidden, Refused

CONFIG = {
    "kind": "predict", "preset": "tiny", "reward": {"quality": "/q", "personalization": "/p"},
    "predict": {"round": 3, "batch": 4}, "data": {"answers": "data/answers.jsonl"},
}  # fmt: skip


class Fake:
    """Scores by length; says nothing about texts that begin with a question mark."""

    version = "1"

    def __init__(self, branch: str) -> None:
        self.name = branch

    def score_many(self, rollouts: Sequence[Rollout]) -> list[Parts | None]:
        return [self.score(r) for r in rollouts]

    def score(self, rollout: Rollout) -> Parts | None:
        if rollout.completion.startswith("?"):
            return None
        return Parts({self.name: len(rollout.completion) / 100, f"spread/{self.name}": 0.0})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    scorers = {n: Fake(n.partition("/")[0]) for n in ("quality", "quality/auditors")}
    monkeypatch.setattr(job, "load_scorers", lambda _config: scorers)
    run = RunDir(tmp_path / "run")
    (run.path / "data").mkdir(parents=True)
    texts = ["?", *("x" * n for n in range(1, 10))]
    rows = [
        {"id": f"e{n}", "persona": "", "prompt": "Why?", "completion": text}
        for n, text in enumerate(texts)
    ]
    file = run.path / "data/answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def scores(run: RunDir) -> dict[str, Any]:
    return {row["id"]: row["parts"] for row in read_lines(run.path / "predictions.jsonl")}


def test_every_answer_is_scored_once_and_failures_are_no_scores(folder: RunDir) -> None:
    facts = job.predict(folder, load(CONFIG), False)  # type: ignore[arg-type]
    found = scores(folder)
    assert (facts["answers"], facts["n_ok"], facts["n_err"]) == (10, 9, 1)
    assert len(found) == 10
    assert found["e0"] == {"quality": None, "quality/auditors": None}
    assert found["e5"]["quality"] == {"quality": 0.05, "spread/quality": 0.0}
    assert facts["means"]["quality"] == pytest.approx(0.05)
    assert "Why?" not in (folder.path / "predictions.jsonl").read_text()
    assert (folder.path / "predictions.json").exists()


def test_a_run_that_was_stopped_goes_on_where_it_was(folder: RunDir) -> None:
    facts = job.predict(folder, load(CONFIG), True)  # type: ignore[arg-type]
    assert facts == {"scored": 4, "answers": 10}
    assert not (folder.path / "predictions.json").exists()
    first = (folder.path / "predictions.jsonl").read_bytes()
    again = job.predict(folder, load(CONFIG), False)  # type: ignore[arg-type]
    assert again["answers"] == 10
    assert (folder.path / "predictions.jsonl").read_bytes().startswith(first)
    assert len(list(read_lines(folder.path / "predictions.jsonl"))) == 10


def test_half_a_line_of_a_killed_process_is_scored_again(folder: RunDir) -> None:
    whole = json.dumps({"id": "e0", "parts": {}})
    (folder.path / "predictions.jsonl").write_text(f'{whole}\n{{"id": "e1", "pa')
    assert job.predict(folder, load(CONFIG), False)["answers"] == 10  # type: ignore[arg-type]
    assert scores(folder)["e1"]["quality"]["quality"] == 0.01


def test_answers_without_a_text_are_refused(folder: RunDir) -> None:
    (folder.path / "data/answers.jsonl").write_text('{"id": "a", "prompt": "Why?"}\n')
    with pytest.raises(BadSnapshot, match="completion"):
        job.predict(folder, load(CONFIG), False)  # type: ignore[arg-type]


def test_members_and_auditors_are_asked_apart(tmp_path: Path, monkeypatch: Any) -> None:
    asked: list[tuple[str, str]] = []

    def load_one(where: Path, _model: Any, kind: str, *, force: bool) -> Fake:
        assert force
        asked.append((where.name, kind))
        return Fake("quality")

    monkeypatch.setattr(job, "load_ensemble", load_one)
    for name, auditors in (("q", ["auditors/0"]), ("p", [])):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "reward_model.json", {"auditors": auditors})
    reward = {"quality": str(tmp_path / "q"), "personalization": str(tmp_path / "p")}
    found = job.load_scorers(load({**CONFIG, "reward": reward}))
    assert list(found) == ["quality", "quality/auditors", "personalization"]
    assert asked == [("q", "members"), ("q", "auditors"), ("p", "members")]


def test_the_engine_wants_a_round_and_a_reward_model_but_no_model() -> None:
    machine = Machine(lambda _name: True)

    def fields(**changes: Any) -> list[str]:
        config = load({"kind": "predict", "preset": "", "data": CONFIG["data"], **changes})
        return [problem.field for problem in check(config, machine)]

    assert fields(reward={"quality": "/q"}, predict={"round": 1}) == []
    assert fields() == ["reward.quality", "predict.round"]
    assert fields(reward={"quality": "rules"}, predict={"round": 1}) == ["reward.quality"]
    assert fields(reward={"quality": "/q"}, predict={"round": 1, "batch": 0}) == ["predict.batch"]


# --- the site ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_round_that_is_sealed_is_refused(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    round_ = closed_of(world)
    with pytest.raises(Refused) as refused:
        launch_predictions(actor=world.admin, contestant=world.contestants[1], round_=round_)
    assert refused.value.code == "sealed"
    model = TrainingRun.objects.get(name="model of quality")
    inputs = {Role.QUALITY: InputSpec(source=model)}
    asked = {"predict": {"round": round_.pk}}
    checked = preflight("predict", "tiny", asked, inputs)
    assert [p.field for p in checked.problems] == ["predict.round"]
    assert not list(answers_of(round_))
    # Not even a row that somebody put there is written out.
    run = TrainingRun.objects.create(
        name="smuggled", kind="predict", preset="tiny", config=asked, directory="smuggled",
        config_sha256=checked.sha256, queued_at=timezone.now(),
    )  # fmt: skip
    RunInput.objects.create(run=run, role=Role.QUALITY, source=model, sha256="0" * 64)
    with pytest.raises(Refused):
        prepare(run)
    assert not (directory(run.directory) / "data/answers.jsonl").exists()


@pytest.mark.django_db
def test_what_the_engine_is_given(trainer: None) -> None:
    world = trained_world(personas=8, prompts=6, raters=4)
    round_ = evidence_round(world, holdout_percent=50, planned_votes=40)
    assert Context.objects.filter(round=round_, holdout=True).exists()
    run = launch_predictions(actor=world.admin, contestant=world.contestants[1], round_=round_)
    config = prepare(run)
    text = (directory(run.directory) / "data/answers.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert rows
    assert set(rows[0]) == {"id", "persona", "prompt", "completion"}
    assert config.data.answers == "data/answers.jsonl"
    assert config.data.sha256["data/answers.jsonl"]
    assert config.reward.quality.endswith("made-model of quality")
    kept = {e.public_id: e for e in Entry.objects.filter(context__round=round_)}
    assert all(not kept[row["id"]].context.holdout for row in rows)
    for context in Context.objects.filter(round=round_, holdout=True):
        assert context.prompt.messages[0]["content"] not in text
        assert context.persona_version is not None
        assert context.persona_version.text.summary not in text
    assert not (directory(run.directory) / "data/edges.jsonl").exists()


@pytest.mark.django_db
def test_masked_texts_are_left_out(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    round_ = evidence_round(world)
    before = list(answers_of(round_))
    entry = Entry.objects.get(public_id=before[0]["id"])
    from django.db import connection

    with connection.cursor() as cursor:  # what is sealed cannot be changed through the door
        for trigger in _guards(cursor, "arena_entry"):
            cursor.execute(f'DROP TRIGGER "{trigger}"')
        cursor.execute("UPDATE arena_entry SET spans = '[[0, 3]]' WHERE id = %s", [entry.pk])
    assert [row["id"] for row in answers_of(round_)] == [row["id"] for row in before[1:]]


def _guards(cursor: Any, table: str) -> list[str]:
    cursor.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [table]
    )
    return [name for (name,) in cursor.fetchall()]


@pytest.mark.django_db
def test_the_same_question_is_one_run(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    round_ = evidence_round(world)
    asked: dict[str, Any] = {"contestant": world.contestants[1], "round_": round_}
    first = launch_predictions(actor=world.admin, **asked)
    assert launch_predictions(actor=world.second_admin, **asked, key="another") == first
    ended_as(first, RunState.FAILED)
    second = launch_predictions(actor=world.admin, **asked)
    assert second != first
    assert second.name != first.name
    with pytest.raises(Forbidden):
        launch_predictions(actor=world.raters[0], **asked)


@pytest.mark.django_db
def test_who_has_no_reward_model_is_told(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    round_: Round = evidence_round(world)
    for contestant, code in zip(
        world.contestants[::2], ("no_reward_model", "not_trained"), strict=True
    ):
        with pytest.raises(Refused) as refused:
            launch_predictions(actor=world.admin, contestant=contestant, round_=round_)
        assert refused.value.code == code


@pytest.mark.django_db
def test_a_reward_model_that_failed_its_gate_may_be_looked_at(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    round_ = evidence_round(world)
    bad = reward_model("weak", "quality")
    manifest = {**bad.manifest, "facts": {"gate": {"passed": False, "checks": []}}}
    TrainingRun.objects.filter(pk=bad.pk).update(manifest=manifest)
    bad.refresh_from_db()
    inputs = {Role.QUALITY: InputSpec(source=bad)}
    assert preflight("predict", "tiny", {"predict": {"round": round_.pk}}, inputs).ready
    nobody = preflight("predict", "tiny", {"predict": {"round": round_.pk}}, {})
    assert [p.field for p in nobody.problems] == ["inputs.quality"]


@pytest.mark.django_db
def test_texts_of_somebody_who_withdrew_are_made_blank(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    round_ = evidence_round(world)
    run = predicted(world, round_, len_of)
    prepare(run)
    file = directory(run.directory) / "data/answers.jsonl"
    person = world.personas[0]
    summary = person.versions.get().text.summary
    before = file.read_text()
    assert summary in before
    withdraw_consent(actor=world.admin, persona=person)
    after = file.read_text()
    assert summary not in after
    assert "to person 0 " not in after
    assert "for person 0 " not in after
    assert len(after) == len(before)
    assert after.count("to person 1 ") == before.count("to person 1 ") > 0
    assert not any(summary == row["persona"] for row in answers_of(round_))


def len_of(text: str) -> float:
    return len(text) / 100


@pytest.mark.django_db
def test_predictions_are_read_when_the_run_has_ended(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    run = predicted(world, evidence_round(world), len_of)
    found = predictions_of(run)
    assert set(next(iter(found.values()))) == {
        "quality", "quality/auditors", "personalization", "personalization/auditors",
    }  # fmt: skip
    run.state = RunState.RUNNING
    assert predictions_of(run) == {}


@pytest.mark.django_db
def test_a_clone_keeps_its_round(trainer: None) -> None:
    world = trained_world(personas=4, prompts=2, raters=3)
    run = launch_predictions(
        actor=world.admin,
        contestant=Contestant.objects.get(name="Policy"),
        round_=evidence_round(world),
    )
    other = runs.clone(actor=world.admin, run=run, changes={"predict.batch": 8})
    assert other.config["predict"]["round"] == run.config["predict"]["round"]
