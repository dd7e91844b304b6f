"""The forms of counterfactual jobs and of their review."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.enums import RewriterKind
from annotation.models import Project
from webapp.catalog.enums import Axis

OPTIONS = ("axis", "minimum", "limit", "seed", "url", "model", "key_name")


class JobForm(forms.Form):
    """`key` makes a double click one job."""

    rewriter = forms.ChoiceField(
        label=_("Rewriter"), choices=RewriterKind.choices, widget=forms.RadioSelect, initial="rules"
    )
    axis = forms.ChoiceField(label=_("Highly rated on"), choices=Axis.choices)
    minimum = forms.IntegerField(label=_("Posterior of the outcome, at least %"), initial=80)
    limit = forms.IntegerField(label=_("Answers at most"), initial=200)
    seed = forms.IntegerField(
        label=_("Seed"), initial=0, help_text=_("Decides which opposite persona is taken.")
    )
    url = forms.CharField(
        label=_("Address of the endpoint"),
        required=False,
        max_length=500,
        help_text=_("Such as https://example.org/v1."),
    )
    model = forms.CharField(label=_("Model"), required=False, max_length=200)
    key_name = forms.CharField(
        label=_("Variable with the endpoint's key"),
        required=False,
        max_length=80,
        help_text=_("Its name, such as PALATE_KEY_REWRITER. The key itself is never kept."),
    )
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        axis = self.fields["axis"]
        assert isinstance(axis, forms.ChoiceField)
        axis.choices = [(name, Axis(name).label) for name in reversed(project.axes)]

    def options(self) -> dict[str, Any]:
        values = {name: self.cleaned_data[name] for name in OPTIONS}
        return {**values, "key": values.pop("key_name")}


class ReviewForm(forms.Form):
    pair = forms.CharField(widget=forms.HiddenInput, max_length=32)
    note = forms.CharField(
        label=_("Note"), required=False, max_length=300, widget=forms.Textarea(attrs={"rows": 2})
    )
