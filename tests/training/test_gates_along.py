"""A gate before, in the middle and after; intermediate weights that are measured and promoted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.training.factories import admin
from tests.training.gate_factories import RULES, gate, made, plant, policy
from tests.training.test_gates import better, person, plain, read_all, worse
from training.engine.config.load import Problem
from training.enums import Role
from training.launching import InputSpec, preflight
from training.models import Alert, Checkpoint, GateRun, GateSpec, TrainingRun
from training.selectors.along import REFUSED, courses, due, key_of, share_of
from training.selectors.along import context as run_context
from training.selectors.checkpoints import checkpoint_at, digest_of_checkpoint, middle_of
from training.selectors.retention import plan
from training.services import along
from training.services.along import gate_along, gate_when_done, gates_due
from training.services.edges import add_case
from training.services.findings import note_checkpoint
from training.services.gates import start_gate
from training.services.promotions import promote
from training.services.runs import NotReady, inputs_of
from training.services.verdicts import decide_gate
from training.storage import directory
from webapp.core.errors import Forbidden, InvalidInput, Refused

pytestmark = pytest.mark.django_db


def trained(spec: GateSpec, name: str = "trained", step: int = 70, **columns: Any) -> TrainingRun:
    """A GRPO run of 140 steps whose middle was kept."""
    run = made(name, "grpo", {Role.BASE: spec.baseline}, step=140, steps=140, **columns)
    if step:
        kept(run, step)
    return run


def kept(run: TrainingRun, step: int, path: str = "") -> Checkpoint:
    path = path or f"kept/step-{step}"
    folder = directory(run.directory) / path
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text(f"{run.name} {step}")
    return Checkpoint.objects.create(run=run, step=step, path=path, at=timezone.now(), size=10)


def test_weights_along_the_way_are_offered_and_sent_through(tmp_path: Path, client: Client) -> None:
    spec = gate(tmp_path)
    run = trained(spec)
    kept(run, 105, "checkpoints/checkpoint-105")  # goes when newer ones come
    weights = Checkpoint.objects.get(step=70)
    value = f"{run.pk}:{weights.pk}"
    client.force_login(admin())
    page = client.get(reverse("training:gate", args=[spec.pk])).content.decode()
    assert f'<option value="{value}">trained, as it was at step 70</option>' in page
    assert "step 105" not in page
    url = reverse("training:gate_start", args=[spec.pk])
    client.post(url, {"candidate": value, "key": "click"})
    found = GateRun.objects.get()
    assert (found.candidate, found.checkpoint) == (run, weights)
    client.post(url, {"candidate": f"{run.pk}:{weights.pk + 1}", "key": "other"})
    assert GateRun.objects.count() == 1


def decided(found: list[GateRun], *scores: Any) -> list[GateRun]:
    """Plant what each of the three said; the baseline is `plain`."""
    for run, score in zip(found, scores, strict=True):
        plant(run.candidate_evaluation, run.spec, score)
    for run in found:
        plant(run.baseline_evaluation, run.spec, plain)
        decide_gate(pk=run.pk)
    return [GateRun.objects.get(pk=run.pk) for run in found]


def test_base_middle_and_end_go_through_once(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = trained(spec)
    case = add_case(actor=admin(), prompt="What failed once?")
    first = gate_along(actor=admin(), spec=spec, run=run)
    assert gate_along(actor=admin(), spec=spec, run=run) == first
    assert GateRun.objects.count() == 3
    before, middle, after = first
    assert (before.candidate, before.checkpoint) == (spec.baseline, None)
    assert before.candidate_evaluation == before.baseline_evaluation
    assert middle.checkpoint is not None
    assert (middle.candidate, middle.checkpoint.step) == (run, 70)
    assert (after.candidate, after.checkpoint) == (run, None)
    assert [share_of(found) for found in first] == [0, 50, 100]
    assert len({found.candidate_evaluation_id for found in first}) == 3
    before, middle, after = decided(first, plain, worse, better)
    assert [r.verdict for r in (before, middle, after)] == ["no_difference", "fail", "pass"]
    assert before.result["axes"]["quality"]["mean"] == 0
    assert {case.name} == {
        name for found in (before, middle, after)
        for names in found.result["edges"].values() for name in names
    }  # fmt: skip
    course = courses(run=run)[0]
    assert [(p.title, p.step, p.same) for p in course.points] == [
        ("before", 0, True), ("middle", 70, False), ("after", 140, False),
    ]  # fmt: skip
    assert [len(p.axes) for p in course.points] == [2, 2, 2]
    assert len(course.pictures) == 2
    assert course.missing == []


def test_the_three_are_asked_the_same_edge_cases(tmp_path: Path) -> None:
    spec = gate(tmp_path, edge_draw=4)
    for n in range(12):
        add_case(actor=admin(), prompt=f"Case {n}?")
    found = decided(gate_along(actor=admin(), spec=spec, run=trained(spec)), plain, plain, plain)
    drawn = [sorted(n for names in g.result["edges"].values() for n in names) for g in found]
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(drawn[0]) == 4


def test_a_run_whose_number_is_that_of_a_gate_shows_its_own_series(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run, other = trained(spec, "same number", pk=100_000), trained(spec, "other")
    twin = GateSpec.objects.get(pk=spec.pk)
    twin.pk, twin.name = run.pk, "Twin"
    twin.save(force_insert=True)
    gate_along(actor=admin(), spec=twin, run=other)
    assert run_context(run) == {"courses": [], "may_gate": [twin, spec]}
    gate_along(actor=admin(), spec=twin, run=run)
    assert [(c.spec, c.run) for c in courses(run=run)] == [(twin, run)]
    assert run_context(run)["may_gate"] == [spec]


def test_what_cannot_be_asked_is_missing(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    alone = made("from a package", "grpo", step=140, steps=140)
    kept(alone, 140)  # too near to the end
    found = gate_along(actor=admin(), spec=spec, run=alone)
    assert [share_of(g) for g in found] == [100]
    assert courses(run=alone)[0].missing == ["before", "middle"]
    with pytest.raises(InvalidInput):
        gate_along(actor=admin(), spec=spec, run=spec.baseline)
    judge = spec.quality
    assert judge is not None
    judged = policy("judged by its reward", spec.baseline, {Role.QUALITY: judge})
    with pytest.raises(Refused) as refused:
        gate_along(actor=admin(), spec=spec, run=judged)
    assert refused.value.code == "used_as_reward"
    with pytest.raises(Forbidden):
        gate_along(actor=person("viewer", "viewer"), spec=spec, run=alone)


def test_an_evaluation_asks_the_weights_of_a_step(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = trained(spec)
    row = checkpoint_at(run, 70)
    assert row is not None
    found = start_gate(actor=admin(), spec=spec, candidate=run, checkpoint=row)
    evaluation = found.candidate_evaluation
    assert evaluation is not None
    assert evaluation.config["evaluate"]["checkpoint"] == 70
    given = inputs_of(evaluation)[Role.BASE]
    assert given.checkpoint == row
    assert evaluation.inputs.get(role=Role.BASE).sha256 == digest_of_checkpoint(row)
    checked = preflight("evaluate", "tiny", evaluation.config, inputs_of(evaluation), 1)
    assert checked.resolved["model"]["path"] == str(directory(run.directory) / "kept/step-70")
    whole = start_gate(actor=admin(), spec=spec, candidate=run)
    assert whole.candidate_evaluation != evaluation


def test_weights_that_are_not_there_are_refused(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run, other = trained(spec), trained(spec, "other")
    config = {"evaluate": {"checkpoint": 71}}
    inputs = {Role.GATE: InputSpec(spec.dataset, "gate"), Role.BASE: InputSpec(source=run)}
    problems = {p.field: p.message for p in preflight("evaluate", "tiny", config, inputs).problems}
    assert "there are: 70" in problems["evaluate.checkpoint"]
    foreign = checkpoint_at(other, 70)
    with pytest.raises(InvalidInput) as refused:
        start_gate(actor=admin(), spec=spec, candidate=run, checkpoint=foreign)
    assert refused.value.code == "no_checkpoint"


def test_the_middle_is_what_was_kept_or_the_nearest_checkpoint(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = trained(spec, step=0)
    assert middle_of(run) is None
    near = kept(run, 75, "checkpoints/checkpoint-75")
    kept(run, 105, "checkpoints/checkpoint-105")
    assert middle_of(run) == near
    exact = kept(run, 70)
    assert middle_of(run) == exact
    Checkpoint.objects.filter(pk=exact.pk).update(removed_at=timezone.now())
    assert middle_of(run) == near


def test_the_trainer_s_word_of_kept_weights_becomes_a_row(tmp_path: Path) -> None:
    from training.engine.rundir import RunDir

    spec = gate(tmp_path)
    run = trained(spec, step=0)
    folder = directory(run.directory) / "kept/step-70"
    folder.mkdir(parents=True)
    facts = {"stage": "kept", "step": 70, "path": "../../elsewhere", "sha256": "a" * 64}
    note_checkpoint(run, RunDir(directory(run.directory)), facts, timezone.now())
    row = Checkpoint.objects.get(run=run)
    assert (row.path, row.sha256, row.final) == ("kept/step-70", "a" * 64, False)


def test_a_middle_is_promoted_with_its_own_weights(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = trained(spec)
    found = decided(gate_along(actor=admin(), spec=spec, run=run), plain, better, plain)[1]
    read_all(found)
    made_of = promote(actor=admin(), gate=found, name="Half")
    assert made_of.endpoint["place"] == str(directory(run.directory) / "kept/step-70")
    assert made_of.provenance["checkpoint"]["percent"] == 50
    assert found.promotions.get().checkpoint == found.checkpoint
    assert promote(actor=admin(), gate=found, name="Half") == made_of
    whole = start_gate(actor=admin(), spec=spec, candidate=run, key="whole")
    plant(whole.candidate_evaluation, spec, better)
    decide_gate(pk=whole.pk)
    whole.refresh_from_db()
    read_all(whole)
    with pytest.raises(InvalidInput) as refused:
        promote(actor=admin(), gate=whole, name="Half")
    assert refused.value.code == "taken"


def test_weights_at_a_gate_are_not_removed(tmp_path: Path, settings: Any) -> None:
    spec = gate(tmp_path)
    run = trained(spec, config={"grpo": {"gate": spec.name}})
    row = middle_of(run)
    assert row is not None
    spare = kept(run, 105, "checkpoints/checkpoint-105")

    def why() -> dict[int, str]:
        found = plan(0.0)
        return {k.checkpoint.pk: k.why for k in found.kept} | dict.fromkeys(
            [c.pk for c in found.removed], ""
        )

    assert (why()[row.pk], why()[spare.pk]) == ("gate", "")
    runs = gate_along(actor=admin(), spec=spec, run=run)
    assert why()[row.pk] == "used"  # by the evaluations
    assert runs[1].checkpoint == row


def test_a_run_that_names_a_gate_goes_through_it_at_its_end(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    run = trained(spec, config={"grpo": {"gate": spec.name}})
    trained(spec, "names none", config={"grpo": {}})
    assert gates_due() == 1
    assert GateRun.objects.filter(key=key_of(spec, run, 100)).exists()
    assert gates_due() == 0
    assert not gate_when_done(pk=run.pk)
    assert GateRun.objects.count() == 3


def test_a_gate_that_refuses_is_said_once(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    assert spec.quality is not None
    run = made("judged", "grpo", {Role.BASE: spec.baseline, Role.QUALITY: spec.quality},
               config={"grpo": {"gate": spec.name}})  # fmt: skip
    assert gates_due() == 0
    assert gates_due() == 0
    alert = Alert.objects.get(run=run)
    assert alert.rule == REFUSED
    assert "gave “judged” its reward" in alert.evidence["message"]
    assert not GateRun.objects.exists()


def test_a_full_storage_is_no_refusal_and_is_tried_again_later(
    tmp_path: Path, settings: Any
) -> None:
    spec = gate(tmp_path)
    settings.PALATE_RUNS_QUOTA_GB = 0
    run = trained(spec, config={"grpo": {"gate": spec.name}})
    assert not gate_when_done(pk=run.pk)
    assert gates_due() == 0
    settings.PALATE_RUNS_QUOTA_GB = 200
    assert gates_due() == 0  # not at every look
    cache.clear()
    assert gates_due() == 1
    assert GateRun.objects.count() == 3
    assert not Alert.objects.exists()


def test_a_machine_comes_back_and_weights_do_not() -> None:
    launch = NotReady([Problem("storage", "full"), Problem("hardware.device", "needs 1 GPU")])
    gone = NotReady([Problem("storage", "full"), Problem("inputs.base", "removed")])
    free = InvalidInput("a name that somebody else took", code="taken")
    reward = Refused("its own judge", code="used_as_reward")
    assert [along.passes(error) for error in (launch, gone, free, reward)] == [
        True, False, True, False,
    ]  # fmt: skip


def test_runs_that_wait_or_break_hold_up_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = gate(tmp_path)
    for n, named in enumerate([spec.name] * 4 + ["", "nowhere"]):
        trained(spec, f"run {n}", config={"grpo": {"gate": named}})
    tried: list[int] = []

    def nothing(*, pk: int) -> bool:
        tried.append(pk)
        if len(tried) == 1:
            raise KeyError("broken")
        return False

    monkeypatch.setattr(along, "AT_ONCE", 2)
    monkeypatch.setattr(along, "gate_when_done", nothing)
    for _look in range(3):
        assert gates_due() == 0
    assert tried == due()
    assert len(tried) == 4


def test_a_base_in_the_series_of_another_run_has_its_own_still_to_come(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    base = trained(spec, "base of another", config={"grpo": {"gate": spec.name}})
    later = made("later", "grpo", {Role.BASE: base}, step=140, steps=140)
    gate_along(actor=admin(), spec=spec, run=later)
    assert due() == [base.pk]
    assert gates_due() == 1
    assert due() == []


def test_a_run_may_only_name_a_gate_that_there_is(tmp_path: Path) -> None:
    spec = gate(tmp_path)
    inputs = {Role.TRAIN: InputSpec(spec.dataset, "train"), Role.BASE: InputSpec(source=made("b"))}
    for name, wrong in (("nowhere", True), (spec.name, False)):
        config = {
            "grpo": {"gate": name},
            "reward": {"quality": "rules", "personalization": "rules"},
        }
        fields = {p.field for p in preflight("grpo", "tiny", config, inputs).problems}
        assert ("grpo.gate" in fields) == wrong


def test_both_pages_show_the_three_and_a_button_starts_them(
    tmp_path: Path, client: Client, django_assert_max_num_queries: Any
) -> None:
    spec = gate(tmp_path, rules=RULES)
    run = trained(spec)
    client.force_login(admin())
    page = client.get(reverse("training:run", args=[run.pk])).content.decode()
    assert "Send base, middle and end through" in page
    sent = client.post(reverse("training:gate_along", args=[run.pk]), {"gate": spec.pk})
    assert sent.status_code == 302
    decided(list(GateRun.objects.order_by("pk")), plain, worse, better)
    for url in (reverse("training:run", args=[run.pk]), reverse("training:gate", args=[spec.pk])):
        with django_assert_max_num_queries(60):
            page = client.get(url).content.decode()
        for said in ("Before", "Middle", "After", "(the baseline itself)", "no difference"):
            assert said in page, (url, said)
    middle = GateRun.objects.get(key=key_of(spec, run, 50))
    page = client.get(reverse("training:gate_run", args=[middle.pk])).content.decode()
    assert "weights that it had at step 70" in page
    assert (
        client.post(reverse("training:gate_along", args=[run.pk]), {"gate": 0}).status_code == 404
    )
    client.force_login(person("viewer", "viewer"))
    assert client.post(reverse("training:gate_along", args=[run.pk])).status_code == 403
