"""What a chain does each time: a recipe, made from a few choices, and everything checked of it.

datasets    {name: {kind, filter, like}}   frozen anew each time, in this order
fixed       {name: pk}                     datasets that stay as they are
base        pk of the run to start from
rewards     {branch: {preset, config, seed, inputs: {role: [name of a dataset, split]}}}
grpo        {preset, config, seed, inputs}
gate        pk of a GateSpec
contestant  {name, version, sampling}      {n} stands for the number, {date} for the day
round       {name, contestants, raters, …} fields of a RoundPlan; empty: no round
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.utils.translation import gettext as _

from arena.services.plans import RoundPlan, check_plan
from training import gate_policies
from training.chains import STAGES
from training.enums import Arrow, DatasetState, Role, RunKind, Split
from training.launching import InputSpec, preflight
from training.models import Dataset, GateSpec, TrainingRun
from training.roles import BRANCHES, ROLES
from training.services.datasets import parsed_filter
from webapp.catalog.models import Contestant
from webapp.catalog.services.checks import check_text
from webapp.core.errors import InvalidInput

PARTS = ("datasets", "fixed", "base", "rewards", "grpo", "gate", "contestant", "round")
MEASURING = (Split.EDGE, Split.REWARD_MODEL_GATE, Split.GATE)
NOT_PLANNED = ("closes_at",)  # a date that was right once
LATER = ("hardware", "storage", "reward.quality", "reward.personalization", "data.")
Recipe = Mapping[str, Any]


def standard_recipe(
    *,
    quality: Dataset,
    personalization: Dataset,
    prompts: Dataset,
    base: TrainingRun,
    gate: GateSpec,
    defects: Dataset | None = None,
    preset: str = "tiny",
    reward_config: Mapping[str, Any] | None = None,
    grpo_config: Mapping[str, Any] | None = None,
    contestant: str = "Nightly {n}",
    version: str = "",
    sampling: Mapping[str, Any] | None = None,
    round: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Two sets of pairs frozen anew, a reward model of each, a policy of both.

    Inputs are the splits that the sets have today: held-out rows, rows of the gate, probes, swaps.
    """
    sets = {"quality": quality, "personalization": personalization, "prompts": prompts}
    sets |= {"defects": defects} if defects else {}
    rewards = {}
    for branch in BRANCHES:
        more = (reward_config or {}).get(branch, {})
        own = more.get("reward_model", {})
        if not isinstance(own, Mapping):
            said = _("“reward_model” is an object, for example %(example)s.")
            example = {"example": '{"reward_model": {"max_steps": 200}}'}
            raise _wrong(f"{branch}_config", said % example)
        config = {"reward_model": {"branch": branch.value, **own}}
        rest = {name: value for name, value in more.items() if name != "reward_model"}
        rewards[branch.value] = {
            "preset": preset, "config": {**rest, **config}, "seed": 1,
            "inputs": _reward_inputs(branch, sets),
        }  # fmt: skip
    return {
        "datasets": {branch.value: copied(sets[branch]) for branch in BRANCHES},
        "fixed": {name: sets[name].pk for name in ("prompts", "defects") if name in sets},
        "base": base.pk,
        "rewards": rewards,
        "grpo": {
            "preset": preset, "config": dict(grpo_config or {}), "seed": 1,
            "inputs": _grpo_inputs(sets),
        },
        "gate": gate.pk,
        "contestant": {"name": contestant, "version": version, "sampling": dict(sampling or {})},
        "round": dict(round or {}),
    }  # fmt: skip


