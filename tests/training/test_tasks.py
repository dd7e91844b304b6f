"""What a row demands of an answer: from a file to the verifier, to the reward and to the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.factories import admin, draft, freeze, frozen
from tests.training.gate_factories import RULES, made, reward_model
from tests.training.run_factories import instructions
from tests.training.test_datasets_records import bring_in, refusals, upload
from training import snapshots
from training.engine.rewards.verifier import Verifier
from training.engine.rundir import sha256_file
from training.engine.snapshots import read_rows, rollout_of
from training.enums import Role
from training.forms.gates import GateForm
from training.launching import InputSpec, preflight
from training.models import Dataset, GateRun, Record, RowText, TrainingRun
from training.rows import text_of
from training.selectors.evaluated import FILE, value_of
from training.services.edges import rows_of
from training.services.gates import create_gate, start_gate
from training.services.rundirs import labelled, write_rows
from training.services.verdicts import decide_gate
from training.storage import directory
from training.tasks import judged_axes
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import InvalidInput

pytestmark = pytest.mark.django_db
ANNA = {"pseudonym": "anna", "summary": "In a hurry.", "features": {"expertise": "expert"}}
BERT = {"pseudonym": "bert", "summary": "New to it.", "features": {"expertise": "novice"}}
BRIEF = {"entities": ["water"], "words": [0, 5]}
LONG = {"entities": ["water"], "words": [10, 0]}
TEA = {"prompt": "How do I make tea?", "completion": "Boil water."}
RULED = {"quality": ["rules"], "personalization": ["rules"]}


def told(**changes: Any) -> dict[str, Any]:
    return {**TEA, "persona": ANNA, "task": BRIEF, **changes}


def scores(dataset: Dataset, tmp_path: Path, completion: str) -> dict[str, dict[str, Any]]:
    """By persona summary: what the verifier says of one answer, from the rows that the engine
    reads."""
    file = tmp_path / "prompts.jsonl"
    write_rows(file, Role.TRAIN, "grpo", InputSpec(dataset, "train"))
    found = {}
    for row in read_rows(file, "prompts"):
        parts = Verifier().score(rollout_of(row, completion))
        found[row["persona"]] = dict(parts.values) if parts else {}
    return found


def test_a_task_goes_from_the_file_to_the_verifier(tmp_path: Path) -> None:
    run = bring_in(
        "instructions", told(), told(persona=BERT, task=LONG), told(persona=None, task=None)
    )
    assert (run.added, run.refused) == (3, 0)
    dataset = frozen("instructions")
    assert dataset.counts["tasks"] == {"train": {"personalization": 2, "quality": 2, "rows": 2}}
    found = scores(dataset, tmp_path, "Boil the water, please.")
    assert (found["In a hurry."]["rules"], found["In a hurry."]["personalization"]) == (1, 1)
    assert (found["New to it."]["rules"], found["New to it."]["personalization"]) == (1, 0.4)
    assert found[""] == {}
    assert scores(dataset, tmp_path, "No idea.")["In a hurry."]["rules"] == 0


def test_the_hash_of_a_row_covers_its_task_and_is_the_old_one_without(tmp_path: Path) -> None:
    bring_in("instructions", told(), told(task=LONG), told(task=None))
    assert Record.objects.count() == 3
    plain = RowText.objects.exclude(line__contains='"task"').get()
    row = json.loads(plain.line)
    assert text_of("instructions", row) == (plain.line, plain.sha256)
    assert text_of("instructions", {**row, "task": ""}) == (plain.line, plain.sha256)
    assert text_of("instructions", {**row, "task": "{}"})[1] != plain.sha256


def test_the_row_that_has_a_task_gives_it_to_the_prompt(tmp_path: Path) -> None:
    """Several answers to one question under one persona; only one of the rows says what counts."""
    others = [told(completion=f"Answer {n}.", task=None) for n in range(8)]
    bring_in("instructions", *others, told())
    rows = list(snapshots.prompts(frozen("instructions"), "train"))
    assert [row["task"] for row in rows] == [BRIEF]


def test_two_tasks_for_one_prompt_and_persona_refuse_the_freeze() -> None:
    bring_in("instructions", told(), told(completion="Use water.", task=LONG))
    dataset = freeze(draft("instructions"))
    assert dataset.state == "draft"
    assert dataset.report["refusal"]["code"] == "task_clash"
    assert dataset.report["refusal"]["params"]["prompt"] == "How do I make tea?"


def test_exports_hold_tasks_only_where_there_are_any(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    bring_in("instructions", told(category="with"), told(persona=BERT, task=None, category="with"))
    bring_in("instructions", told(prompt="Coffee?", task=None, category="without"))
    ruled = frozen("instructions", categories=["with"])
    plain = frozen("instructions", categories=["without"])
    for dataset, expected in ((ruled, ["", '{"entities":["water"],"words":[0,5]}']), (plain, [])):
        folder = tmp_path / str(dataset.pk)
        found = snapshots.write_snapshot(dataset, folder, types=("jsonl", "parquet"))
        lines = [json.loads(x) for x in (folder / "train.jsonl").read_text().splitlines()]
        assert sorted(row["task"] for row in lines if "task" in row) == expected
        assert ("task" in found["columns"]) == bool(expected)
        table = pq.read_table(folder / "train.parquet")
        assert table.column_names == list(found["columns"])
        assert table.to_pylist() == [{n: row[n] for n in found["columns"]} for row in lines]
        again = tmp_path / f"{dataset.pk} again"
        snapshots.write_snapshot(dataset, again, types=("jsonl", "parquet"))
        for file in folder.iterdir():
            assert sha256_file(file) == sha256_file(again / file.name)


def test_a_withdrawn_consent_takes_the_task_along() -> None:
    from webapp.catalog.models import Persona

    bring_in("instructions", told(), told(persona=BERT, task=LONG))
    dataset = frozen("instructions")
    withdraw_consent(actor=admin(), persona=Persona.objects.get(pseudonym="anna"))
    assert [row["task"] for row in snapshots.prompts(dataset, "train")] == [LONG]
    assert not RowText.objects.filter(line__contains="In a hurry.").exists()


@pytest.mark.parametrize(
    ("task", "field", "code"),
    [
        ("short", "task", "type"),
        ({}, "task", "task_empty"),
        ({"entities": [], "words": [0, 0]}, "task", "task_empty"),
        ({"length": 5}, "task.length", "unknown_field"),
        ({"entities": "water"}, "task.entities", "type"),
        ({"entities": ["water", 3]}, "task.entities[1]", "type"),
        ({"entities": ["x"] * 51}, "task.entities", "task_many"),
        ({"forbidden": [" "]}, "task.forbidden[0]", "empty"),
        ({"numbers": ["1"]}, "task.numbers[0]", "type"),
        ({"words": [5]}, "task.words", "task_words"),
        ({"words": [20, 5]}, "task.words", "task_words"),
        ({"words": [-1, 5]}, "task.words[0]", "range"),
        ({"words": [1.5, 5]}, "task.words[0]", "type"),
        ({"reference_steps": True}, "task.reference_steps", "type"),
        ({"arguments": {"find": "query"}}, "task.arguments.find", "type"),
    ],
)
def test_a_wrong_task_is_refused_by_its_field(task: Any, field: str, code: str) -> None:
    row = {"prompt": "A", "answer": "B", "reason": "C", "task": task}
    for kind, line in (("instructions", told(task=task)), ("counterexamples", row)):
        assert refusals(upload(kind, line)) == [(field, code)]


def test_traces_take_no_task() -> None:
    run = upload("tool_traces", {"messages": [], "tools": [], "task": BRIEF})
    assert refusals(run) == [("task", "unknown_field")]


def test_what_rules_can_judge_of_a_task() -> None:
    assert judged_axes(BRIEF) == ("quality", "personalization")
    assert judged_axes({"numbers": [3]}) == ("quality",)
    assert judged_axes({"words": [0, 9]}) == ("personalization",)
    assert judged_axes({"reference_steps": 2}) == ()
    assert judged_axes(None) == ()


# Reward


def counterexamples(task: Any = BRIEF, name: str = "Labelled") -> Dataset:
    bring_in(
        "counterexamples",
        {"prompt": f"{name}?", "answer": "Many ask this.", "better": "Boil water.",
         "reason": "says nothing", "category": name, "task": task},
    )  # fmt: skip
    shares = {"train": 0, "reward_model_gate": 100}
    found = {"sources": ["import"], "categories": [name], **shares}
    return frozen("counterexamples", name=name, **found)


def test_answers_of_known_worth_prove_the_rules() -> None:
    rows = list(labelled(counterexamples(), "reward_model_gate"))
    values = {}
    for row in rows:
        parts = Verifier().score(rollout_of(row, row["answer"]))
        assert parts is not None
        values[row["right"]] = parts.values["rules"]
    assert values == {True: 1, False: 0}


def test_rules_reward_only_what_the_rows_say(tmp_path: Path) -> None:
    ruled = instructions(tmp_path)
    bring_in("instructions", told(task=None, category="plain"))
    plain = frozen("instructions", name="Plain", categories=["plain"])
    config = {"reward": {"quality": "rules", "personalization": "rules"}}

    def fields(dataset: Dataset, proved: Dataset | None) -> set[str]:
        inputs = {Role.TRAIN: InputSpec(dataset, "train")}
        if proved is not None:
            inputs[Role.LABELLED] = InputSpec(proved, "reward_model_gate")
        found = preflight("grpo", "tiny", config, inputs).problems
        return {p.field for p in found if p.field.startswith(("reward", "inputs.labelled"))}

    known, unknown = counterexamples(), counterexamples(None, "Untold")
    assert fields(ruled, known) == set()
    assert fields(ruled, None) == {"inputs.labelled"}
    assert fields(ruled, unknown) == {"inputs.labelled"}
    assert fields(plain, known) == {"reward.quality", "reward.personalization"}


# Gates


def test_each_axis_has_its_value_of_the_rules() -> None:
    parts = {"rules": {"rules": 0.25, "goal": 0.25, "personalization": 0.75}}
    assert value_of(parts, ["rules"], "quality") == 0.25
    assert value_of(parts, ["rules"], "personalization") == 0.75
    parts["personalization"] = {"personalization": 0.25}
    assert value_of(parts, ["personalization", "rules"], "personalization") == 0.5
    assert value_of({"rules": {"rules": 1.0}}, ["rules"], "personalization") is None
    assert value_of({"rules": None}, ["rules"], "quality") is None


def evaluated(run: TrainingRun | None, answer: Any) -> None:
    """What the engine would have written: every answer judged by the rules."""
    assert run is not None
    folder = directory(TrainingRun.objects.get(pk=run.pk).directory)
    folder.mkdir(parents=True, exist_ok=True)
    dataset = Dataset.objects.get(name="Instructions")
    with (folder / FILE).open("w") as out:
        for row in snapshots.prompts(dataset, "gate"):
            rollout = rollout_of(row, answer(row["task"]["entities"][0]))
            parts = Verifier().score(rollout)
            assert parts is not None
            known = {name: v for name, v in parts.values.items() if v is not None}
            line = {"id": row["id"], "draw": 0, "persona": "", "prompt": rollout.question}
            line |= {"completion": rollout.completion, "parts": {"rules": known}}
            out.write(json.dumps(line) + "\n")
    for state in ("starting", "running", "succeeded"):
        TrainingRun.objects.filter(pk=run.pk).update(state=state)


def test_a_gate_judged_by_rules_alone(tmp_path: Path) -> None:
    """Short answers are wanted. A candidate that learnt nothing is as long-winded as the base;
    one that leaves the needed words out loses quality."""
    dataset = instructions(tmp_path, 96)
    spec = create_gate(
        actor=admin(),
        name="Rules",
        dataset=dataset,
        baseline=made("base"),
        scorers=RULED,
        rules={**RULES, "quality_margin": 0.2},  # 24 prompts that are all alike show no less
    )
    wordy = "Take {0} and then go on for very long, again and again, until nobody listens, at all."
    answers = {
        "brief": "Here, take {0} now.", "same": f"{wordy} {wordy}", "empty": "Here, take it now.",
    }  # fmt: skip
    verdicts = {}
    for name, text in answers.items():
        gate = start_gate(actor=admin(), spec=spec, candidate=made(name, "grpo"))
        evaluated(gate.candidate_evaluation, text.format)
        if name == "brief":
            evaluated(gate.baseline_evaluation, answers["same"].format)
        assert decide_gate(pk=gate.pk)
        verdicts[name] = GateRun.objects.get(pk=gate.pk).verdict
    assert verdicts == {"brief": "pass", "same": "no_difference", "empty": "fail"}
    failed = GateRun.objects.get(candidate__name="empty")
    assert failed.result["axes"]["personalization"]["mean"] > 0
    # What failed is asked again with its task, so that rules can judge it elsewhere.
    cases = list(rows_of(row["id"] for row in snapshots.prompts(dataset, "gate")))
    assert cases
    assert all(row["task"]["words"] == [0, 20] for row in cases)


def test_a_gate_without_tasks_is_refused(tmp_path: Path) -> None:
    bring_in("instructions", *[
        {"prompt": f"Q {n}?", "completion": "A.", "category": "plain", "task": {"entities": ["x"]}}
        for n in range(40)
    ])  # fmt: skip
    goals = frozen("instructions", name="Goals", categories=["plain"], train=50, gate=50)
    values: dict[str, Any] = {"actor": admin(), "baseline": made("base"), "rules": RULES}
    with pytest.raises(InvalidInput, match="of 20 items only 0 have a task") as caught:
        create_gate(name="No lengths", dataset=goals, scorers=RULED, **values)
    assert (caught.value.field, caught.value.code) == ("personalization", "no_tasks")
    judge = reward_model("judge", "personalization")
    mixed = {"quality": ["rules"], "personalization": ["personalization"]}
    spec = create_gate(name="Half", dataset=goals, scorers=mixed, personalization=judge, **values)
    assert spec.scorers["quality"] == ["rules"]


def test_the_form_offers_rules() -> None:
    form = GateForm()
    for axis in ("quality", "personalization"):
        assert "rules" in dict(form.fields[axis].choices)  # type: ignore[attr-defined]
