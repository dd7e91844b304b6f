"""The form of a chain; rules stand in the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from arena.enums import Axis
from training.chains import STAGES
from training.engine.config.load import preset_names
from training.enums import Arrow
from training.forms.gates import Keyed
from training.models import Chain
from training.selectors import chain_offers as offers
from training.services.chain_recipes import kept, standard_recipe

HOURS = [("", _("never: only by hand"))] + [(str(h), f"{h:02d}:00") for h in range(24)]
INTO = {
    "rewards": _("Datasets → reward models"),
    "grpo": _("Reward models → GRPO"),
    "gate": _("GRPO → gate"),
    "contestant": _("Gate → contestant, once its successes were read"),
    "round": _("Contestant → draft of a round"),
}


class JsonField(forms.JSONField):
    """Settings as JSON; what is no object is refused with an example."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            required=False,
            widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
            error_messages={"invalid": _('No JSON. For example: {"grpo": {"steps": 200}}')},
            **more,
        )

    def clean(self, value: Any) -> Any:
        found = super().clean(value)
        if found in (None, ""):
            return {}
        if not isinstance(found, dict):
            raise forms.ValidationError(self.error_messages["invalid"])
        return found


class ChainForm(Keyed):
    """A chain, new or as it is."""

    name = forms.CharField(label=_("Name"), max_length=60)
    hour = forms.ChoiceField(label=_("Begins every night at"), choices=HOURS, required=False)
    quality = forms.ChoiceField(
        label=_("Pairs for quality"),
        help_text=_("The filter of this dataset is used anew each time: it collects what came "
                    "since."),
    )  # fmt: skip
    personalization = forms.ChoiceField(
        label=_("Pairs for personalization"), help_text=_("Its filter is used anew, too.")
    )
    prompts = forms.ChoiceField(
        label=_("Prompts of GRPO"), help_text=_("This dataset stays as it is, with its splits.")
    )
    defects = forms.ChoiceField(
        label=_("Counter-examples for probes"), required=False,
        help_text=_("This dataset stays as it is, too."),
    )  # fmt: skip
    base = forms.ChoiceField(
        label=_("Base"),
        help_text=_("Every time begins anew from this model. It needs a baseline evaluation on "
                    "the gate split of the prompts."),
    )  # fmt: skip
    gate = forms.ChoiceField(label=_("Gate"))
    preset = forms.ChoiceField(
        label=_("Machine settings"), choices=[(n, n) for n in preset_names()], initial="tiny"
    )
    quality_config = JsonField(label=_("Other settings of the reward model for quality"))
    personalization_config = JsonField(
        label=_("Other settings of the reward model for personalization")
    )
    grpo_config = JsonField(label=_("Other settings of GRPO"))
    contestant = forms.CharField(
        label=_("Name of the contestant"), max_length=100, initial="Nightly {n}",
        help_text=_("{n} is the number of the time, {date} its day."),
    )  # fmt: skip
    round_name = forms.CharField(
        label=_("Name of the round"), max_length=100, required=False,
        help_text=_("Empty: no round is drafted. {n} and {date} work here, too."),
    )  # fmt: skip
    contestants = forms.MultipleChoiceField(
        label=_("Contestants to stand beside"), required=False,
        widget=forms.CheckboxSelectMultiple,
    )  # fmt: skip
    raters = forms.MultipleChoiceField(
        label=_("Raters"), required=False, widget=forms.CheckboxSelectMultiple
    )
    axes = forms.MultipleChoiceField(
        label=_("Axes"), choices=Axis.choices, initial=Axis.values, required=False,
        widget=forms.CheckboxSelectMultiple,
    )  # fmt: skip
    personas_n = forms.IntegerField(
        label=_("How many personas"), min_value=0, initial=0, help_text=_("0 takes all.")
    )
    prompts_n = forms.IntegerField(
        label=_("How many prompts"), min_value=0, initial=0, help_text=_("0 takes all.")
    )
    planned_votes = forms.IntegerField(label=_("Planned votes"), min_value=1, initial=600)
    holdout_percent = forms.IntegerField(
        label=_("Holdout, percent"), min_value=0, max_value=50, initial=0
    )
    simulated = forms.BooleanField(label=_("Simulated votes"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for stage in STAGES[1:]:
            self.fields[f"arrow_{stage}"] = forms.ChoiceField(
                label=INTO[stage], choices=Arrow.choices, initial=Arrow.OFF
            )
        for name, choices in offers.offered().items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    @property
    def groups(self) -> list[tuple[Any, list[forms.BoundField], bool]]:
        """Title, fields, whether the group is folded."""
        arrows = [f"arrow_{stage}" for stage in STAGES[1:]]
        groups: dict[Any, tuple[list[str], bool]] = {
            _("When"): (["key", "name", "hour"], False),
            _("How far it goes"): (arrows, False),
            _("What it trains with"): (
                ["quality", "personalization", "prompts", "defects", "base", "gate"], False,
            ),
            _("The round that it drafts"): (
                ["contestant", "round_name", "contestants", "raters", "axes", "simulated"], False,
            ),
            _("More settings"): (
                ["preset", "quality_config", "personalization_config", "grpo_config",
                 "personas_n", "prompts_n", "planned_votes", "holdout_percent"], True,
            ),
        }  # fmt: skip
        return [
            (t, [self[n] for n in names], fold and not any(self[n].errors for n in names))
            for t, (names, fold) in groups.items()
        ]

    def values(self, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Arguments of `create_chain` but `key`. Of the recipe `before` stays what is not shown."""
        data = self.cleaned_data
        chosen = offers.chosen(data)
        configs = {b: data[f"{b}_config"] for b in ("quality", "personalization")}
        recipe = standard_recipe(
            **chosen, preset=data["preset"], reward_config=configs,
            grpo_config=data["grpo_config"], contestant=data["contestant"],
            round=self._round(),
        )  # fmt: skip
        return {
            "name": data["name"],
            "hour": int(data["hour"]) if data["hour"] else None,
            "arrows": {stage: data[f"arrow_{stage}"] for stage in STAGES[1:]},
            "recipe": kept(before, recipe) if before else recipe,
        }

    def _round(self) -> dict[str, Any]:
        data = self.cleaned_data
        if not data["round_name"]:
            return {}
        axes = data["axes"] or Axis.values
        share = 100 // len(axes)
        return {
            "name": data["round_name"],
            "contestants": [int(pk) for pk in data["contestants"]],
            "raters": [int(pk) for pk in data["raters"]],
            "axes": list(axes),
            "weights": dict.fromkeys(axes, share),
            "simulated": data["simulated"],
            **{n: data[n] for n in ("personas_n", "prompts_n", "planned_votes",
                                    "holdout_percent")},
        }  # fmt: skip


class ArrowsForm(forms.Form):
    """The arrows alone, on the page of a chain."""

    def __init__(self, *args: Any, arrows: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for stage in STAGES[1:]:
            self.fields[stage] = forms.ChoiceField(
                label=INTO[stage], choices=Arrow.choices, initial=arrows.get(stage, Arrow.OFF)
            )


def initial_of(chain: Chain) -> dict[str, Any]:
    """What the form shows of a chain that was made by it."""
    recipe, plan = chain.recipe, chain.recipe["round"]
    found: dict[str, Any] = {
        "name": chain.name, "hour": "" if chain.hour is None else str(chain.hour),
        "prompts": recipe["fixed"].get("prompts"), "defects": recipe["fixed"].get("defects", ""),
        "base": recipe["base"], "gate": recipe["gate"], "preset": recipe["grpo"]["preset"],
        "grpo_config": recipe["grpo"]["config"], "contestant": recipe["contestant"]["name"],
        "round_name": plan.get("name", ""),
    }  # fmt: skip
    for branch in ("quality", "personalization"):
        found[branch] = recipe["datasets"].get(branch, {}).get("like")
        config = dict(recipe["rewards"].get(branch, {}).get("config") or {})
        own = {k: v for k, v in (config.pop("reward_model", None) or {}).items() if k != "branch"}
        found[f"{branch}_config"] = {**config, **({"reward_model": own} if own else {})}
    found |= {f"arrow_{stage}": value for stage, value in chain.arrows.items()}
    same = ("contestants", "raters", "axes", "personas_n", "prompts_n", "planned_votes",
            "holdout_percent", "simulated")  # fmt: skip
    return found | {name: plan[name] for name in same if name in plan}
