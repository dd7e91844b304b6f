"""Where edge cases come from besides gates: answers of runs, and complaints of annotators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.services import review_appeals, review_problems
from tests.annotation.factories import make_desk
from tests.annotation.review import report
from tests.annotation.test_review import ordinary_appeal
from tests.training.factories import admin, make_people
from tests.training.gate_factories import gate, made, measured, policy
from tests.training.run_factories import instructions
from tests.training.test_gates import better, person, plain
from training import snapshots
from training.enums import Role
from training.models import AuditMark, EdgeCase, SampleLine, TrainingRun
from training.selectors.audits import liked, sample
from training.selectors.complaints import complaints
from training.selectors.gates import edge_names
from training.services.audits import mark
from training.services.edges import add_case, keep_complaint, keep_rollout, rows_of
from training.services.gates import create_gate, edges_to_ask, start_gate
from training.services.promotions import promote
from training.storage import directory
from webapp.catalog.enums import Split
from webapp.catalog.models import Persona, Prompt
from webapp.catalog.services.personas import withdraw_consent
from webapp.catalog.services.prompts import get_or_create_prompt
from webapp.core.errors import Forbidden, InvalidInput, Refused

pytestmark = pytest.mark.django_db


# Rollouts


def answered(tmp_path: Path) -> tuple[TrainingRun, dict[str, Any], int]:
    """A policy with one answer in its directory: the run, the row that was asked, its place."""
    dataset = instructions(tmp_path)
    run = made("policy", "grpo", {Role.TRAIN: (dataset, "train")})
    row = next(iter(snapshots.prompts(dataset, "train")))
    said = {"step": 7, "prompt_id": row["id"], "persona": "", "prompt": "…", "completion": "Nope."}
    file = directory(run.directory) / "samples.jsonl"
    first = json.dumps({"step": 1, "blank": True}) + "\n"
    file.write_text(first + json.dumps(said) + "\n")
    SampleLine.objects.create(run=run, offset=0, step=1)
    SampleLine.objects.create(run=run, offset=len(first), step=7)
    return run, row, len(first)


def test_an_answer_becomes_a_case_with_what_was_asked(tmp_path: Path) -> None:
    run, row, offset = answered(tmp_path)
    case = keep_rollout(actor=admin(), run=run, offset=offset)
    assert keep_rollout(actor=admin(), run=run, offset=offset) == case
    assert (case.source, case.item, case.reason) == ("rollout", row["id"], "policy, step 7")
    asked = next(rows_of([case.item]))
    assert {name: asked[name] for name in ("id", "persona", "prompt")} == {
        name: row[name] for name in ("id", "persona", "prompt")
    }


@pytest.mark.parametrize("offset", [0, 5])
def test_no_case_without_an_answer_or_a_row(tmp_path: Path, offset: int) -> None:
    run, _row, _offset = answered(tmp_path)
    with pytest.raises(Refused) as refused:
        keep_rollout(actor=admin(), run=run, offset=offset)
    assert refused.value.code == "gone"


def test_the_button_beside_an_answer(tmp_path: Path, client: Client) -> None:
    run, row, offset = answered(tmp_path)
    client.force_login(admin())
    page = client.get(reverse("training:run_samples", args=[run.pk])).content.decode()
    assert f'name="offset" value="{offset}"' in page
    url = reverse("training:edge_rollout", args=[run.pk])
    sent = client.post(url, {"offset": offset, "step": 7}, follow=True)
    assert "Every gate asks about it from now on." in sent.content.decode()
    assert EdgeCase.objects.get().item == row["id"]
    assert client.post(url, {}).status_code == 400
    client.force_login(person("viewer", "viewer"))
    assert client.post(url, {"offset": offset}).status_code == 403
    with pytest.raises(Forbidden):
        keep_rollout(actor=person("second", "viewer"), run=run, offset=offset)


# Complaints


def test_an_upheld_appeal_is_offered_and_kept_once(client: Client) -> None:
    desk, row = ordinary_appeal()
    assert complaints() == []
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    found = complaints()
    assert [c.item for c in found] == [row.lease.item_id]
    client.force_login(desk.manager)
    page = client.get(reverse("training:edges")).content.decode()
    assert "Complaints of annotators" in page
    assert found[0].question in page
    url = reverse("training:edge_complaint", args=[row.lease.item_id])
    client.post(url)
    client.post(url)
    case = EdgeCase.objects.get()
    assert (case.source, case.item) == ("complaint", found[0].row["id"])
    assert case.reason == row.text[:300]
    assert case.persona == found[0].persona
    assert complaints() == []


@pytest.mark.parametrize(("to", "n"), [("keep", 0), ("drop", 1), ("hold", 1), ("adjudicate", 1)])
def test_a_report_that_was_found_just_is_offered(to: str, n: int) -> None:
    desk = make_desk(people=1, n_items=1)
    report(desk, desk.items()[0], desk.people[0])
    review_problems.resolve_problems(actor=desk.manager, item=desk.items()[0], to=to)
    assert len(complaints()) == n


def test_what_is_held_out_or_withdrawn_is_never_offered() -> None:
    desk, row = ordinary_appeal()
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    item = row.lease.item
    Prompt.objects.filter(pk=item.prompt_id).update(split=Split.HOLDOUT)
    assert complaints() == []
    with pytest.raises(Refused):
        keep_complaint(actor=desk.manager, item=item.pk)
    assert not EdgeCase.objects.exists()


def test_a_person_who_withdrew_complains_no_more() -> None:
    desk, row = ordinary_appeal()
    review_appeals.uphold_appeal(actor=desk.manager, appeal=row, answer="You are right.")
    version = row.lease.item.persona_version
    assert version is not None
    persona = Persona.objects.get(pk=version.persona_id)
    withdraw_consent(actor=desk.manager, persona=persona)
    assert complaints() == []


def test_a_case_that_is_held_out_or_sealed_by_now_is_not_asked(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    cases = [add_case(actor=admin(), prompt=f"Question {n}?") for n in range(3)]
    asked = [{"role": "user", "content": "Question 1?"}]
    prompt = get_or_create_prompt(messages=asked)
    items = {case.item for case in cases}
    assert set(edges_to_ask()) == items
    Prompt.objects.filter(pk=prompt.pk).update(split=Split.HOLDOUT)
    run = start_gate(actor=admin(), spec=spec, candidate=policy("new", spec.baseline, {}))
    assert set(run.edges) == items - {cases[1].item}


def test_nobody_types_in_what_is_held_out(client: Client) -> None:
    prompt = get_or_create_prompt(messages=[{"role": "user", "content": "A secret question?"}])
    Prompt.objects.filter(pk=prompt.pk).update(split=Split.HOLDOUT)
    with pytest.raises(InvalidInput, match="held out") as refused:
        add_case(actor=admin(), prompt=" A secret question? ")
    assert (refused.value.field, refused.value.code) == ("prompt", "holdout")
    client.force_login(admin())
    sent = client.post(
        reverse("training:edges"), {"prompt": "A secret question?", "source": "authored"}
    )
    assert "held out" in sent.content.decode()
    assert not EdgeCase.objects.exists()


def test_a_summary_that_is_typed_in_belongs_to_its_person() -> None:
    version = make_people(1)[0]
    person = version.persona
    case = add_case(actor=admin(), prompt="Anything?", summary=f" {version.text.summary} ")
    assert case.persona == person
    Persona.objects.filter(pk=person.pk).update(split=Split.HOLDOUT)
    with pytest.raises(InvalidInput, match="held out"):
        add_case(actor=admin(), prompt="Anything else?", summary=version.text.summary)


def test_a_case_that_was_trained_on_is_told_as_such(tmp_path: Path, client: Client) -> None:
    run, _row, offset = answered(tmp_path)
    cases = [keep_rollout(actor=admin(), run=run, offset=offset),
             add_case(actor=admin(), prompt="Never trained on?")]  # fmt: skip
    spec = gate(tmp_path)
    found = measured(spec, policy("new", spec.baseline, {}), better, plain)
    named = {n.case.name: n.trained for _title, group in edge_names(found) for n in group}
    assert named == {cases[0].name: True, cases[1].name: False}
    client.force_login(admin())
    page = client.get(reverse("training:gate_run", args=[found.pk])).content.decode()
    assert page.count("trained on</span>") == 1


def test_an_answer_to_what_was_held_out_since_is_not_kept(tmp_path: Path) -> None:
    run, row, offset = answered(tmp_path)
    prompt = get_or_create_prompt(messages=row["prompt"])
    Prompt.objects.filter(pk=prompt.pk).update(split=Split.HOLDOUT)
    with pytest.raises(InvalidInput, match="held out"):
        keep_rollout(actor=admin(), run=run, offset=offset)


# Reading with few successes


def few(n: int, axis: str) -> float | None:
    """Better than the baseline, and yet only some are successes."""
    return (0.6 if n % 8 == 0 else 0.4) + (0.05 if axis == "personalization" else 0.0)


def low(n: int, axis: str) -> float | None:
    return 0.35 + (n % 3) / 100


def test_fewer_successes_than_must_be_read_are_no_dead_end(tmp_path: Path, client: Client) -> None:
    spec = gate(tmp_path)
    found = measured(spec, policy("new", spec.baseline, {}), few, low)
    assert found.verdict == "pass", found.result
    rows = sample(found)
    assert len(rows) == spec.audit
    successes = sum(map(liked, rows))
    assert 0 < successes < spec.audit
    assert all(map(liked, rows[:successes]))
    assert len({row["id"] for row in rows}) == spec.audit
    client.force_login(admin())
    page = client.get(reverse("training:gate_audit", args=[found.pk])).content.decode()
    assert f"the {spec.audit - successes} answers that came nearest are read as well" in page
    for row in rows:
        mark(actor=admin(), gate=found, item=row["id"], draw=row["draw"], verdict="genuine")
    assert AuditMark.objects.count() == spec.audit
    assert promote(actor=admin(), gate=found, name="Few").name == "Few"


def test_with_enough_successes_only_they_are_read(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    found = measured(spec, policy("new", spec.baseline, {}), better, plain)
    assert all(map(liked, sample(found)))


def test_nobody_must_read_more_than_there_is(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        create_gate(
            actor=admin(), name="Too much", dataset=spec.dataset, baseline=spec.baseline,
            scorers=spec.scorers, quality=spec.quality, personalization=spec.personalization,
            rules=spec.rules, to_audit=spec.items + 1,
        )  # fmt: skip
    assert refused.value.field == "to_audit"
