"""Forms of a project: its settings, guidelines and members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.enums import Axis, Tag
from annotation.models import Project
from annotation.services.project_settings import RANGES
from annotation.services.projects import FIXED_ONCE_LABELLED, GUIDELINE_LIMIT
from webapp.accounts.models import User
from webapp.catalog.enums import STRATUM_FEATURES

DERIVED = ("tags", "price")  # stored otherwise than they are shown
FIXED = _("Fixed: there are labels already. Another question needs another project.")


def number(name: str, label: Any, help_text: Any = "", **more: Any) -> forms.IntegerField:
    low, high = RANGES[name]
    return forms.IntegerField(
        label=label, help_text=help_text, min_value=low, max_value=high, **more
    )


class ProjectForm(forms.Form):
    """All settings of a project; every one is checked again by the service."""

    name = forms.CharField(label=_("Name"), max_length=120)
    axes = forms.MultipleChoiceField(
        label=_("Axes"),
        choices=Axis.choices,
        initial=Axis.values,
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "Each axis is one question about the two answers. Personalization needs items with a "
            "persona."
        ),
    )
    ask_strength = forms.BooleanField(
        label=_("Ask how much better: slightly, clearly, much"), required=False
    )
    allow_tie = forms.BooleanField(label=_("Allow “equal”"), required=False, initial=True)
    allow_both_bad = forms.BooleanField(
        label=_("Allow “both are bad”"), required=False, initial=True
    )
    tags = forms.CharField(
        label=_("Reasons to choose from"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=_("One a line, at most 30. Annotators may tick any of them; none is asked for."),
    )
    base_overlap = forms.IntegerField(
        label=_("Labels per item"),
        min_value=1,
        max_value=50,
        initial=2,
        help_text=_("By different people. With 2 you see where they differ."),
    )
    max_overlap = forms.IntegerField(
        label=_("At most, on disagreement"),
        min_value=1,
        max_value=50,
        initial=3,
        help_text=_(
            "Where labels differ, one more person is asked, up to this number. Then it is a "
            "dispute."
        ),
    )
    lease_minutes = number(
        "lease_minutes",
        _("Minutes per item"),
        _(
            "How long an item is kept for somebody. Empty: three times the usual time, 2 to 30 "
            "minutes."
        ),
        required=False,
    )
    gold_percent = number(
        "gold_percent",
        _("Gold items, percent of the work"),
        _(
            "Items whose answer you know, mixed in unseen. They tell how far each annotator can "
            "be trusted."
        ),
        initial=5,
    )
    gold_floor = number(
        "gold_floor",
        _("Accuracy on gold, at least percent"),
        _(
            "Who is not shown to reach it, with a certainty of nine in ten, is paused, and you are "
            "told. 0 pauses nobody."
        ),
        initial=50,
    )
    gold_minimum = number(
        "gold_minimum",
        _("Gold labels before it counts"),
        _("Nobody is paused for fewer."),
        initial=8,
    )
    repeat_percent = number(
        "repeat_percent",
        _("Repeated items, percent of the work"),
        _("An item comes again with the sides changed, to see whether the same is chosen."),
        initial=3,
    )
    onboarding_size = number(
        "onboarding_size",
        _("Items to learn with"),
        _("Gold items marked for learning come first, with the right answer and why. 0: none."),
        initial=5,
    )
    stratum_features = forms.MultipleChoiceField(
        label=_("Strata are formed by"),
        choices=list(STRATUM_FEATURES.items()),
        required=False,
        initial=["expertise"],
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "Agreement is reported for each stratum, and each may have a target. A change sorts "
            "all items anew and drops the targets."
        ),
    )
    price = forms.DecimalField(
        label=_("Price of a label"),
        min_value=0,
        max_value=10_000,
        decimal_places=2,
        initial=0,
        help_text=_("For the forecast of the cost. 0: no cost is shown."),
    )
    currency = forms.CharField(label=_("Currency"), min_length=3, max_length=3, initial="EUR")

    def __init__(self, *args: Any, labelled: bool = False, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {})
        kwargs["initial"].setdefault("tags", tag_lines(Tag.values))
        super().__init__(*args, **kwargs)
        for name in FIXED_ONCE_LABELLED if labelled else ():
            self.fields[name].disabled = True
            self.fields[name].help_text = FIXED

    def groups(self) -> Iterator[tuple[Any, list[forms.BoundField]]]:
        """Fields in the order of the page, with their headings."""
        for heading, names in GROUPS:
            yield heading, [self[name] for name in names]

    def settings(self) -> dict[str, Any]:
        """What the service takes; call after `is_valid`."""
        data = dict(self.cleaned_data)
        data["tags"] = _tags_of(data["tags"])
        data["price_cents"] = int(data.pop("price") * 100)
        data["currency"] = data["currency"].upper()
        return data


class CreateForm(ProjectForm):
    """A new project: its settings and the first version of its guidelines."""

    guidelines = forms.CharField(
        label=_("Guidelines"),
        max_length=GUIDELINE_LIMIT,
        widget=forms.Textarea(attrs={"rows": 14}),
        help_text=_(
            "What annotators go by, in Markdown. You can publish new versions at any time; each "
            "label remembers which one it was given under."
        ),
    )

    def groups(self) -> Iterator[tuple[Any, list[forms.BoundField]]]:
        groups = list(super().groups())
        yield groups[0]
        yield _("Guidelines"), [self["guidelines"]]
        yield from groups[1:]


GROUPS: list[tuple[Any, list[str]]] = [
    (_("What is asked"), ["name", "axes", "ask_strength", "allow_tie", "allow_both_bad", "tags"]),
    (_("How often"), ["base_overlap", "max_overlap", "lease_minutes"]),
    (
        _("Whom to trust"),
        ["gold_percent", "gold_floor", "gold_minimum", "repeat_percent", "onboarding_size"],
    ),
    (_("Strata"), ["stratum_features"]),
    (_("Cost"), ["price", "currency"]),
]


def tag_lines(tags: list[str]) -> str:
    """Reasons as lines; those that the project starts with in the reader's language."""
    return "\n".join(str(Tag(tag).label) if tag in Tag.values else tag for tag in tags)


def _tags_of(text: str) -> list[str]:
    known = {str(label): value for value, label in Tag.choices}
    lines = [line.strip() for line in text.splitlines()]
    return list(dict.fromkeys(known.get(line, line) for line in lines if line))


def initial_from_project(project: Project) -> dict[str, Any]:
    """A project's settings as the form shows them."""
    values = {
        name: getattr(project, name) for name in ProjectForm.base_fields if name not in DERIVED
    }
    return values | {"tags": tag_lines(project.tags), "price": f"{project.price_cents / 100:.2f}"}


class GuidelineForm(forms.Form):
    text = forms.CharField(
        label=_("Guidelines"),
        max_length=GUIDELINE_LIMIT,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 18}),
        help_text=_("Markdown. Annotators are asked to read a new version before they go on."),
    )


class MembersForm(forms.Form):
    """Accounts to add, chosen from those that may work."""

    users = forms.ModelMultipleChoiceField(
        label=_("Accounts"), queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple
    )
    adjudicates = forms.BooleanField(
        label=_("They may decide disputed items that they did not label"), required=False
    )

    def __init__(self, *args: Any, users: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["users"]
        field.queryset = users
        field.label_from_instance = _account_label


def _account_label(user: Any) -> str:
    return f"{user.username} · {user.get_role_display()}"
