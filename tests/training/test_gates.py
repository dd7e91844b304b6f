"""Gates, edge cases, audits and promotions, on evaluations with planted scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.training.factories import admin
from tests.training.gate_factories import (
    RULES,
    gate,
    made,
    measured,
    plant,
    policy,
    reward_model,
)
from tests.training.run_factories import instructions
from training.enums import Role
from training.gate_policies import rewarded_by
from training.models import (
    AuditMark,
    BaselineEvaluation,
    Checkpoint,
    EdgeCase,
    GateRun,
    GateSpec,
    OverrideRequest,
    Promotion,
    TrainingRun,
)
from training.selectors.audits import sample, scored
from training.services import verdicts
from training.services.audits import mark
from training.services.edges import add_case, retire_case, rows_of
from training.services.evaluations import note_evaluation
from training.services.gates import create_gate, measure_again, start_gate
from training.services.promotions import answer_override, ask_override, promote, promote_baseline
from training.services.verdicts import decide_gate, decide_ready
from training.storage import directory
from webapp.accounts.models import User
from webapp.accounts.services import create_user
from webapp.catalog.models import Contestant
from webapp.core.errors import Forbidden, InvalidInput, Refused

pytestmark = pytest.mark.django_db


def person(name: str, role: str) -> User:
    return create_user(username=name, password="a-long-enough-passphrase", role=role)


def better(n: int, axis: str) -> float | None:
    return 0.55 + (n % 7) / 40 + (0.2 if axis == "personalization" else 0.0)


def plain(n: int, axis: str) -> float | None:
    return 0.55 + (n * 3 % 7) / 40


def worse(n: int, axis: str) -> float | None:
    return 0.2 + (n % 5) / 40


def passed(tmp_path: Path, **options: Any) -> GateRun:
    spec = gate(tmp_path, **options)
    found = measured(spec, policy("new", spec.baseline, {}), better, plain)
    assert found.verdict == "pass", found.result
    return found


def read_all(found: GateRun, verdict: str = "genuine") -> None:
    for row in sample(found):
        mark(actor=admin(), gate=found, item=row["id"], draw=row["draw"], verdict=verdict)


def test_a_better_policy_passes_an_equal_one_is_no_different_a_worse_one_fails(
    tmp_path: Path,
) -> None:
    spec = gate(tmp_path)
    verdicts = {
        name: measured(spec, policy(name, spec.baseline, {}), score, plain).verdict
        for name, score in {"better": better, "equal": plain, "worse": worse}.items()
    }
    assert verdicts == {"better": "pass", "equal": "no_difference", "worse": "fail"}


def test_a_gate_is_named_by_its_content_and_never_changes(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    again = create_gate(
        actor=admin(), name="Gate", dataset=spec.dataset, baseline=spec.baseline,
        scorers=spec.scorers, quality=spec.quality, personalization=spec.personalization,
        rules=RULES,
    )  # fmt: skip
    assert again.pk == spec.pk
    other = create_gate(
        actor=admin(), name="Stricter", dataset=spec.dataset, baseline=spec.baseline,
        scorers=spec.scorers, quality=spec.quality, personalization=spec.personalization,
        rules={**RULES, "quality_margin": 0.01},
    )  # fmt: skip
    assert other.content_sha256 != spec.content_sha256
    with pytest.raises(IntegrityError), transaction.atomic():
        GateSpec.objects.filter(pk=spec.pk).update(rules={})


def test_the_same_gate_with_another_content_is_refused(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        create_gate(
            actor=admin(), name="Gate", dataset=spec.dataset, baseline=spec.baseline,
            scorers={"quality": ["rules"], "personalization": ["rules"]}, rules=RULES,
        )  # fmt: skip
    assert refused.value.code == "taken"


def test_a_judge_must_have_passed_and_there_must_be_enough_prompts(tmp_path: Path) -> None:
    dataset = instructions(tmp_path, 96, name="Gate items")
    values: dict[str, Any] = {
        "actor": admin(),
        "dataset": dataset,
        "baseline": made("base"),
        "rules": RULES,
    }
    asked = {"quality": ["quality"], "personalization": ["rules"]}
    weak = reward_model("weak", "quality")
    TrainingRun.objects.filter(pk=weak.pk).update(manifest={"facts": {"gate": {"passed": False}}})
    weak.refresh_from_db()
    with pytest.raises(InvalidInput) as refused:
        create_gate(name="Weak", scorers=asked, quality=weak, **values)
    assert refused.value.code == "judge_failed"
    rules_alone = {"quality": ["rules"], "personalization": ["rules"]}
    assert create_gate(name="Rules", scorers=rules_alone, quality=weak, **values).quality is None
    with pytest.raises(InvalidInput) as few:
        create_gate(name="Few", scorers=rules_alone, **{**values, "rules": {}})
    assert few.value.field == "minimum"


def test_a_gate_s_evaluation_says_nothing_about_the_base_as_such(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = start_gate(actor=admin(), spec=spec, candidate=policy("new", spec.baseline, {}))
    evaluation = run.baseline_evaluation
    assert evaluation is not None
    plant(evaluation, spec, plain)
    evaluation.refresh_from_db()
    note_evaluation(evaluation)
    assert not BaselineEvaluation.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"rules": {"level": 2}}, "level"),
        ({"scorers": {"quality": ["rules"]}}, "personalization"),
        ({"scorers": {"quality": ["taste"], "personalization": ["rules"]}}, "quality"),
        ({"scorers": {"quality": ["quality"], "personalization": ["rules"]}}, "quality_run"),
    ],
)
def test_a_gate_that_cannot_be_is_refused_by_field(
    tmp_path: Path, changes: dict[str, Any], field: str
) -> None:
    values = {"scorers": {"quality": ["rules"], "personalization": ["rules"]}, **changes}
    with pytest.raises(InvalidInput) as refused:
        create_gate(
            actor=admin(), name="Gate", dataset=instructions(tmp_path, 40), baseline=made("base"),
            **values,
        )  # fmt: skip
    assert refused.value.field == field


def test_a_reward_model_that_saw_the_items_cannot_judge_on_them(tmp_path: Path) -> None:
    dataset = instructions(tmp_path, 40)
    saw = reward_model("saw", "quality", taken={Role.HELDOUT: (dataset, "gate")})
    with pytest.raises(InvalidInput) as refused:
        create_gate(
            actor=admin(), name="Gate", dataset=dataset, baseline=made("base"), quality=saw,
            scorers={"quality": ["quality"], "personalization": ["rules"]},
        )  # fmt: skip
    assert refused.value.code == "seen"


def test_whoever_gave_the_reward_does_not_judge_but_its_auditors_may(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    judges = {Role.QUALITY: spec.quality, Role.PERSONALIZATION: spec.personalization}
    trained = policy("rewarded", spec.baseline, judges)  # type: ignore[arg-type]
    later = policy("later", trained, {})
    assert rewarded_by(later) == {spec.quality_id, spec.personalization_id}
    for candidate in (trained, later):
        with pytest.raises(Refused) as refused:
            start_gate(actor=admin(), spec=spec, candidate=candidate)
        assert refused.value.code == "used_as_reward"
    auditing = create_gate(
        actor=admin(), name="Auditors", dataset=spec.dataset, baseline=spec.baseline,
        quality=spec.quality, personalization=spec.personalization, rules=RULES,
        scorers={axis: [f"{axis}/auditors"] for axis in ("quality", "personalization")},
    )  # fmt: skip
    assert measured(auditing, trained, better, plain).verdict == "pass"


def test_the_same_click_starts_one_gate_and_the_baseline_is_measured_once(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    candidate = policy("new", spec.baseline, {})
    first = start_gate(actor=admin(), spec=spec, candidate=candidate, key="k")
    assert start_gate(actor=admin(), spec=spec, candidate=candidate, key="k").pk == first.pk
    other = start_gate(actor=admin(), spec=spec, candidate=policy("newer", spec.baseline, {}))
    assert other.baseline_evaluation_id == first.baseline_evaluation_id
    assert TrainingRun.objects.filter(kind="evaluate").count() == 3


def test_a_gate_decides_once_and_only_when_both_sides_are_there(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = start_gate(actor=admin(), spec=spec, candidate=policy("new", spec.baseline, {}))
    plant(run.candidate_evaluation, spec, better)
    assert decide_ready() == 0
    plant(run.baseline_evaluation, spec, plain)
    assert decide_ready() == 1
    decided = GateRun.objects.get(pk=run.pk)
    assert decide_gate(pk=run.pk) is False
    with pytest.raises(IntegrityError), transaction.atomic():
        GateRun.objects.filter(pk=run.pk).update(verdict="fail")
    assert (decided.n_ok, decided.n_err) == (spec.items, 0)


def test_too_many_answers_without_a_score_give_no_verdict(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    found = measured(
        spec, policy("new", spec.baseline, {}),
        lambda n, axis: None if n < 10 else better(n, axis), plain,
    )  # fmt: skip
    assert found.verdict == "no_verdict"
    assert found.n_err == 10


def test_an_evaluation_that_failed_leaves_no_verdict_and_can_be_measured_again(
    tmp_path: Path,
) -> None:
    spec = gate(tmp_path)
    run = start_gate(actor=admin(), spec=spec, candidate=policy("new", spec.baseline, {}))
    run.refresh_from_db()
    plant(run.baseline_evaluation, spec, plain)
    assert run.candidate_evaluation is not None
    broken = TrainingRun.objects.filter(pk=run.candidate_evaluation.pk)
    for state in ("starting", "failed"):
        broken.update(state=state, reason="killed")
    assert decide_ready() == 1
    failed = GateRun.objects.get(pk=run.pk)
    assert (failed.state, failed.verdict) == ("failed", "")
    again = measure_again(actor=admin(), gate=failed)
    assert again.candidate_evaluation_id != run.candidate_evaluation_id
    assert again.baseline_evaluation_id == run.baseline_evaluation_id
    plant(again.candidate_evaluation, spec, better)
    decide_ready()
    assert GateRun.objects.get(pk=run.pk).verdict == "pass"


def test_failures_become_edge_cases_and_the_next_gate_says_what_became_of_them(
    tmp_path: Path,
) -> None:
    spec = gate(tmp_path)
    measured(spec, policy("bad", spec.baseline, {}), worse, plain)
    names = set(EdgeCase.objects.values_list("name", flat=True))
    assert len(names) == 10
    found = measured(spec, policy("good", spec.baseline, {}), better, plain)
    edges = found.result["edges"]
    assert set(edges["solved"]) == names
    again = measured(spec, policy("bad again", spec.baseline, {}), worse, plain)
    assert set(again.result["edges"]["regressed"]) == names
    assert EdgeCase.objects.count() > 10


def test_a_case_of_one_s_own_is_asked_besides_the_gate_s_items(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    case = add_case(actor=admin(), prompt="What about 这个?", summary="curious", reason="heard")
    assert add_case(actor=admin(), prompt="What about 这个?", summary="curious").pk == case.pk
    assert [row["id"] for row in rows_of([case.item])] == [case.item]
    found = measured(spec, policy("new", spec.baseline, {}), better, plain)
    assert found.result["edges"]["solved"] == [case.name]
    assert found.n_ok == spec.items
    retire_case(actor=admin(), case=case)
    later = start_gate(actor=admin(), spec=spec, candidate=policy("newer", spec.baseline, {}))
    later.refresh_from_db()
    assert later.edges == []


def test_no_promotion_before_successes_were_read(tmp_path: Path) -> None:
    found = passed(tmp_path, to_audit=4)
    with pytest.raises(Refused) as refused:
        promote(actor=admin(), gate=found, name="ours")
    assert refused.value.code == "not_audited"
    read_all(found)
    contestant = promote(actor=admin(), gate=found, name="ours", version="1")
    assert promote(actor=admin(), gate=found, name="ours", version="1").pk == contestant.pk
    assert contestant.kind == "checkpoint"
    assert contestant.provenance["gate"]["verdict"] == "pass"
    assert contestant.provenance["bases"][0]["name"] == "base"


def test_marks_are_kept_and_fake_successes_stop_the_promotion(tmp_path: Path) -> None:
    found = passed(tmp_path, to_audit=4)
    rows = sample(found)
    assert rows == sample(found)
    assert len(rows) == 4
    read_all(found)
    first = rows[0]
    mark(actor=admin(), gate=found, item=first["id"], draw=0, verdict="fake", note="empty praise")
    assert AuditMark.objects.count() == 5
    assert EdgeCase.objects.get().source == "audit"
    with pytest.raises(Refused) as refused:
        promote(actor=admin(), gate=found, name="ours")
    assert refused.value.code == "fake_successes"
    mark(actor=admin(), gate=found, item=first["id"], draw=0, verdict="genuine")
    assert promote(actor=admin(), gate=found, name="ours").name == "ours"


def test_lines_of_people_who_withdrew_are_answers_no_more(tmp_path: Path) -> None:
    spec = gate(tmp_path, to_audit=3)
    run = start_gate(actor=admin(), spec=spec, candidate=policy("new", spec.baseline, {}))
    for side, score in ((run.candidate_evaluation, better), (run.baseline_evaluation, plain)):
        plant(side, spec, score)
    assert run.candidate_evaluation is not None
    file = directory(run.candidate_evaluation.directory) / "evaluation.jsonl"
    first, rest = file.read_text().split("\n", 1)
    file.write_text("{}" + " " * (len(first) - 2) + "\n" + rest)
    assert decide_ready() == 1
    decided = GateRun.objects.get(pk=run.pk)
    assert decided.n_err == 1
    assert len(sample(decided)) == 3


def test_one_gate_that_breaks_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = gate(tmp_path)
    for name in ("one", "two"):
        run = start_gate(actor=admin(), spec=spec, candidate=policy(name, spec.baseline, {}))
        plant(run.candidate_evaluation, spec, better)
        plant(run.baseline_evaluation, spec, plain)
    broken = GateRun.objects.order_by("pk").first()
    whole = verdicts.decide_gate

    def sometimes(*, pk: int) -> bool:
        if broken and pk == broken.pk:
            raise KeyError("id")
        return whole(pk=pk)

    monkeypatch.setattr(verdicts, "decide_gate", sometimes)
    assert decide_ready() == 1


def test_an_item_is_read_once_however_often_it_was_answered(tmp_path: Path) -> None:
    spec = gate(tmp_path, to_audit=5, sampling={"draws": 2})
    run = start_gate(actor=admin(), spec=spec, candidate=policy("new", spec.baseline, {}))
    plant(run.candidate_evaluation, spec, better)
    assert run.candidate_evaluation is not None
    file = directory(run.candidate_evaluation.directory) / "evaluation.jsonl"
    file.write_text(file.read_text() + file.read_text().replace('"draw": 0', '"draw": 1'))
    found = sample(GateRun.objects.get(pk=run.pk))
    assert len(found) == 5
    assert len({row["id"] for row in found}) == 5


def test_items_that_another_model_made_edge_cases_are_read_all_the_same(tmp_path: Path) -> None:
    """Else a small gate that somebody failed could let nobody in any more."""
    spec = gate(tmp_path, to_audit=4)
    for n in range(3):
        measured(spec, policy(f"bad {n}", spec.baseline, {}), worse, plain)
    assert EdgeCase.objects.count() == spec.items
    case = add_case(actor=admin(), prompt="What about this?", summary="curious", reason="heard")
    found = measured(spec, policy("good", spec.baseline, {}), better, plain)
    assert found.verdict == "pass"
    read = sample(found)
    assert len(read) == 4
    assert case.item not in {row["id"] for row in scored(found)}
    read_all(found)
    assert promote(actor=admin(), gate=found, name="ours").name == "ours"


def test_only_answers_of_the_sample_are_marked(tmp_path: Path) -> None:
    found = passed(tmp_path, to_audit=2)
    with pytest.raises(InvalidInput):
        mark(actor=admin(), gate=found, item="elsewhere", draw=0, verdict="genuine")


def test_the_database_itself_refuses_a_promotion_without_grounds(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    failed = measured(spec, policy("bad", spec.baseline, {}), worse, plain)
    good = measured(spec, policy("good", spec.baseline, {}), better, plain)
    boss, other = admin(), person("second", "admin")
    refused: list[dict[str, Any]] = [
        {"kind": "gate", "gate": None, "run": good.candidate},
        {"kind": "gate", "gate": failed, "run": failed.candidate},
        {"kind": "gate", "gate": good, "run": good.candidate},  # nobody read its answers
        {"kind": "gate", "gate": good, "run": failed.candidate},
        {"kind": "baseline", "run": good.candidate},
        {"kind": "override", "run": good.candidate, "by": boss, "second": boss, "reason": "x"},
        {"kind": "override", "run": good.candidate, "by": boss, "reason": "x"},
        {"kind": "override", "run": good.candidate, "by": boss, "second": other, "reason": ""},
    ]
    for n, values in enumerate(refused):
        with pytest.raises(IntegrityError), transaction.atomic():
            Promotion.objects.create(name=f"name {n}", **values)
    assert Promotion.objects.count() == 0


def test_the_database_refuses_a_trained_contestant_without_a_promotion(tmp_path: Path) -> None:
    for provenance in ({}, {"promotion": "gate"}, {"baseline": False}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Contestant.objects.create(name="smuggled", kind="checkpoint", provenance=provenance)
    plain_one = Contestant.objects.create(name="plain", kind="imported")
    with pytest.raises(IntegrityError), transaction.atomic():
        Contestant.objects.filter(pk=plain_one.pk).update(kind="checkpoint")


def test_a_base_enters_as_a_baseline_and_a_rewarded_model_does_not(tmp_path: Path) -> None:
    base = made("base")
    contestant = promote_baseline(actor=admin(), run=base, name="base")
    assert contestant.provenance["promotion"] == "baseline"
    trained = policy("new", base, {})
    for run in (trained, made("tuned afterwards", taken={Role.BASE: trained})):
        with pytest.raises(Refused):
            promote_baseline(actor=admin(), run=run, name="new")


def test_an_override_needs_a_second_administrator() -> None:
    run = policy("hacked", made("base"), {})
    boss, other = admin(), person("second", "admin")
    asked = ask_override(actor=boss, run=run, name="hacked", reason="as a control", key="k")
    again = ask_override(actor=boss, run=run, name="hacked", reason="as a control", key="k")
    assert again.pk == asked.pk
    with pytest.raises(Forbidden):
        answer_override(actor=boss, asked=asked, agreed=True)
    contestant = answer_override(actor=other, asked=asked, agreed=True)
    assert contestant is not None
    assert contestant.provenance["reason"] == "as a control"
    assert answer_override(actor=other, asked=asked, agreed=True) == contestant
    with pytest.raises(Refused):
        answer_override(actor=other, asked=OverrideRequest.objects.get(), agreed=False)


def test_a_declined_override_makes_nothing() -> None:
    run = policy("hacked", made("base"), {})
    asked = ask_override(actor=admin(), run=run, name="hacked", reason="please")
    assert answer_override(actor=person("second", "admin"), asked=asked, agreed=False) is None
    assert not Contestant.objects.exists()


def test_only_administrators(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    viewer = person("vera", "viewer")
    candidate = policy("new", spec.baseline, {})
    with pytest.raises(Forbidden):
        start_gate(actor=viewer, spec=spec, candidate=candidate)
    with pytest.raises(Forbidden):
        promote_baseline(actor=viewer, run=spec.baseline, name="base")


def test_a_broken_model_is_no_baseline(tmp_path: Path) -> None:
    """Against one that a reward spoilt anything passes; one that passed may be the next."""
    spec = gate(tmp_path)
    asked: dict[str, Any] = {"dataset": spec.dataset, "scorers": spec.scorers, "rules": RULES}
    asked |= {"quality": spec.quality, "personalization": spec.personalization}
    hacked, sound = (
        policy(name, spec.baseline, {Role.QUALITY: reward_model(f"reward of {name}", "quality")})
        for name in ("hacked", "sound")
    )
    for run in (hacked, sound):
        with pytest.raises(InvalidInput, match="passed no gate") as refused:
            create_gate(actor=admin(), name=f"Against {run}", baseline=run, **asked)
        assert refused.value.field == "baseline"
    assert measured(spec, sound, better, plain).verdict == "pass"
    middle = Checkpoint.objects.create(run=hacked, step=1, path="kept/step-1", at=timezone.now())
    GateRun.objects.create(
        spec=spec, candidate=hacked, checkpoint=middle, state="decided", verdict="pass",
        decided_at=timezone.now(), created_by=admin(),
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="passed no gate"):
        create_gate(actor=admin(), name="After the middle", baseline=hacked, **asked)
    assert create_gate(actor=admin(), name="Next", baseline=sound, **asked).baseline == sound
