"""Forms of datasets. They translate; the rules stand in the services."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.enums import DecisionSource
from training.enums import IMPORTED, Kind, Source
from training.filters import KINDS, PAIRS, SPLITS, TRAIN_ONLY, Filter
from training.selectors.datasets import Choices, choices
from webapp.catalog.enums import STRATUM_FEATURES, Axis
from webapp.catalog.strata import stratum_label

DECIDED = ("unanimous", "majority", "adjudicated", "synthetic")
MANY = ("sources", "projects", "decided", "rounds", "imports", "stratum_features", "strata",
        "languages", "categories")  # fmt: skip


def _checkboxes(label: Any, help_text: Any = "") -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label, help_text=help_text, required=False, widget=forms.CheckboxSelectMultiple
    )


def _percent(label: Any, initial: int = 0, help_text: Any = "") -> forms.IntegerField:
    field = forms.IntegerField(label=label, initial=initial, help_text=help_text)
    field.widget.attrs.update(min=0, max=100, step=1)
    return field


class DatasetForm(forms.Form):
    """The filter of one kind. `key` makes a double click one dataset."""

    name = forms.CharField(label=_("Name"), max_length=120)
    sources = _checkboxes(_("Take rows from"))
    axis = forms.ChoiceField(label=_("Axis"), choices=Axis.choices)
    projects = _checkboxes(_("Projects"), _("None: all of them."))
    decided = forms.MultipleChoiceField(
        label=_("How it was decided"),
        choices=[(name, DecisionSource(name).label) for name in DECIDED],
        widget=forms.CheckboxSelectMultiple,
        initial=list(Filter.decided),
    )
    minimum = _percent(
        _("Posterior of the verdict, at least %"),
        help_text=_("Adjudicated pairs and those by construction stand whatever it is."),
    )
    extras = forms.BooleanField(label=_("Late labels count in the posterior"), required=False)
    rounds = _checkboxes(_("Unsealed rounds"), _("None: all of them. Holdout contexts never."))
    votes = forms.IntegerField(
        label=_("Votes for the better answer, at least"), initial=1, min_value=1
    )
    simulated = forms.BooleanField(
        label=_("Simulated votes and labels, too; such rows are marked"), required=False
    )
    imports = _checkboxes(_("Imported files"), _("None: all of them."))
    languages = _checkboxes(_("Languages"), _("None: all of them."))
    categories = _checkboxes(_("Categories"), _("None: all of them."))
    stratum_features = forms.MultipleChoiceField(
        label=_("Strata by"),
        choices=list(STRATUM_FEATURES.items()),
        widget=forms.CheckboxSelectMultiple,
        initial=list(Filter.stratum_features),
        required=False,
        help_text=_("Features of the personas by which rows are counted."),
    )
    strata = _checkboxes(_("Only these strata"), _("None: all of them."))
    train = _percent(_("Training, %"), 100)
    reward_model_gate = _percent(_("Gate of reward models, %"))
    gate = _percent(_("Gate of policies, %"))
    edge = _percent(_("Edge cases, %"))
    arena = _percent(_("Arena, %"))
    cut = forms.BooleanField(
        label=_("Leave out rows whose prompt and persona would be in different splits"),
        required=False,
        initial=True,
        help_text=_(
            "Needed where every prompt is asked for every persona. Without it, such rows stay "
            "together in one split, and a contradiction refuses the freeze."
        ),
    )
    seed = forms.IntegerField(
        label=_("Seed of the splits"),
        initial=1,
        min_value=0,
        help_text=_("The same rows and seed give the same splits."),
    )
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)

    def __init__(self, *args: Any, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        features = self.data.getlist("stratum_features") if self.is_bound else None  # type: ignore[attr-defined]
        offered = choices(kind, features or Filter.stratum_features)
        self._offer(offered)
        for name in self._needless():
            del self.fields[name]

    def _offer(self, offered: Choices) -> None:
        texts: dict[str, list[tuple[str, Any]]] = {
            "sources": [(s, Source(s).label) for s in KINDS[self.kind]],
            "projects": [(str(pk), name) for pk, name in offered.projects],
            "rounds": [(str(pk), name) for pk, name in offered.rounds],
            "imports": [(str(pk), name) for pk, name in offered.imports],
            "languages": [(name, name) for name in offered.languages],
            "categories": [(name, name) for name in offered.categories],
            "strata": [(name, stratum_label(name)) for name in offered.strata],
        }
        for name, pairs in texts.items():
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)
            field.choices = pairs
        self.fields["sources"].initial = list(KINDS[self.kind])

    def _needless(self) -> set[str]:
        """Fields that this kind does not have, or that have nothing to choose."""
        sources = set(KINDS[self.kind])
        gone = {"sources"} if len(sources) == 1 else set()
        if "annotation" not in sources:
            gone |= {"projects", "decided", "extras"}
        if "arena" not in sources:
            gone |= {"rounds", "votes"}
        if not {"annotation", "arena"} & sources:
            gone |= {"axis", "minimum", "simulated"}
        if "import" not in sources:
            gone.add("imports")
        if self.kind in TRAIN_ONLY:
            gone |= set(SPLITS) | {"axis", "decided"}
        if self.kind not in PAIRS:
            gone |= {"minimum", "votes", "extras"}
        offered = ("projects", "rounds", "imports", "languages", "categories", "strata")
        return gone | {name for name in offered if not self.fields[name].choices}  # type: ignore[attr-defined]

    def values(self) -> dict[str, Any]:
        """The filter as the service wants it."""
        found = {}
        for name, value in self.cleaned_data.items():
            if name in ("name", "key"):
                continue
            if name in ("projects", "rounds", "imports"):
                value = [int(pk) for pk in value]
            found[name] = value
        return found

    def groups(self) -> list[tuple[Any, list[Any]]]:
        """The fields as the page shows them; empty groups are left out."""
        named: list[tuple[Any, tuple[str, ...]]] = [
            (_("The dataset"), ("name", "sources", "axis")),
            (_("Decisions of annotation"), ("projects", "decided", "minimum", "extras")),
            (_("Votes"), ("rounds", "votes", "simulated")),
            (_("Imported files"), ("imports",)),
            (_("Which rows"), ("languages", "categories", "stratum_features", "strata")),
            (_("Splits"), (*SPLITS, "cut", "seed")),
        ]
        shown = [(title, [self[n] for n in names if n in self.fields]) for title, names in named]
        return [(title, fields) for title, fields in shown if fields]


class RecordsForm(forms.Form):
    """`key` makes a double click one upload."""

    file = forms.FileField(label=_("File"), max_length=1000)
    kind = forms.ChoiceField(
        label=_("What it holds"), choices=[(kind.value, kind.label) for kind in IMPORTED]
    )
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["file"].help_text = gettext("JSON Lines, UTF-8, at most %(size)s.") % {
            "size": filesizeformat(settings.UPLOAD_LIMIT)
        }

    def clean_file(self) -> Any:
        upload = self.cleaned_data["file"]
        if upload.size > settings.UPLOAD_LIMIT:
            raise forms.ValidationError(
                gettext("The file has %(size)s; at most %(limit)s are allowed.")
                % {
                    "size": filesizeformat(upload.size),
                    "limit": filesizeformat(settings.UPLOAD_LIMIT),
                }
            )
        return upload


def known_kind(text: str | None) -> str:
    """The kind that a query names, or the most usual one."""
    return text if text in Kind.values else Kind.PREFERENCES.value
