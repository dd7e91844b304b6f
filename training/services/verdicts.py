"""What a gate says once both evaluations are there, and the edge cases that come of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from training import snapshots
from training.enums import ENDED, EdgeSource, GateState, RunState, Verdict
from training.gating import edge
from training.gating.decision import Decision, Pair, decide
from training.gating.rules import AXES, parse
from training.gating.sameness import Sameness, commonest
from training.models import EdgeCase, GateRun, GateSpec
from training.selectors.along import seed_of
from training.selectors.evaluated import Key, answers
from training.services.edges import add_cases
from training.services.gates import locked
from training.services.waking import wake_chains
from webapp.catalog.texts import canonical_json, sha256
from webapp.core import audit

log = logging.getLogger("palate.gates")
WORST = 10  # items that a failed gate hands to the edge cases


def decide_ready() -> int:
    """Decide every gate whose evaluations have ended; the number decided."""
    waiting = GateRun.objects.filter(state=GateState.MEASURING)
    ended = Q(candidate_evaluation__state__in=ENDED) & Q(baseline_evaluation__state__in=ENDED)
    decided = 0
    for pk in waiting.filter(ended).values_list("pk", flat=True):
        try:
            decided += decide_gate(pk=pk)
        except Exception:  # one that cannot be decided holds up no other
            log.exception("gate not decided", extra={"gate": pk})
    return decided


def decide_gate(*, pk: int) -> bool:
    """The verdict of one gate, once; False where it is not due."""
    gate = GateRun.objects.select_related(
        "spec__dataset", "candidate_evaluation", "baseline_evaluation"
    ).get(pk=pk)
    sides = [gate.candidate_evaluation, gate.baseline_evaluation]
    runs = [run for run in sides if run is not None and run.state in ENDED]
    if gate.state != GateState.MEASURING or len(runs) < 2:
        return False
    broken = [run for run in runs if run.state != RunState.SUCCEEDED]
    if broken:
        said = {"evaluation": broken[0].pk, "reason": broken[0].reason}
        return _close(gate, GateState.FAILED, {"failed": said})
    found = [answers(run, gate.spec) for run in runs]
    edges = edge.report(
        edge.draw(case_names(gate.edges), seed_of(gate), gate.spec.edge_draw),
        *(by_name(side, gate.edges) for side in found),
    )
    pairs = paired(gate.spec, *found)
    alike = Sameness(*(commonest(answered(gate.spec, side)) for side in found))
    # Gates that were fixed before this rule was there do not know it.
    rules = parse({"sameness": 1.0, **gate.spec.rules})
    decision = decide(pairs, rules, regressions=edges.regressed, sameness=alike)
    result = {**decision.as_json(), "edges": asdict(edges), "sameness": asdict(alike)}
    return _close(gate, GateState.DECIDED, result, decision, regressed(pairs))


def _close(
    gate: GateRun,
    state: str,
    result: Mapping[str, Any],
    decision: Decision | None = None,
    worst: Iterable[Key] = (),
) -> bool:
    columns: dict[str, Any] = {"state": state, "result": dict(result)}
    if decision is not None:
        quality = decision.axes["quality"]
        columns |= {"verdict": decision.verdict, "decided_at": timezone.now()}
        columns |= {"n_ok": quality.n_ok, "n_err": quality.n_err}
    with transaction.atomic():
        row = locked(gate.pk)
        if row.state != GateState.MEASURING:
            return False
        GateRun.objects.filter(pk=row.pk).update(**columns)
        said = {"verdict": columns.get("verdict", ""), "state": state}
        audit.record(actor=None, action="gate_decided", obj=row, **said)
        if columns.get("verdict") == Verdict.FAIL:
            add_cases(row, new_items(worst)[:WORST], EdgeSource.GATE)
        wake_chains()
    return True


def new_items(worst: Iterable[Key]) -> list[str]:
    """Those that are no edge case yet, in their order."""
    known = set(EdgeCase.objects.values_list("item", flat=True))
    return [item for item, _draw in worst if item not in known]


def answered(spec: GateSpec, side: Mapping[Key, Any]) -> list[tuple[str, str]]:
    """(prompt, answer) of one side to the items of the gate, without edge cases."""
    found = []
    for row in snapshots.prompts(spec.dataset, spec.split):
        for draw in range(int(spec.sampling["draws"])):
            answer = side.get((row["id"], draw))
            if answer is not None:
                found.append((canonical_json(row["prompt"]), str(answer["completion"])))
    return found


def paired(
    spec: GateSpec, candidate: Mapping[Key, Any], baseline: Mapping[Key, Any]
) -> dict[str, list[Pair]]:
    """Both sides of every item and draw by axis. An answer that is missing is an error (V12)."""
    about = {row["id"]: row for row in snapshots.prompts(spec.dataset, spec.split)}
    draws = range(int(spec.sampling["draws"]))
    found: dict[str, list[Pair]] = {axis: [] for axis in AXES}
    for item, row in about.items():
        prompt = sha256(canonical_json(row["prompt"]))
        for draw in draws:
            sides = [
                (side.get((item, draw)) or {}).get("values", {}) for side in (candidate, baseline)
            ]
            for axis in AXES:
                values = [side.get(axis) for side in sides]
                found[axis].append(Pair(item, prompt, row["stratum"], *values))
    return found


def regressed(pairs: Mapping[str, list[Pair]]) -> list[Key]:
    """Items that the baseline did well and the candidate did not, the worst first."""
    gaps: dict[str, float] = {}
    for rows in pairs.values():
        for row in rows:
            if row.candidate is not None and row.baseline is not None and row.candidate < 0.5:
                gaps[row.item] = max(gaps.get(row.item, 0.0), row.baseline - row.candidate)
    worst = sorted((gap, item) for item, gap in gaps.items() if gap > 0)
    return [(item, 0) for _gap, item in reversed(worst)]


def case_names(items: Iterable[str]) -> list[str]:
    return list(EdgeCase.objects.filter(item__in=list(items)).values_list("name", flat=True))


def by_name(side: Mapping[Key, Any], items: Iterable[str]) -> dict[str, float | None]:
    """The worse of both axes for each edge case: a case is solved where both are."""
    names = dict(EdgeCase.objects.filter(item__in=list(items)).values_list("item", "name"))
    found: dict[str, float | None] = {}
    for item, name in names.items():
        values = list((side.get((item, 0)) or {}).get("values", {}).values())
        known = [value for value in values if value is not None]
        found[name] = min(known) if values and len(known) == len(values) else None
    return found