def kept(before: Recipe, made: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe made from a few choices, with all of an earlier one that those do not touch."""
    found = {**made, "contestant": {**before["contestant"], "name": made["contestant"]["name"]}}
    likes = {name: asked.get("like") for name, asked in before["datasets"].items()}
    found["datasets"] = {
        name: before["datasets"][name] if likes.get(name) == asked["like"] else asked
        for name, asked in made["datasets"].items()
    }
    same_rows = found["datasets"] == before["datasets"] and made["fixed"] == before["fixed"]
    same_preset = made["grpo"]["preset"] == before["grpo"]["preset"]
    found["rewards"] = {
        name: _kept_launch(before["rewards"].get(name, {}), asked, same_rows, same_preset)
        for name, asked in made["rewards"].items()
    }
    found["grpo"] = _kept_launch(before["grpo"], made["grpo"], same_rows, same_preset)
    if made["round"]:
        old = before["round"]
        found["round"] = {**old, **made["round"]}
        if old.get("axes") == made["round"].get("axes") and "weights" in old:
            found["round"]["weights"] = old["weights"]
    return found


def _kept_launch(
    old: Mapping[str, Any], made: Mapping[str, Any], same_rows: bool, same_preset: bool
) -> dict[str, Any]:
    """The seed stays; inputs and preset do while what they follow from was not chosen anew."""
    stay = ["seed", *(["inputs"] if same_rows else []), *(["preset"] if same_preset else [])]
    return {**made, **{name: old[name] for name in stay if name in old}}


def copied(dataset: Dataset) -> dict[str, Any]:
    """What to freeze so that it collects what came since this one."""
    return {"kind": dataset.kind, "filter": dict(dataset.filter), "like": dataset.pk}


def _measured(name: str, dataset: Dataset | None, *wanted: str) -> list[str] | None:
    """The first of these splits that the dataset has."""
    found = [split for split in wanted if dataset and split in dataset.split_sha256]
    return [name, str(found[0])] if found else None


def _given(found: Mapping[Any, list[str] | None]) -> dict[str, list[str]]:
    return {str(role): value for role, value in found.items() if value}


def _reward_inputs(branch: str, sets: Mapping[str, Dataset]) -> dict[str, list[str]]:
    """Held-out pairs stop the training, gate pairs judge it."""
    pairs, name = sets[branch], str(branch)
    found: dict[Any, list[str] | None] = {
        Role.TRAIN: [name, Split.TRAIN.value],
        Role.HELDOUT: _measured(name, pairs, *MEASURING),
        Role.GATE: _measured(name, pairs, Split.REWARD_MODEL_GATE),
    }
    if branch == Role.QUALITY:
        defects = sets.get("defects")
        found[Role.PROBES] = _measured("defects", defects, Split.REWARD_MODEL_GATE, *MEASURING)
    else:
        found[Role.SWAPS] = _measured(name, pairs, Split.REWARD_MODEL_GATE, *MEASURING)
    return _given(found)


def _grpo_inputs(sets: Mapping[str, Dataset]) -> dict[str, list[str]]:
    prompts, last = sets["prompts"], (Split.GATE, *MEASURING)
    return _given(
        {
            Role.TRAIN: ["prompts", Split.TRAIN.value],
            Role.HELDOUT: _measured("prompts", prompts, *MEASURING),
            Role.GATE: _measured("prompts", prompts, Split.GATE),
            Role.PROBES: _measured("defects", sets.get("defects"), *last),
            Role.SWAPS: _measured("personalization", sets["personalization"], *last),
        }
    )


def checked_recipe(recipe: Recipe, arrows: Mapping[str, str]) -> dict[str, Any]:
    """The recipe in its own form, or an InvalidInput that says which part cannot be used."""
    unknown = [name for name in recipe if name not in PARTS]
    if unknown:
        raise _wrong("recipe", _("There is no such part: %(name)s.") % {"name": unknown[0]})
    sets = _sets(recipe)
    base = TrainingRun.objects.filter(pk=_number(recipe.get("base"))).first()
    if base is None:
        raise _wrong("base", _("Choose the run to start from."))
    gate_policies.check_model(base, "base")
    rewards = recipe.get("rewards") or {}
    if not rewards or set(rewards) - {branch.value for branch in BRANCHES}:
        raise _wrong("rewards", _("Train a reward model for quality, personalization or both."))
    checked = {
        b: _launch(b, RunKind.REWARD_MODEL, asked, sets, base) for b, asked in rewards.items()
    }
    spec = GateSpec.objects.filter(pk=_number(recipe.get("gate"))).first()
    if spec is None:
        raise _wrong("gate", _("Choose a gate."))
    return {
        "datasets": {name: dict(asked) for name, asked in recipe["datasets"].items()},
        "fixed": dict(recipe.get("fixed") or {}),
        "base": base.pk,
        "rewards": checked,
        "grpo": _launch("grpo", RunKind.GRPO, recipe.get("grpo") or {}, sets, base),
        "gate": spec.pk,
        "contestant": _contestant(recipe.get("contestant") or {}),
        "round": _round(recipe.get("round") or {}, arrows),
    }


def _number(value: Any) -> int:
    """A primary key, or one that nothing has."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


Sets = Mapping[str, Dataset | None]  # by name; None where a filter has no earlier dataset


def _sets(recipe: Recipe) -> Sets:
    """What may be an input: datasets that stay, and the ones that filters were copied from."""
    datasets = recipe.get("datasets") or {}
    if not datasets:
        raise _wrong("datasets", _("Choose what is frozen anew."))
    found: dict[str, Dataset | None] = {}
    for name, asked in datasets.items():
        check_text(name, "datasets", limit=20)
        if not isinstance(asked, Mapping) or not {"kind", "filter"} <= set(asked):
            raise _wrong("datasets", _("Each dataset has a kind and a filter."))
        parsed_filter(asked["kind"], asked["filter"])
        found[name] = Dataset.objects.filter(pk=_number(asked.get("like")), state="frozen").first()
    for name, pk in (recipe.get("fixed") or {}).items():
        fixed = Dataset.objects.filter(pk=pk, state=DatasetState.FROZEN).first()
        if fixed is None or name in datasets:
            raise _wrong(name, _("Choose a frozen dataset."))
        found[name] = fixed
    return found


def _launch(
    name: str, kind: str, asked: Mapping[str, Any], sets: Sets, base: TrainingRun
) -> dict[str, Any]:
    """One run as it is launched later, tried with the rows of today."""
    inputs = asked.get("inputs") or {}
    for role, given in inputs.items():
        fine = role in ROLES[kind] and len(given) == 2 and given[0] in sets
        if not fine or given[1] not in Split.values:
            raise _wrong(name, _("This input cannot be used: %(role)s.") % {"role": role})
    config, seed = asked.get("config") or {}, asked.get("seed", 1)
    if not isinstance(config, Mapping):
        raise _wrong(f"{name}_config", _("Settings are an object in JSON."))
    made = {
        "preset": asked.get("preset", "tiny"),
        "config": dict(config),
        "seed": seed,
        "inputs": {str(role): [*pair] for role, pair in inputs.items()},
    }
    _try(name, kind, made, sets, base)
    return made


def _try(name: str, kind: str, made: Mapping[str, Any], sets: Sets, base: TrainingRun) -> None:
    """The check before a launch, but for what is not there yet and for the machine of today."""
    given = {role: InputSpec(sets[of], split) for role, (of, split) in made["inputs"].items()}
    known = {role: spec for role, spec in given.items() if spec.dataset is not None}
    specs: dict[Any, InputSpec] = {**known, Role.BASE.value: InputSpec(source=base)}
    late = {f"inputs.{role}" for role in (*BRANCHES, *(set(given) - set(known)))}
    checked = preflight(kind, made["preset"], made["config"], specs)
    for problem in checked.problems:
        if problem.field in late or problem.field.startswith(LATER):
            continue
        where = f"{name}_config" if "." in problem.field else "preset"
        if problem.field.startswith("inputs."):
            where = "base" if problem.field == f"inputs.{Role.BASE}" else name
        said = {"field": problem.field, "message": problem.message}
        raise _wrong(where, _("%(field)s: %(message)s") % said)


def _contestant(asked: Mapping[str, Any]) -> dict[str, Any]:
    name = check_text(str(asked.get("name") or "").strip(), "contestant", limit=100)
    version = str(asked.get("version") or "").strip()[:40]
    if "{n}" not in name + version and "{date}" not in name + version:
        said = _("Write {n} for the number or {date} for the day: every time needs its own name.")
        raise _wrong("contestant", said)
    return {"name": name, "version": version, "sampling": dict(asked.get("sampling") or {})}


def _round(asked: Mapping[str, Any], arrows: Mapping[str, str]) -> dict[str, Any]:
    """Everything of the round but the contestant that is not there yet."""
    if not asked:
        check_round_known({}, arrows)
        return {}
    known = {field.name for field in fields(RoundPlan)} - set(NOT_PLANNED)
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise _wrong("round_name", _("There is no such part: %(name)s.") % {"name": unknown[0]})
    beside = list(asked.get("contestants") or ())
    if not beside:
        raise _wrong("contestants", _("Choose at least one contestant to stand beside."))
    other = Contestant.objects.exclude(pk__in=beside).order_by("pk").first()
    stand = [*beside, other.pk] if other and len(beside) < 2 else beside
    if len(stand) >= 2:  # the new one is not there yet: another stands for it
        check_plan(plan_of(asked, name="draft", contestants=stand))
    elif not asked.get("raters"):
        raise _wrong("raters", _("Choose at least one rater."))
    return {**asked, "name": check_text(str(asked.get("name") or ""), "round_name", limit=100)}


def check_round_known(asked: Mapping[str, Any], arrows: Mapping[str, str]) -> None:
    """Raise where a chain is to draft a round that nobody described."""
    if not asked and arrows.get("round", Arrow.OFF) != Arrow.OFF:
        raise _wrong("round_name", _("Say what the round is like, or switch its arrow off."))


def plan_of(asked: Mapping[str, Any], *, name: str, contestants: list[int]) -> RoundPlan:
    """The plan of one time."""
    return RoundPlan(**{**asked, "name": name, "contestants": contestants})


def checked_arrows(arrows: Mapping[str, str] | None) -> dict[str, str]:
    """Arrows by the stage into which they lead; those that are missing are off."""
    given = {str(stage): str(value) for stage, value in (arrows or {}).items()}
    for stage, value in given.items():
        if stage not in STAGES[1:] or value not in Arrow.values:
            raise _wrong("arrows", _("There is no such arrow: %(name)s.") % {"name": stage})
    return {stage: given.get(stage, Arrow.OFF.value) for stage in STAGES[1:]}


def _wrong(field: str, message: str) -> InvalidInput:
    return InvalidInput(message, field=field, code="recipe")
