"""The form of an export."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.enums import DecisionSource
from annotation.exports import options as known
from annotation.models import Project
from annotation.selectors.export_words import FILE_TYPES, FORMATS, SPLITS, STYLES, SYNTHETIC, TIES
from webapp.catalog.enums import Axis

NUMBERS = ("minimum", "unresolved", *known.SPLITS)


class ExportForm(forms.Form):
    """`key` makes a double click one export."""

    format = forms.ChoiceField(label=_("Format"), choices=list(FORMATS.items()))
    file_type = forms.ChoiceField(
        label=_("File"),
        choices=list(FILE_TYPES.items()),
        help_text=_("Only TRL's formats come in several; elsewhere this is left alone."),
    )
    style = forms.ChoiceField(
        label=_("Texts"),
        choices=list(STYLES.items()),
        help_text=_("Of TRL's formats. With roles, the model's own chat template is applied."),
    )
    axis = forms.ChoiceField(label=_("Axis"), choices=Axis.choices)
    persona_in_prompt = forms.BooleanField(
        label=_("The persona's summary stands in the prompt, as a system turn"),
        required=False,
        initial=True,
    )
    sources = forms.MultipleChoiceField(
        label=_("Outcomes"),
        choices=[(name, DecisionSource(name).label) for name in known.SOURCES],
        widget=forms.CheckboxSelectMultiple,
        initial=["unanimous", "majority", "adjudicated"],
    )
    minimum = forms.IntegerField(
        label=_("Posterior of the outcome, at least %"),
        initial=0,
        help_text=_("Adjudicated outcomes stand whatever it is."),
    )
    unresolved = forms.IntegerField(
        label=_("Unresolved items: posterior of the likeliest verdict, at least %"), initial=95
    )
    ties = forms.ChoiceField(label=_("Equal answers"), choices=list(TIES.items()))
    both_bad = forms.ChoiceField(label=_("Both answers bad"), choices=list(TIES.items()))
    synthetic = forms.ChoiceField(label=_("Counterfactual pairs"), choices=list(SYNTHETIC.items()))
    external = forms.BooleanField(
        label=_("Take items whose labels were imported"), required=False, initial=True
    )
    undecided = forms.BooleanField(
        label=_("Palate pairs: take items without an outcome, held or dropped ones, too"),
        required=False,
        initial=True,
    )
    train = forms.IntegerField(label=SPLITS["train"], initial=100)
    validation = forms.IntegerField(label=SPLITS["validation"], initial=0)
    test = forms.IntegerField(label=SPLITS["test"], initial=0)
    seed = forms.IntegerField(
        label=_("Seed of the splits"),
        initial=0,
        help_text=_("The same items and seed give the same splits."),
    )
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        axis = self.fields["axis"]
        assert isinstance(axis, forms.ChoiceField)
        axis.choices = [(name, Axis(name).label) for name in project.axes]
        for name in NUMBERS:
            self.fields[name].widget.attrs.update(min=0, max=100, step=1)

    def options(self) -> dict[str, Any]:
        """As the service wants them; a format with one kind of file has that one."""
        values = {name: value for name, value in self.cleaned_data.items() if name != "key"}
        types = known.FILE_TYPES[values["format"]]
        if values["file_type"] not in types:
            values["file_type"] = types[0]
        return values

    def groups(self) -> list[tuple[Any, list[Any]]]:
        """The fields as the page shows them."""
        named: list[tuple[Any, tuple[str, ...]]] = [
            (_("The file"), ("format", "file_type", "style", "axis", "persona_in_prompt")),
            (
                _("Which items"),
                (
                    "sources",
                    "minimum",
                    "unresolved",
                    "ties",
                    "both_bad",
                    "synthetic",
                    "external",
                    "undecided",
                ),
            ),
            (_("Splits"), ("train", "validation", "test", "seed")),
        ]
        return [(title, [self[name] for name in names]) for title, names in named]
