"""What the launch form offers: presets with their hints, inputs that fit a role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from training.engine.config.load import as_dict, load, preset_names, read_preset
from training.engine.config.schema import KINDS
from training.enums import DatasetState, Role, RunKind, RunState, Split
from training.launching import InputSpec
from training.models import Dataset, TrainingRun
from training.roles import BRANCHES, ROLES
from training.selectors.inputs import gate_of
from training.selectors.run_pages.settings import Flat, flat
from training.words.fields import PRESETS, hint_of

MOST = 200  # newest datasets and runs that are offered
RULES = "rules"  # instead of a reward model
Choices = list[tuple[str, Any]]


@dataclass(frozen=True)
class PresetCard:
    """A preset and the kinds of runs that it can start."""

    name: str
    about: str
    kinds: Choices


@dataclass(frozen=True)
class Offer:
    """Choices by role, and what each choice stands for."""

    choices: dict[str, Choices] = field(default_factory=dict)
    specs: dict[str, InputSpec] = field(default_factory=dict)


def kinds() -> Choices:
    """The kinds that the engine knows, with their words."""
    return [(kind.value, kind.label) for kind in RunKind if kind.value in KINDS]


def presets() -> list[PresetCard]:
    """The smallest first, as the words name them; then whatever else there is."""
    known = [name for name in PRESETS if name in preset_names()]
    names = known + [name for name in preset_names() if name not in PRESETS]
    return [
        PresetCard(name, str(PRESETS.get(name) or read_preset(name).get("about", "")), kinds())
        for name in names
    ]


def defaults(kind: str, preset: str) -> Flat:
    """Every setting as the preset has it."""
    return flat(as_dict(load({"kind": kind, "preset": preset})))


def hints(preset: str) -> dict[str, str]:
    return {k: hint_of(str(v)) for k, v in (read_preset(preset).get("hints") or {}).items()}


def offer(kind: str) -> Offer:
    """What fits the roles of this kind, in two statements."""
    found = Offer()
    sets = list(Dataset.objects.filter(state=DatasetState.FROZEN).order_by("-pk")[:MOST])
    done = TrainingRun.objects.filter(state=RunState.SUCCEEDED).order_by("-pk")
    runs = list(done.defer("log_tail", "config")[:MOST])
    for role, takes in ROLES[kind].items():
        name = str(role)
        found.choices[name] = [("", _empty(name, kind, takes.needed))]
        if takes.rows:
            fitting = [row for row in sets if row.kind in takes.kinds]
            found.choices[name] += _splits(fitting, takes.splits, found.specs)
            continue
        if name in BRANCHES and kind == RunKind.GRPO:
            found.choices[name].append((RULES, _("rules of the verifier, no model")))
        for run in runs:
            if run.kind in takes.runs and _fits(run, name):
                found.choices[name].append((f"run:{run.pk}", _run_label(run)))
                found.specs[f"run:{run.pk}"] = InputSpec(source=run)
    return found


def _empty(role: str, kind: str, needed: bool) -> str:
    if role == Role.BASE and kind == RunKind.SFT:
        return _("the model of the settings")
    return _("choose …") if needed or role in (Role.BASE, *BRANCHES) else _("none")


def _splits(
    datasets: list[Dataset], splits: tuple[str, ...], specs: dict[str, InputSpec]
) -> Choices:
    """One choice per split that a dataset has."""
    found: Choices = []
    for dataset in datasets:
        for split in splits:
            if split in dataset.split_sha256:
                value, spec = f"set:{dataset.pk}:{split}", InputSpec(dataset, str(split))
                specs[value] = spec
                rows = ngettext("%(n)s row", "%(n)s rows", spec.rows) % {"n": f"{spec.rows:,}"}
                found.append((value, f"{dataset.name} · {Split(split).label} · {rows}"))
    return found


def _fits(run: TrainingRun, role: str) -> bool:
    if role not in BRANCHES:
        return True
    config: Mapping[str, Any] = run.manifest.get("config", {})
    return bool(config.get("reward_model", {}).get("branch") == role)


def _run_label(run: TrainingRun) -> str:
    if run.kind != RunKind.REWARD_MODEL:
        return f"{run.name} · {run.get_kind_display()}"
    passed = bool(gate_of(run).get("passed"))
    return f"{run.name} · {_('gate passed') if passed else _('failed its gate')}"


def value_of(spec: InputSpec) -> str:
    """The choice that stands for an input."""
    if spec.source is not None:
        return f"run:{spec.source.pk}"
    return f"set:{spec.dataset.pk}:{spec.split}" if spec.dataset is not None else ""
