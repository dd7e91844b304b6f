"""Whether inputs fit a run: frozen rows of the right kind and split, models that passed (F18, H12).

Specs are read by their attributes `dataset`, `split` and `source` (see `training.launching`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from django.utils.translation import gettext as _

from training import policies
from training.engine.config.load import Problem
from training.engine.rundir import sha256_json
from training.enums import DatasetState, Kind, Role, RunKind, RunState, Split
from training.models import Dataset, GateSpec, TrainingRun
from training.roles import BRANCHES, NOT_WRITTEN, ROLES, Takes
from training.selectors.checkpoints import asked_step, checkpoint_at, kept_steps
from webapp.catalog.enums import Axis
from webapp.core.errors import PalateError


class Spec(Protocol):
    @property
    def dataset(self) -> Dataset | None: ...
    @property
    def split(self) -> str: ...
    @property
    def source(self) -> TrainingRun | None: ...


Specs = Mapping[str, Any]  # of Spec


def check_inputs(kind: str, config: Mapping[str, Any], inputs: Specs) -> list[Problem]:
    """Every input that is missing or does not fit; `config` is empty where it could not be read."""
    found = [Problem(_field(role), _("This kind of run takes no such input."))
             for role in inputs if role not in ROLES[kind]]  # fmt: skip
    for role, takes in ROLES[kind].items():
        spec = inputs.get(role)
        if spec is None:
            found += _missing(kind, role, takes, config)
        elif takes.rows:
            found += _rows(role, takes, spec, config)
        else:
            found += _source(role, takes, spec, config)
    if kind == RunKind.GRPO and config:
        found += _baseline(config, inputs)
        found += _rules(config, inputs)
        found += _gate(config)
    if step := asked_step(kind, config):
        found += _checkpoint(step, inputs.get(Role.BASE))
    if kind == RunKind.PREDICT and config:
        found += _predicted(config, inputs)
    return found


def _rules(config: Mapping[str, Any], inputs: Specs) -> Iterator[Problem]:
    """Rules give reward for what the rows say, once they are proved on answers of known worth."""
    branches = [branch for branch in BRANCHES if config["reward"][branch] == "rules"]
    if not branches:
        return
    asked = inputs.get(Role.TRAIN)
    counts = tasks_of(asked) if asked is not None else {}
    for branch in branches:
        if asked is not None and not counts.get(branch):
            message = _("Rules cannot judge %(axis)s here: no row of “%(name)s” has a task that "
                        "says what to check.")  # fmt: skip
            said = {"axis": Axis(branch).label, "name": asked.dataset or "–"}
            yield Problem(f"reward.{branch}", message % said)
    labelled = inputs.get(Role.LABELLED)
    if labelled is None:
        message = _("Rules are proved before they give reward: choose counter-examples with a task "
                    "and a better answer.")  # fmt: skip
        yield Problem(_field(Role.LABELLED), message)
    elif not tasks_of(labelled).get("quality"):
        message = _("These rows have no task on which rules could be proved.")
        yield Problem(_field(Role.LABELLED), message)


def tasks_of(spec: Spec) -> Mapping[str, int]:
    """How many rows of a split have a task, and on which axes rules can judge by it."""
    counts = spec.dataset.counts if spec.dataset is not None else {}
    found: Mapping[str, int] = counts.get("tasks", {}).get(spec.split, {})
    return found


def _gate(config: Mapping[str, Any]) -> Iterator[Problem]:
    """The gate that a run names for its end."""
    name = config["grpo"]["gate"]
    if name and not GateSpec.objects.filter(name=name).exists():
        yield Problem("grpo.gate", _("There is no gate “%(name)s”.") % {"name": name})


def _checkpoint(step: int, base: Any) -> Iterator[Problem]:
    """The saved weights that an evaluation names must be there."""
    field = "evaluate.checkpoint"
    if base is None or base.source is None:
        yield Problem(field, _("Only the saved weights of a run have a step."), 0)
    elif checkpoint_at(base.source, step) is None:
        steps = ", ".join(map(str, kept_steps(base.source))) or "–"
        message = _("No weights of step %(step)s are kept; there are: %(steps)s.")
        yield Problem(field, message % {"step": step, "steps": steps})


def _field(role: str) -> str:
    return f"inputs.{role}"


def _missing(kind: str, role: str, takes: Takes, config: Mapping[str, Any]) -> Iterator[Problem]:
    if takes.needed:
        yield Problem(_field(role), _("Choose the split of a frozen dataset."))
    branch = config.get("reward_model", {}).get("branch")
    if (kind, role) == (RunKind.REWARD_MODEL, Role.SWAPS) and branch == Role.PERSONALIZATION:
        yield Problem(_field(role), _("The swap test needs pairs that two people judge unlike."))
    by_model = config and role in BRANCHES and config["reward"][role] != "rules"
    if kind == RunKind.GRPO and by_model:
        yield Problem(_field(role), _("Choose a reward model that passed its gate."))
    model = config.get("model", {"path": "?"})
    if role == Role.BASE and kind != RunKind.SFT and not (model["path"] or model["package"]):
        yield Problem(_field(role), _("Choose the run that made the model to start from."))


def _rows(role: str, takes: Takes, spec: Spec, config: Mapping[str, Any]) -> Iterator[Problem]:
    dataset = spec.dataset
    if dataset is None:
        yield Problem(_field(role), _("Choose the split of a frozen dataset."))
        return
    if dataset.state != DatasetState.FROZEN:
        yield Problem(_field(role), _("“%(name)s” is not frozen.") % {"name": dataset.name})
        return
    if dataset.kind not in takes.kinds:
        fits = ", ".join(str(Kind(kind).label) for kind in takes.kinds)
        yield Problem(
            _field(role),
            _("“%(name)s” holds %(kind)s; needed: %(fits)s.")
            % {"name": dataset.name, "kind": dataset.get_kind_display(), "fits": fits},
        )
        return
    if spec.split not in takes.splits:
        fits = ", ".join(str(Split(split).label) for split in takes.splits)
        yield Problem(_field(role), _("Only these splits fit: %(fits)s.") % {"fits": fits})
    elif spec.split not in dataset.split_sha256:
        yield Problem(
            _field(role),
            _("“%(name)s” has no split “%(split)s”.")
            % {"name": dataset.name, "split": Split(spec.split).label},
        )
    yield from _axis(role, takes, dataset, config)


def _axis(
    role: str, takes: Takes, dataset: Dataset, config: Mapping[str, Any]
) -> Iterator[Problem]:
    """Pairs of a reward model are judged on its own axis."""
    branch = config.get("reward_model", {}).get("branch") if takes.form == "pairs" else None
    axis = dataset.filter.get("axis", "")
    if branch and axis != branch:
        message = _("“%(name)s” was judged on another axis: %(axis)s.")
        yield Problem(_field(role), message % {"name": dataset.name, "axis": axis})


def _source(role: str, takes: Takes, spec: Spec, config: Mapping[str, Any]) -> Iterator[Problem]:
    run = spec.source
    if run is None:
        yield Problem(_field(role), _("Choose a run."))
        return
    if run.kind not in takes.runs or run.state != RunState.SUCCEEDED:
        yield Problem(_field(role), _("“%(name)s” made no such model.") % {"name": run.name})
        return
    if run.checkpoints.filter(final=True, removed_at__isnull=False).exists():
        message = _("The files of “%(name)s” were removed.")
        yield Problem(_field(role), message % {"name": run.name})
    if takes.form == "reward_model":
        yield from _reward_model(role, run, config)


def _reward_model(role: str, run: TrainingRun, config: Mapping[str, Any]) -> Iterator[Problem]:
    branch = run.manifest.get("config", {}).get("reward_model", {}).get("branch")
    if branch != role:
        message = _("“%(name)s” scores another branch: %(branch)s.")
        yield Problem(_field(role), message % {"name": run.name, "branch": branch})
    elif config.get("kind") == RunKind.PREDICT:
        return  # nothing is trained on what it says: one that failed may be looked at
    elif not gate_of(run).get("passed") and not config.get("reward", {}).get("force"):
        failed = ", ".join(c["name"] for c in gate_of(run).get("checks", ()) if not c["passed"])
        message = _("“%(name)s” failed its gate: %(failed)s. To use it all the same, give a reason "
                    "in reward.force.")  # fmt: skip
        yield Problem(_field(role), message % {"name": run.name, "failed": failed or "–"})


def _predicted(config: Mapping[str, Any], inputs: Specs) -> Iterator[Problem]:
    """An unsealed round, and somebody to ask."""
    if not any(branch in inputs for branch in BRANCHES):
        yield Problem(_field(Role.QUALITY), _("Choose at least one reward model."))
    try:
        policies.check_predictable(config["predict"]["round"])
    except PalateError as refused:
        yield Problem("predict.round", str(refused.message))


def gate_of(run: TrainingRun) -> Mapping[str, Any]:
    """The verdict of the reward-model gate, as the run's manifest says it."""
    found: Mapping[str, Any] = run.manifest.get("facts", {}).get("gate") or {}
    return found


