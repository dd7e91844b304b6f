"""Forms of gold items, appeals, problems and pairs from the catalog."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.enums import Axis, Shown
from annotation.models import Project
from annotation.policies import allowed_outcomes
from annotation.selectors.tasks import as_shown
from annotation.services.gold import EXPLANATION_LIMIT
from annotation.services.review_problems import Resolution
from annotation.services.texts import TEXT_LIMIT
from webapp.catalog.models import Contestant


def verdict_choices(project: Project, *, empty: Any) -> list[tuple[str, Any]]:
    """The canonical verdicts that a project allows, A being the first answer, or none."""
    allowed = allowed_outcomes(project)
    return [("", empty), *((v, Shown(as_shown(v, True)).label) for v in allowed)]


class GoldForm(forms.Form):
    """The known answer of an item, with A as its first answer."""

    explanation = forms.CharField(
        label=_("Why"),
        required=False,
        max_length=EXPLANATION_LIMIT,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Shown to those who learn with it, never for a hidden one."),
    )
    onboarding = forms.BooleanField(
        label=_("To learn with: shown at the beginning, with the answer. Never mixed in unseen"),
        required=False,
    )
    reason = forms.CharField(label=_("Reason for the change"), required=False, max_length=300)

    def __init__(self, *args: Any, project: Project, correction: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for axis in reversed(project.axes):
            self.fields[axis] = forms.ChoiceField(
                label=Axis(axis).label.capitalize(),
                choices=verdict_choices(project, empty=_("not checked on this axis")),
                required=False,
            )
        self.order_fields([*project.axes, "explanation", "onboarding", "reason"])
        if not correction:
            del self.fields["reason"]

    def verdicts(self) -> dict[str, str]:
        return {axis: self.cleaned_data[axis] for axis in Axis.values if axis in self.fields}


class AppealForm(forms.Form):
    """What becomes of an appeal. The answer is read by the annotator."""

    answer = forms.CharField(
        label=_("Your answer to the annotator"),
        max_length=TEXT_LIMIT,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_(
            "Speak of the two answers and the guidelines only. Never say whether the item was "
            "gold, or what others chose."
        ),
    )

    def __init__(self, *args: Any, project: Project, is_gold: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_gold = is_gold
        if not is_gold:
            return
        for axis in project.axes:
            self.fields[axis] = forms.ChoiceField(
                label=_("Right answer, %(axis)s") % {"axis": Axis(axis).label},
                choices=verdict_choices(project, empty=_("not checked on this axis")),
                required=False,
            )
        self.fields["retire"] = forms.BooleanField(
            label=_("Retire this gold item instead: nobody is scored by it any more"),
            required=False,
        )

    def verdicts(self) -> dict[str, str]:
        return {axis: self.cleaned_data[axis] for axis in Axis.values if axis in self.fields}


RESOLUTIONS = [
    (Resolution.KEEP.value, _("keep it: nothing is wrong")),
    (Resolution.HOLD.value, _("hold it back")),
    (Resolution.DROP.value, _("drop it")),
    (Resolution.ADJUDICATE.value, _("let an adjudicator decide")),
]


class ContestantsForm(forms.Form):
    """Two contestants whose answers to the same prompts become items."""

    first = forms.ModelChoiceField(label=_("One contestant"), queryset=Contestant.objects.all())
    second = forms.ModelChoiceField(label=_("The other"), queryset=Contestant.objects.all())
