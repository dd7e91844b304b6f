"""Making a gate, and sending a model through it: two evaluations on the same items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from training import gate_policies, policies, snapshots
from training.engine.rundir import sha256_json
from training.enums import GateState, Role, RunKind, RunState
from training.gating import edge
from training.gating.rules import RuleError, parse
from training.launching import InputSpec, preflight
from training.models import Checkpoint, Dataset, EdgeCase, GateRun, GateSpec, TrainingRun
from training.selectors.along import seed_of
from training.selectors.barred import find_barred
from training.selectors.checkpoints import digest_of_checkpoint
from training.selectors.inputs import digest_of_run
from training.services.edges import rows_of
from training.services.runs import launch, next_name
from webapp.catalog.services.checks import check_text
from webapp.catalog.texts import canonical_json, prompt_hash
from webapp.core import audit
from webapp.core.errors import InvalidInput

SAMPLING = {"draws": 1, "temperature": 0.9, "max_completion": 512, "batch": 32, "seed": 1}
EVALUATE = RunKind.EVALUATE.value


@dataclass(frozen=True)
class Weighed(InputSpec):
    """A model whose weights were read before anything was locked: of large ones that takes minutes.

    `row` are the saved weights that have this `digest`. The launch looks for the weights of that
    step once more; where it finds others, or none, their own hash counts.
    """

    row: int = 0
    digest: str = ""

    @property
    def sha256(self) -> str:
        same = self.checkpoint is not None and self.checkpoint.pk == self.row
        return self.digest if same else super().sha256


def weigh(run: TrainingRun, checkpoint: Checkpoint | None = None) -> Weighed:
    """A model, or saved weights of it, for `measure`. Call it outside of any transaction."""
    if checkpoint is None:
        return Weighed(source=run)
    gate_policies.check_checkpoint(run, checkpoint)
    digest = digest_of_checkpoint(checkpoint)
    return Weighed(source=run, checkpoint=checkpoint, row=checkpoint.pk, digest=digest)


def create_gate(
    *,
    actor: Any,
    name: str,
    dataset: Dataset,
    baseline: TrainingRun,
    scorers: Mapping[str, Any],
    quality: TrainingRun | None = None,
    personalization: TrainingRun | None = None,
    split: str = "gate",
    rules: Mapping[str, Any] | None = None,
    sampling: Mapping[str, Any] | None = None,
    preset: str = "tiny",
    edge_draw: int = 50,
    to_audit: int = 10,
) -> GateSpec:
    """A gate is fixed from the start. The same name with the same content is the same gate."""
    policies.check_manage(actor)
    name = check_text(name.strip(), "name", limit=120)
    policies.check_has_gate(dataset)
    gate_policies.check_model(baseline, "baseline")
    gate_policies.check_baseline(baseline)
    sources = judges(scorers, {"quality": quality, "personalization": personalization})
    gate_policies.check_scorers(scorers, sources)
    for axis, run in sources.items():
        if run is not None:
            gate_policies.check_judge(run, f"{axis}_run")
            gate_policies.check_unseen(run, dataset, split, f"{axis}_run")
    checked = parsed_rules(rules or {})
    digest, count, prompts = items_of(dataset, split)
    rows = list(snapshots.prompts(dataset, split))
    gate_policies.check_tasks(rows, scorers, checked.error_limit)
    gate_policies.check_enough(prompts, checked.minimum)
    gate_policies.check_readable(count, to_audit)
    values: dict[str, Any] = {
        "dataset": dataset,
        "split": split,
        "items_sha256": digest,
        "items": count,
        "baseline": baseline,
        **sources,
        "scorers": {axis: list(names) for axis, names in scorers.items()},
        "rules": checked.as_json(),
        "sampling": {**SAMPLING, "preset": preset, **(sampling or {})},
        "edge_draw": edge_draw,
        "audit": to_audit,
    }
    return _insert_spec(actor, name, values)


def _insert_spec(actor: Any, name: str, values: Mapping[str, Any]) -> GateSpec:
    content = sha256_json({n: _named(value) for n, value in values.items()})
    try:
        with transaction.atomic():
            spec = GateSpec.objects.create(
                name=name, content_sha256=content, created_by=actor, **values
            )
            audit.record(actor=actor, action="create_gate", obj=spec, content_sha256=content)
    except IntegrityError as error:
        known = GateSpec.objects.filter(name=name, content_sha256=content).first()
        if known is not None:
            return known
        message = _("There is a gate “%(name)s” already.") % {"name": name}
        raise InvalidInput(message, field="name", code="taken") from error
    return spec


def _named(value: Any) -> Any:
    """What a part of a gate is called in its hash: weights and rows, not numbers of rows."""
    if isinstance(value, TrainingRun):
        return digest_of_run(value)
    return value.content_sha256 if isinstance(value, Dataset) else value


def parsed_rules(values: Mapping[str, Any]) -> Any:
    """The rules, or an InvalidInput that names the setting."""
    try:
        return parse(values)
    except RuleError as error:
        said = {
            "unknown": _("There is no such rule."),
            "number": _("Give a number."),
            "range": _("Between %(low)s and %(high)s."),
        }
        message = said[error.code] % error.params
        raise InvalidInput(message, field=error.field, code=error.code) from error


def judges(
    scorers: Mapping[str, Any], runs: Mapping[str, TrainingRun | None]
) -> dict[str, TrainingRun | None]:
    """The reward models of which members or auditors judge; others have nothing to say."""
    asked = {axis: any(name.startswith(axis) for name in scorers.get(axis) or ()) for axis in runs}
    return {axis: run if asked[axis] else None for axis, run in runs.items()}


def items_of(dataset: Dataset, split: str) -> tuple[str, int, int]:
    """The hash of the items of a gate, their number, and the number of prompts among them."""
    rows = list(snapshots.prompts(dataset, split))
    digest = hashlib.sha256()
    for identity in sorted(row["id"] for row in rows):
        digest.update(identity.encode() + b"\n")
    if not rows:
        raise InvalidInput(
            _("“%(name)s” asks nothing in this split.") % {"name": dataset.name},
            field="dataset",
            code="no_items",
        )
    asked = {canonical_json(row["prompt"]) for row in rows}
    return digest.hexdigest(), len(rows), len(asked)


def start_gate(
    *,
    actor: Any,
    spec: GateSpec,
    candidate: TrainingRun,
    key: str | None = None,
    checkpoint: Checkpoint | None = None,
) -> GateRun:
    """Measure a model and the baseline. The same `key` gives the same gate run.

    With `checkpoint` saved weights of the candidate are measured instead of what it made.
    """
    policies.check_manage(actor)
    if key and (known := GateRun.objects.filter(key=key).first()):
        return known
    gate_policies.check_same_base(spec, candidate, checkpoint)
    return measure(actor, spec, weigh(candidate, checkpoint), key)


def measure(actor: Any, spec: GateSpec, weighed: Weighed, key: str | None) -> GateRun:
    """A gate run with its evaluations, or the one that an earlier click made."""
    candidate, checkpoint = weighed.source, weighed.checkpoint
    assert candidate is not None
    gate_policies.check_model(candidate, "candidate")
    gate_policies.check_independent(spec, candidate)
    try:
        with transaction.atomic():
            gate = GateRun.objects.create(
                spec=spec, candidate=candidate, checkpoint=checkpoint, key=key, created_by=actor
            )
            _measure(actor, gate, weighed)
            said = {"candidate": candidate.pk, "step": checkpoint.step if checkpoint else None}
            audit.record(actor=actor, action="start_gate", obj=gate, **said)
    except IntegrityError:
        if key and (known := GateRun.objects.filter(key=key).first()):
            return known
        raise
    return GateRun.objects.get(pk=gate.pk)


def measure_again(*, actor: Any, gate: GateRun) -> GateRun:
    """After an evaluation that failed: a new pair of evaluations, once."""
    policies.check_manage(actor)
    weighed = weigh(gate.candidate, gate.checkpoint)
    with transaction.atomic():
        row = locked(gate.pk)
        if row.state == GateState.FAILED:
            GateRun.objects.filter(pk=row.pk).update(state=GateState.MEASURING, result={})
            _measure(actor, row, weighed)
            audit.record(actor=actor, action="measure_gate_again", obj=row)
    return GateRun.objects.get(pk=gate.pk)


def _measure(actor: Any, gate: GateRun, weighed: Weighed) -> None:
    edges, spec = drawn_edges(gate), gate.spec
    GateRun.objects.filter(pk=gate.pk).update(
        candidate_evaluation=_evaluation(actor, spec, weighed, edges),
        baseline_evaluation=_evaluation(actor, spec, weigh(spec.baseline), edges),
        edges=edges,
    )


def drawn_edges(gate: GateRun) -> list[str]:
    """Items of the cases that this gate run asks. Drawn before anything is asked, from all of
    them: an old case has the chance of a new one, and no answer is paid for that nobody looks at.
    """
    items = {name: item for item, name in edges_to_ask().items()}
    return [items[name] for name in edge.draw(items, seed_of(gate), gate.spec.edge_draw)]


def edges_to_ask() -> dict[str, str]:
    """Names of the active cases by item, without those that a sealed round asks or that are held
    out: what a known model says to them would stand beside what somebody says blind (V1, V11).
    """
    active = EdgeCase.objects.filter(retired_at=None).order_by("pk")
    cases = {case.item: case for case in active}
    digests = {row["id"]: prompt_hash(row["prompt"]) for row in rows_of(cases)}
    barred = find_barred()
    return {
        item: case.name for item, case in cases.items()
        if item in digests and not barred.reason(digests[item], case.persona_id)
    }  # fmt: skip


def _evaluation(actor: Any, spec: GateSpec, weighed: Weighed, edges: list[str]) -> TrainingRun:
    """An evaluation of this model with these settings: the one that is there, or a new one."""
    model, checkpoint = weighed.source, weighed.checkpoint
    assert model is not None
    given = dict(spec.sampling)
    preset, seed = given.pop("preset"), given.pop("seed")
    names = [name for axis in spec.scorers.values() for name in axis]
    asked = {**given, "scorers": list(dict.fromkeys(names)), "edges": edges}
    if checkpoint is not None:
        asked["checkpoint"] = checkpoint.step
    config = {"evaluate": asked}
    step = f" {checkpoint.step}" if checkpoint else ""
    inputs: dict[str, InputSpec] = {
        Role.GATE: InputSpec(spec.dataset, spec.split),
        Role.BASE: weighed,
    }
    for role, run in ((Role.QUALITY, spec.quality), (Role.PERSONALIZATION, spec.personalization)):
        if run is not None:
            inputs[role] = InputSpec(source=run)
    checked = preflight(EVALUATE, preset, config, inputs, seed)
    dead = (RunState.FAILED, RunState.CANCELLED)
    known = TrainingRun.objects.filter(kind=EVALUATE, config_sha256=checked.sha256)
    if checked.ready and (found := known.exclude(state__in=dead).first()):
        return found
    return launch(
        actor=actor,
        name=free_name(f"{spec.name[:50]}: {model.name[:50]}{step}"),
        kind=EVALUATE,
        preset=preset,
        config=config,
        inputs=inputs,
        seed=seed,
    )


def free_name(name: str) -> str:
    return next_name(name) if TrainingRun.objects.filter(name=name).exists() else name


def locked(pk: int) -> GateRun:
    """The gate run with its row locked; what it joins is read after the wait."""
    GateRun.objects.select_for_update().only("pk").get(pk=pk)
    return GateRun.objects.select_related("spec", "candidate", "checkpoint").get(pk=pk)