def _baseline(config: Mapping[str, Any], inputs: Specs) -> Iterator[Problem]:
    """What the base can do must be known before it is trained by reward."""
    spec = inputs.get(Role.GATE) or inputs.get(Role.TRAIN)
    if spec is None or spec.dataset is None or spec.dataset.state != DatasetState.FROZEN:
        return
    name, digest = base_of(config, inputs)
    try:
        policies.check_may_start_grpo(name, spec.dataset, digest)
    except PalateError as refused:
        if refused.code == "baseline_failed" and config["reward"]["force"]:
            return
        role = Role.GATE if refused.code == "no_gate_split" else Role.BASE
        yield Problem(_field(role), str(refused.message))


def base_of(config: Mapping[str, Any], inputs: Specs) -> tuple[str, str]:
    """Under which name and hash of weights a base is evaluated."""
    spec = inputs.get(Role.BASE)
    if spec is not None and spec.source is not None:
        return spec.source.name, digest_of_run(spec.source)
    model = config["model"]
    return model["path"] or model["package"] or "scratch", ""


def digest_of_run(run: TrainingRun) -> str:
    """One hash over the weights that a run made; empty before it succeeded."""
    files = run.manifest.get("files") or {}
    return sha256_json(files) if files else ""


def warn_of_inputs(kind: str, inputs: Specs) -> list[Problem]:
    """What may run but leaves something unseen."""
    found = []
    for role, takes in ROLES[kind].items():
        wanted = takes.form in ("probes", "swaps") or role == Role.HELDOUT
        if wanted and not takes.needed and role not in inputs and (kind, role) not in NOT_WRITTEN:
            found.append(Problem(_field(role), UNSEEN[str(role)]()))
    return found + (_warn_of_seen(inputs) if kind == RunKind.EVALUATE else [])


def _warn_of_seen(inputs: Specs) -> list[Problem]:
    """Scorers that were trained on the dataset on which they are to judge."""
    gate: Spec | None = inputs.get(Role.GATE)
    found = []
    for branch in BRANCHES:
        spec: Spec | None = inputs.get(branch)
        run = spec.source if spec is not None else None
        if gate and gate.dataset and run and gate.dataset.pk in seen(run):
            message = _("“%(name)s” was trained on rows of this dataset.")
            found.append(Problem(_field(branch), message % {"name": run.name}))
    return found


def seen(run: TrainingRun) -> set[int]:
    """The datasets whose rows a reward model was trained or chosen on (V21)."""
    rows = run.inputs.filter(dataset__isnull=False).values_list("dataset", flat=True)
    return set(rows)


UNSEEN = {
    "heldout": lambda: _("Without held-out rows nobody sees what happens beyond the training."),
    "probes": lambda: _("Without probes a defect that nobody looks for stays unseen."),
    "swaps": lambda: _("Without swaps nobody sees whether two people get different answers."),
}
