"""Forms of gates, audits, edge cases and promotions; rules stand in the services."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from training.engine.config.load import preset_names
from training.enums import AuditVerdict, EdgeSource
from training.gate_policies import SCORERS
from training.gating.rules import Rules
from training.selectors import gates as offers
from training.words.gates import RULES
from training.words.gates import SCORERS as SCORER_WORDS

FIRST = ("quality_margin", "gain", "stratum_margin", "minimum")  # the rest under "more"


def _scorers(axis: str) -> list[tuple[str, Any]]:
    return [(name, SCORER_WORDS[name]) for name in SCORERS[axis]]


class Keyed(forms.Form):
    """`key` makes a double click have effect once."""

    key = forms.CharField(widget=forms.HiddenInput, max_length=64)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["key"].initial = uuid.uuid4().hex


class GateForm(forms.Form):
    """A new gate. It is fixed once made."""

    name = forms.CharField(label=_("Name"), max_length=120)
    dataset = forms.ChoiceField(
        label=_("Items"),
        help_text=_("The gate split of a frozen dataset: its questions under their personas."),
    )
    baseline = forms.ChoiceField(
        label=_("Baseline"), help_text=_("The model with which every candidate is compared.")
    )
    quality = forms.MultipleChoiceField(
        label=_("Who judges quality"),
        choices=_scorers("quality"),
        widget=forms.CheckboxSelectMultiple,
        initial=["quality/auditors"],
    )
    quality_run = forms.ChoiceField(label=_("Reward model for quality"), required=False)
    personalization = forms.MultipleChoiceField(
        label=_("Who judges personalization"),
        choices=_scorers("personalization"),
        widget=forms.CheckboxSelectMultiple,
        initial=["personalization/auditors"],
    )
    personalization_run = forms.ChoiceField(
        label=_("Reward model for personalization"), required=False
    )
    preset = forms.ChoiceField(
        label=_("Machine settings"), choices=[(n, n) for n in preset_names()], initial="tiny"
    )
    draws = forms.IntegerField(
        label=_("Answers to each item"), initial=1, min_value=1, max_value=64
    )
    max_completion = forms.IntegerField(label=_("Longest answer, tokens"), initial=512, min_value=1)
    temperature = forms.FloatField(label=_("Temperature"), initial=0.9, min_value=0)
    to_audit = forms.IntegerField(
        label=_("Successes to read before a promotion"), initial=10, min_value=1, max_value=1000
    )
    edge_draw = forms.IntegerField(
        label=_("Edge cases in a gate"), initial=50, min_value=0, max_value=1000
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (label, hint) in RULES.items():
            default = getattr(Rules(), name)
            whole = isinstance(default, int) or default is None
            kind = forms.IntegerField if whole else forms.FloatField
            self.fields[name] = kind(
                label=label, help_text=hint, initial=default, required=default is not None
            )
        offered = offers.offered()
        nobody = [("", _("nobody"))]
        self._choose("dataset", offered.datasets)
        self._choose("baseline", offered.models)
        self._choose("quality_run", nobody + offered.judges["quality"])
        self._choose("personalization_run", nobody + offered.judges["personalization"])

    def _choose(self, name: str, choices: list[tuple[Any, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    @property
    def groups(self) -> list[tuple[Any, list[forms.BoundField], bool]]:
        """Title, fields, whether the group is folded."""
        rest = ["draws", "max_completion", "temperature", "preset", "edge_draw"]
        rest += [name for name in RULES if name not in FIRST]
        groups = {
            _("What is compared"): (["name", "dataset", "baseline"], False),
            _("Who judges"): (
                ["quality", "quality_run", "personalization", "personalization_run"], False,
            ),
            _("What is demanded"): ([*FIRST, "to_audit"], False),
            _("More settings"): (rest, True),
        }  # fmt: skip
        return [
            (title, [self[n] for n in names], fold and not any(self[n].errors for n in names))
            for title, (names, fold) in groups.items()
        ]

    def values(self) -> dict[str, Any]:
        """Arguments of `create_gate`."""
        data = self.cleaned_data
        sampling = {name: data[name] for name in ("draws", "max_completion", "temperature")}
        return {
            "name": data["name"],
            "dataset": offers.dataset(data["dataset"]),
            "baseline": offers.run(data["baseline"]),
            "quality": offers.run(data["quality_run"]),
            "personalization": offers.run(data["personalization_run"]),
            "scorers": {axis: data[axis] for axis in ("quality", "personalization")},
            "rules": {name: data[name] for name in RULES if data[name] is not None},
            "sampling": sampling,
            "preset": data["preset"],
            "edge_draw": data["edge_draw"],
            "to_audit": data["to_audit"],
        }


class StartForm(Keyed):
    """Which model goes through the gate."""

    candidate = forms.ChoiceField(label=_("Candidate"))

    def __init__(self, *args: Any, spec: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["candidate"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = offers.candidates(spec)


class MarkForm(forms.Form):
    """What a success is worth."""

    item = forms.CharField(widget=forms.HiddenInput, max_length=64)
    draw = forms.IntegerField(widget=forms.HiddenInput)
    verdict = forms.ChoiceField(choices=AuditVerdict.choices)
    note = forms.CharField(label=_("Note"), max_length=500, required=False)


class CaseForm(forms.Form):
    """An edge case written by hand."""

    prompt = forms.CharField(
        label=_("Question"), max_length=8000, widget=forms.Textarea(attrs={"rows": 3})
    )
    summary = forms.CharField(label=_("Persona summary"), max_length=100, required=False)
    source = forms.ChoiceField(
        label=_("Where it comes from"),
        choices=[
            (source.value, source.label)
            for source in (EdgeSource.AUTHORED, EdgeSource.COMPLAINT, EdgeSource.ROLLOUT)
        ],
    )
    reason = forms.CharField(label=_("What went wrong"), max_length=300, required=False)


class PromoteForm(forms.Form):
    """The contestant that a model becomes."""

    name = forms.CharField(label=_("Name of the contestant"), max_length=120)
    version = forms.CharField(label=_("Version"), max_length=64, required=False)


class OverrideForm(PromoteForm, Keyed):
    reason = forms.CharField(
        label=_("Why it should enter without a passed gate"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
