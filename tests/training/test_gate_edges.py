"""Which edge cases a gate asks: drawn from all of them, and no more than are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.factories import admin
from tests.training.gate_factories import gate, plant, policy
from tests.training.test_gates import better, plain
from training.models import EdgeCase, GateRun, GateSpec
from training.services.edges import add_case
from training.services.gates import create_gate, measure_again, start_gate
from training.services.verdicts import decide_gate

pytestmark = pytest.mark.django_db


def cases(n: int) -> list[str]:
    """Items of so many cases, the oldest first."""
    return [add_case(actor=admin(), prompt=f"Case {i}?").item for i in range(n)]


def drawing(spec: GateSpec, edge_draw: int) -> GateSpec:
    """The same gate with another draw."""
    return create_gate(
        actor=admin(), name=f"Draws {edge_draw}", dataset=spec.dataset, baseline=spec.baseline,
        quality=spec.quality, personalization=spec.personalization, scorers=spec.scorers,
        rules=spec.rules, edge_draw=edge_draw,
    )  # fmt: skip


def started(spec: GateSpec, name: str) -> GateRun:
    run = start_gate(actor=admin(), spec=spec, candidate=policy(name, spec.baseline, {}))
    return GateRun.objects.get(pk=run.pk)


def names(run: GateRun) -> set[str]:
    """What the decision of a gate reports on."""
    plant(run.candidate_evaluation, run.spec, better)
    plant(run.baseline_evaluation, run.spec, plain)
    decide_gate(pk=run.pk)
    run.refresh_from_db()
    return {name for found in run.result["edges"].values() for name in found}


def test_old_cases_are_asked_too_when_there_are_many(tmp_path: Path) -> None:
    old, spec = cases(90)[:30], gate(tmp_path)
    gates = {50: spec, 7: drawing(spec, 7), 200: drawing(spec, 200)}
    asked = {n: started(one, one.name).edges for n, one in gates.items()}
    assert {n: len(set(edges)) for n, edges in asked.items()} == {50: 50, 7: 7, 200: 90}
    assert set(asked[50]) & set(old)


def test_no_answer_is_paid_for_that_nobody_looks_at(tmp_path: Path) -> None:
    cases(30)
    spec = gate(tmp_path, edge_draw=5)
    run = started(spec, "new")
    for evaluation in (run.candidate_evaluation, run.baseline_evaluation):
        assert evaluation is not None
        assert evaluation.config["evaluate"]["edges"] == run.edges
    known = EdgeCase.objects.filter(item__in=run.edges)
    assert names(run) == set(known.values_list("name", flat=True))
    assert len(run.edges) == 5


def test_a_new_case_changes_little_of_what_is_drawn(tmp_path: Path) -> None:
    cases(40)
    spec = gate(tmp_path, edge_draw=10)
    run = started(spec, "new")
    add_case(actor=admin(), prompt="One more?")
    GateRun.objects.filter(pk=run.pk).update(state="failed")
    again = measure_again(actor=admin(), gate=run)
    assert len(set(again.edges) & set(run.edges)) >= 9


def test_a_gate_that_asked_more_than_it_draws_is_decided_as_before(tmp_path: Path) -> None:
    """Before, sixty were asked, and the draw came with the decision."""
    cases(20)
    wide = gate(tmp_path, edge_draw=20)
    narrow = drawing(wide, 6)
    asked = started(wide, "new")
    older = GateRun.objects.create(
        spec=narrow, candidate=asked.candidate, edges=asked.edges, created_by=admin(),
        candidate_evaluation=asked.candidate_evaluation,
        baseline_evaluation=asked.baseline_evaluation,
    )  # fmt: skip
    assert len(names(older)) == 6
