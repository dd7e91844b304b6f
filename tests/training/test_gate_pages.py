"""Pages of gates: who may, in how many queries, what people do there."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.conftest import asks_for_login, make_user
from tests.training.factories import admin
from tests.training.gate_factories import RULES, gate, measured, plant, policy
from tests.training.test_gates import better, plain, worse
from training.models import EdgeCase, GateRun, GateSpec, OverrideRequest, Promotion
from training.services.verdicts import decide_ready
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog.models import Contestant

pytestmark = pytest.mark.django_db
MOST = 14
PAGES: list[tuple[str, tuple[Any, ...]]] = [
    ("gates", ()), ("gate_new", ()), ("gate", (1,)), ("gate_run", (1,)), ("gate_progress", (1,)),
    ("gate_audit", (1,)), ("edges", ()), ("baseline", (1,)),
]  # fmt: skip
POSTS: list[tuple[str, tuple[Any, ...]]] = [
    ("gate_start", (1,)), ("gate_again", (1,)), ("gate_promote", (1,)), ("gate_override", (1,)),
    ("override_answer", (1,)), ("edge_retire", (1,)),
]  # fmt: skip


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(admin())
    return client


def url(name: str, *args: Any) -> str:
    return reverse(f"training:{name}", args=args)


def text(response: Any) -> str:
    return str(response.content.decode())


@pytest.mark.parametrize(("name", "args"), PAGES + POSTS)
def test_only_administrators_see_gates(
    client: Client, name: str, args: tuple[Any, ...], bob: User, chen: User, vera: User
) -> None:
    ask = client.post if (name, args) in POSTS else client.get
    assert asks_for_login(ask(url(name, *args)))
    for user in (bob, chen, vera):
        client.force_login(user)
        assert ask(url(name, *args)).status_code == 403


@pytest.mark.parametrize(("name", "args"), PAGES + POSTS)
def test_wrong_methods_and_unknown_ids(boss: Client, name: str, args: tuple[Any, ...]) -> None:
    if (name, args) in POSTS:
        assert boss.get(url(name, *args)).status_code == 405
        assert boss.post(url(name, *args)).status_code == 404
    else:
        assert boss.put(url(name, *args)).status_code == 405
        assert boss.get(url(name, *args)).status_code == (404 if args else 200)


def form(spec: GateSpec, **changes: Any) -> dict[str, Any]:
    return {
        "name": "By form", "dataset": spec.dataset_id, "baseline": spec.baseline_id,
        "quality": ["quality/auditors"], "quality_run": spec.quality_id,
        "personalization": ["personalization/auditors"],
        "personalization_run": spec.personalization_id, "preset": "tiny", "draws": 1,
        "max_completion": 28, "temperature": 0.9, "to_audit": 2, "edge_draw": 50,
        **{name: "" if value is None else value for name, value in spec.rules.items()},
        **changes,
    }  # fmt: skip


def test_a_gate_by_form_with_its_mistakes_beside_the_fields(boss: Client, tmp_path: Path) -> None:
    spec = gate(tmp_path)
    wrong = boss.post(url("gate_new"), form(spec, level=0.2, quality_run=""))
    assert wrong.status_code == 422
    assert "Choose the reward model." in text(wrong)
    for _again in range(2):
        made = boss.post(url("gate_new"), form(spec))
        assert made.status_code == 302, text(made)
    assert GateSpec.objects.count() == 2
    assert GateSpec.objects.get(name="By form").scorers["quality"] == ["quality/auditors"]


def test_a_model_goes_through_by_form_once_and_its_progress_is_shown(
    boss: Client, tmp_path: Path, django_assert_max_num_queries: Any
) -> None:
    spec = gate(tmp_path)
    candidate = policy("new", spec.baseline, {})
    values = {"candidate": candidate.pk, "key": uuid.uuid4().hex}
    for _again in range(2):
        sent = boss.post(url("gate_start", spec.pk), values)
    run = GateRun.objects.get()
    assert sent["Location"] == url("gate_run", run.pk)
    assert "queued" in text(boss.get(url("gate_progress", run.pk)))
    for side, score in ((run.candidate_evaluation, better), (run.baseline_evaluation, plain)):
        plant(side, spec, score)
    decide_ready()
    assert boss.get(url("gate_progress", run.pk))["HX-Refresh"] == "true"
    for name, args in (("gate_run", (run.pk,)), ("gate", (spec.pk,)), ("gates", ())):
        with django_assert_max_num_queries(MOST):
            page = text(boss.get(url(name, *args)))
        assert "passed" in page


def test_the_verdict_has_reasons_pictures_and_edge_cases(boss: Client, tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = measured(spec, policy("bad", spec.baseline, {}), worse, plain)
    page = text(boss.get(url("gate_run", run.pk)))
    assert "Quality is shown to be lower: −0." in page
    assert page.count("<svg") == 2
    assert "Make it a contestant" not in page
    assert "Let it in all the same" in page
    assert EdgeCase.objects.count() > 0
    listed = text(boss.get(url("edges")))
    assert all(case.name in listed for case in EdgeCase.objects.all())


def test_reading_and_promoting_by_form(boss: Client, tmp_path: Path) -> None:
    spec = gate(tmp_path, to_audit=2)
    run = measured(spec, policy("good", spec.baseline, {}), better, plain)
    assert "0 of 2 successes were read" in text(boss.get(url("gate_run", run.pk)))
    page = text(boss.get(url("gate_audit", run.pk)))
    assert page.count("Fake success</button>") == 2
    early = boss.post(url("gate_promote", run.pk), {"name": "ours"})
    assert early.status_code == 422
    assert "0 of 2 successes were read so far" in text(early)
    for row in page.split('name="item" value="')[1:]:
        values = {"item": row.split('"')[0], "draw": 0, "verdict": "genuine", "note": "真的"}
        assert boss.post(url("gate_audit", run.pk), values).status_code == 302
    for _again in range(2):
        done = boss.post(url("gate_promote", run.pk), {"name": "ours", "version": "1"})
        assert done.status_code == 302
    assert Promotion.objects.get().kind == "gate"
    assert Contestant.objects.get(kind="checkpoint").provenance["gate"]["id"] == run.pk
    assert "Promoted" in text(boss.get(url("gate_run", run.pk)))


def test_an_override_waits_for_a_second_administrator(boss: Client, tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = measured(spec, policy("hacked", spec.baseline, {}), worse, plain)
    values = {"name": "hacked", "reason": "as a control", "key": uuid.uuid4().hex}
    for _again in range(2):
        assert boss.post(url("gate_override", run.pk), values).status_code == 302
    asked = OverrideRequest.objects.get()
    assert "Somebody else must agree." in text(boss.get(url("gates")))
    assert not Contestant.objects.filter(name="hacked").exists()
    boss.post(url("override_answer", asked.pk), {"agreed": "1"})
    assert OverrideRequest.objects.get().agreed is None
    boss.force_login(make_user("second", Role.ADMIN))
    assert "Agree: let it in" in text(boss.get(url("gates")))
    boss.post(url("override_answer", asked.pk), {"agreed": "1"})
    assert Contestant.objects.get(name="hacked").provenance["promotion"] == "override"


def test_cases_by_hand_and_a_baseline(boss: Client, tmp_path: Path) -> None:
    empty = boss.post(url("edges"), {"prompt": " ", "source": "authored"})
    assert empty.status_code == 422
    values = {"prompt": "<b>为什么?</b>", "source": "complaint", "reason": "vague"}
    assert boss.post(url("edges"), values).status_code == 302
    page = text(boss.get(url("edges"), {"source": "complaint"}))
    assert "&lt;b&gt;为什么?&lt;/b&gt;" in page
    boss.post(url("edge_retire", EdgeCase.objects.get().pk))
    assert "为什么" not in text(boss.get(url("edges")))
    base = gate(tmp_path, rules=RULES).baseline
    assert boss.post(url("baseline", base.pk), {"name": "base"}).status_code == 302
    assert Contestant.objects.get(name="base").provenance["promotion"] == "baseline"
    other = boss.post(url("baseline", policy("new", base, {}).pk), {"name": "new"})
    assert other.status_code == 422
