"""The launch form: made from the schema, checked beside its fields, launched once, cloned."""

from __future__ import annotations

import ast
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.training.factories import admin
from tests.training.factories_runs import make_run, say
from tests.training.run_factories import instructions
from training.engine import monitor
from training.engine.config.load import Problem, load, preset_names, read_preset
from training.engine.config.preflight import Machine, check
from training.engine.config.schema import KINDS, Monitor
from training.engine.monitor.rules import EXTERNAL, RULES
from training.forms.runs import RunForm, schema
from training.launching import InputSpec
from training.models import RunInput, TrainingRun
from training.services.runs import launch
from training.words import fields as words
from training.words.problems import FIXED, PATTERNS, problem_text
from training.words.rules import RULES as RULE_WORDS
from training.words.rules import needed, templates

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trainer")]
NEW = "/training/runs/new/"


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(admin())
    return client


def text(response: Any) -> str:
    return str(response.content.decode())


def sent(form: RunForm, **changes: Any) -> dict[str, Any]:
    """What a browser would send of a form as it stands."""
    values = {name: form[name].value() for name in form.fields}
    values |= {"kind": form.kind, "preset": form.preset, "name": "By form", **changes}
    return {name: "" if value is None else value for name, value in values.items()}


def sft(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    dataset = instructions(tmp_path)
    form = RunForm(kind="sft", preset="tiny")
    return sent(form, **{"inputs.train": f"set:{dataset.pk}:train", **changes})


# Made from the schema


def test_every_setting_has_words_and_every_word_a_setting() -> None:
    typed_in = {n for n in schema() if not n.startswith(words.BY_INPUTS)}
    assert typed_in <= set(words.FIELDS)
    assert {n for n in words.FIELDS if "." in n} <= set(schema())
    assert {f"monitor.{name}" for name in Monitor.__dataclass_fields__} <= set(words.FIELDS)
    for kind, names in words.IMPORTANT.items():
        assert set(names) <= typed_in, kind


def test_every_rule_has_words() -> None:
    wanted = {rule.name for rule in RULES} | set(EXTERNAL)
    assert wanted <= set(RULE_WORDS)
    for rule in RULES:
        found = RULE_WORDS[rule.name]
        assert found.symptom and found.cause and found.remedy, rule.name  # noqa: PT018


def test_every_finding_has_the_numbers_of_its_sentence() -> None:
    """Read from the source: what a rule puts beside its message must fill a translated one."""
    seen = set()
    for path in Path(monitor.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding"):
                continue
            name = getattr(node.args[0], "value", "wander")  # two rules share a function
            numbers = next((a for a in node.args if isinstance(a, ast.Dict)), ast.Dict([], []))
            keys = {getattr(key, "value", None) for key in numbers.keys}
            assert any(needed(s) <= keys for s in templates(RULE_WORDS[name])), (name, keys)
            seen.add(name)
    assert {"hacking", "collapse", "kl_band", "probe_fall"} <= seen


def test_the_words_of_presets_are_those_of_their_files() -> None:
    for name in preset_names():
        found = read_preset(name)
        assert " ".join(found["about"].split()) == str(words.PRESETS[name])
        assert set((found.get("hints") or {}).values()) <= set(words.HINTS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("preset", preset_names())
def test_a_form_that_nobody_changed_changes_nothing(kind: str, preset: str) -> None:
    form = RunForm(kind=kind, preset=preset)
    again = RunForm(sent(form), kind=kind, preset=preset)
    assert again.is_valid(), again.errors
    assert again.config() == {}
    shown = {row.field.name for row in [*again.first(), *again.input_rows(), *again.important()]}
    shown |= {row.field.name for section in again.others() for row in section.rows}
    assert shown | {"key"} == set(again.fields)


def test_only_what_was_changed_differs_from_the_preset() -> None:
    form = RunForm(kind="grpo", preset="tiny")
    changes = {
        "grpo.beta": "0.06", "grpo.batch": "32", "reward.alpha": "0: 0.6, 1: 0.5",
        "reward.phrases": "just for you\n\nmy friend", "grpo.evaluate_at": "0, 1",
        "inputs.quality": "rules",
    }  # fmt: skip
    again = RunForm(sent(form, **changes), kind="grpo", preset="tiny")
    assert again.is_valid(), again.errors
    assert again.config() == {
        "grpo": {"beta": 0.06, "batch": 32, "evaluate_at": [0.0, 1.0]},
        "reward": {
            "alpha": [[0.0, 0.6], [1.0, 0.5]], "phrases": ["just for you", "my friend"],
            "quality": "rules",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [("grpo.steps", "many"), ("grpo.beta", "nan"), ("reward.alpha", "0.7"),
     ("grpo.evaluate_at", "0; 1"), ("seed", "-1")],
)  # fmt: skip
def test_what_cannot_be_read_is_said_beside_its_field(boss: Client, name: str, value: str) -> None:
    form = RunForm(kind="grpo", preset="tiny")
    response = boss.post(NEW, {**sent(form), name: value, "action": "check"})
    assert response.status_code == 422
    assert f'href="#id_{name}"' in text(response)
    assert not TrainingRun.objects.exists()


# Checked


def test_the_page_begins_with_presets_and_kinds(boss: Client) -> None:
    page = text(boss.get(NEW))
    assert "?preset=tiny&amp;kind=grpo" in page
    assert "half a million weights" in page
    assert "?preset=tiny" in text(boss.get(NEW, {"preset": "none", "kind": "sft"}))
    assert boss.post(NEW, {"preset": "none", "kind": "sft"}).status_code == 404


def test_the_form_opens_in_few_queries_with_hints_and_arithmetic(
    boss: Client, django_assert_max_num_queries: Any, tmp_path: Path
) -> None:
    instructions(tmp_path)
    with django_assert_max_num_queries(16):
        page = text(boss.get(NEW, {"preset": "reference-8b", "kind": "grpo"}))
    assert "0.01 lets the policy cheat, 0.1 hardly lets it move" in page
    assert "128 answers per step, in 16 groups" in page
    assert "400 steps ask 6400 prompts" in page
    assert "All settings" in page
    for name in ("data.train", "reward.quality", "data.sha256"):
        assert f'name="{name}"' not in page


def test_a_check_lists_problems_beside_their_fields_with_a_value_that_fits(boss: Client) -> None:
    form = RunForm(kind="grpo", preset="tiny")
    data = sent(form, **{"grpo.batch": "60", "grpo.temperature": "1.3", "action": "check"})
    response = boss.post(NEW, data)
    page = text(response)
    assert response.status_code == 422
    assert "is not a multiple of the group of 8" in page
    assert 'name="fill" value="grpo.batch=56"' in page
    assert 'name="fill" value="grpo.temperature=0.9"' in page  # a warning
    assert "Choose a reward model that passed its gate." in page
    filled = boss.post(NEW, {**data, "fill": "grpo.batch=56"})
    page = text(filled)
    assert "is not a multiple" not in page
    assert re.search(r'name="grpo.batch" value="56"', page)
    assert not TrainingRun.objects.exists()


def test_problems_without_a_field_are_told_above(monkeypatch: pytest.MonkeyPatch) -> None:
    form = RunForm(sent(RunForm(kind="sft", preset="tiny")), kind="sft", preset="tiny")
    assert form.is_valid()
    form.tell([Problem("storage", "The quota is used up."), Problem("data.train", "is missing")])
    assert "Storage: The quota is used up." in form.non_field_errors()[0]
    assert form.errors["inputs.train"] == ["is missing"]


def test_the_arithmetic_is_a_part_of_its_own(boss: Client) -> None:
    form = RunForm(kind="grpo", preset="tiny")
    data = sent(form, **{"grpo.batch": "32", "grpo.steps": "10", "action": "arithmetic"})
    part = text(boss.post(NEW, data))
    assert "<html" not in part
    assert "32 answers per step, in 4 groups" in part
    assert "10 steps ask 40 prompts" in part
    assert "once they can be read" in text(boss.post(NEW, {**data, "grpo.steps": "x"}))


def test_the_difference_of_a_clone_knows_what_was_typed_in_beside_a_problem(boss: Client) -> None:
    run = grpo_run()
    form = RunForm(kind="grpo", preset="tiny", parent=run)
    data = sent(form, **{"from": run.pk, "grpo.batch": "60", "action": "check"})
    page = text(boss.post(NEW, data))
    differs = page[page.index("What differs") :].partition("</section>")[0]
    assert "<del>64</del>" in differs
    assert "<ins>60</ins>" in differs
    assert "once the fields below can be read" in text(boss.post(NEW, {**data, "seed": "x"}))


def test_problems_of_the_engine_are_known_sentences() -> None:
    sentences = [
        *FIXED, "must be one of group, batch, none", "needs 8 GPU, none is found",
        "needs 8 GPU, 1 found", "needs 80 GB a GPU", "the package vllm is not installed",
        "needs 400 GB of free disk, 35.1 GB are left", "a sentence that nobody knows",
    ]  # fmt: skip
    assert [problem_text(sentence) for sentence in sentences] == sentences
    config = load({"kind": "grpo", "preset": "reference-8b", "grpo": {"batch": 3, "beta": -1}})
    problems = check(config, Machine(lambda _name: False))
    assert len(problems) > 6
    for problem in problems:
        known = problem.message in FIXED
        assert known or any(re.fullmatch(p, problem.message) for p, _text in PATTERNS)
        assert problem_text(problem.message) == problem.message


# Launched


def test_a_check_without_problems_launches_nothing_and_a_double_click_one_run(
    boss: Client, tmp_path: Path
) -> None:
    data = sft(tmp_path, **{"sft.epochs": "1", "note": "A first try."})
    checked = boss.post(NEW, {**data, "action": "check"})
    assert checked.status_code == 200
    assert "The check found no problem." in text(checked)
    assert not TrainingRun.objects.exists()
    for _twice in range(2):
        response = boss.post(NEW, {**data, "action": "launch"})
        assert response.status_code == 302
    run = TrainingRun.objects.get()
    assert response["Location"] == reverse("training:run", args=[run.pk])
    assert (run.name, run.kind, run.config) == ("By form", "sft", {"sft": {"epochs": 1.0}})
    assert (run.note, run.created_by) == ("A first try.", admin())
    assert run.inputs.get().split == "train"
    other = boss.post(NEW, {**data, "action": "launch", "key": uuid.uuid4().hex})
    assert other.status_code == 422
    assert "There is a run “By form” already." in text(other)


def test_an_input_that_is_not_offered_is_refused(boss: Client, tmp_path: Path) -> None:
    data = sft(tmp_path, **{"inputs.train": "set:999:train", "action": "launch"})
    assert boss.post(NEW, data).status_code == 422
    assert not TrainingRun.objects.exists()


# Cloned


def grpo_run(**values: Any) -> TrainingRun:
    base = make_run("sft", "succeeded", name="The base")
    run = make_run("grpo", name="The run", config={"grpo": {"steps": 50}}, **values)
    RunInput.objects.create(run=run, role="base", source=base, sha256="f" * 64)
    return run


def test_a_clone_is_the_same_form_and_shows_what_differs(boss: Client) -> None:
    run = grpo_run(seed=7)
    alert = say(run)
    plain = text(boss.get(NEW, {"from": run.pk}))
    assert "Nothing yet: change a setting below." in plain
    page = text(boss.get(NEW, {"from": run.pk, "alert": alert.pk}))
    assert re.search(r'name="grpo.steps" value="50"', page)
    assert re.search(r'name="grpo.beta" value="0.06"', page)
    assert re.search(r'name="seed" value="7"', page)
    assert "The run (2)" in page
    assert re.search(r'<option value="run:\d+" selected>The base', page)
    differs = page[page.index("What differs") :].partition("</section>")[0]
    assert "grpo.beta" in differs
    assert "grpo.steps" not in differs
    assert boss.get(NEW, {"from": 999}).status_code == 404
    other = make_run()
    assert boss.get(NEW, {"from": other.pk, "alert": alert.pk}).status_code == 404


def test_every_proposal_of_a_rule_reaches_the_configuration_of_a_clone() -> None:
    run = grpo_run()
    proposed = {"data.persona_turns": 10, "reward.ensemble": "lower", "grpo.max_grad_norm": 0.5}
    form = RunForm(kind="grpo", preset="tiny", parent=run, changes=proposed)
    again = RunForm(sent(form), kind="grpo", preset="tiny", parent=run)
    assert again.is_valid(), again.errors
    found = again.config()
    assert found["data"] == {"persona_turns": 10}
    assert found["reward"] == {"ensemble": "lower"}
    assert found["grpo"] == {"steps": 50, "max_grad_norm": 0.5}


def test_a_clone_knows_its_parent_and_its_alert(boss: Client, tmp_path: Path) -> None:
    dataset = instructions(tmp_path)
    inputs = {"train": InputSpec(dataset=dataset, split="train")}
    parent = launch(actor=admin(), name="P", kind="sft", preset="tiny", inputs=inputs,
                    config={"sft": {"epochs": 1.0}, "grpo": {"beta": 0.05}})  # fmt: skip
    alert = say(parent, changes={"sft.learning_rate": 0.001})
    form = RunForm(kind="sft", preset="tiny", parent=parent, inputs=inputs,
                   changes=alert.changes)  # fmt: skip
    data = sent(form, **{"from": parent.pk, "alert": alert.pk, "name": "Q", "action": "launch"})
    assert boss.post(NEW, data).status_code == 302
    made = TrainingRun.objects.get(name="Q")
    assert (made.parent, made.from_alert) == (parent, alert)
    assert made.config == {
        "sft": {"epochs": 1.0, "learning_rate": 0.001},
        "grpo": {"beta": 0.05},  # what the form does not show stays
    }
