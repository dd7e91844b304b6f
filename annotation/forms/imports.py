"""Forms of imports of pairs: the upload, and how its file is read."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.enums import Axis
from annotation.formats import FORMATS
from annotation.formats.columns import FROM_COLUMNS, VALUES, WORDS, guess
from annotation.models import Project
from annotation.selectors.imports import TITLES, columns_of
from webapp.catalog.forms import UploadForm
from webapp.catalog.models import ImportRun

MEANINGS: dict[str, Any] = {
    "prompt": _("question"),
    "system": _("system prompt"),
    "persona_pseudonym": _("persona: pseudonym"),
    "persona_summary": _("persona: summary"),
    "first": _("first answer"),
    "second": _("second answer"),
    "chosen": _("chosen answer"),
    "rejected": _("rejected answer"),
    "label": _("which one is better"),
    "personalization_label": _("which one suits better (personalization)"),
    "annotator": _("annotator"),
    "comment": _("comment of the annotator"),
    "first_producer": _("model of the first answer"),
    "second_producer": _("model of the second answer"),
    "chosen_producer": _("model of the chosen answer"),
    "rejected_producer": _("model of the rejected answer"),
    "category": _("category"),
    "language": _("language"),
}
WORD_LABELS: dict[str, Any] = {
    "values_first": _("Words for “the first is better”"),
    "values_second": _("Words for “the second is better”"),
    "values_tie": _("Words for “equal”"),
    "values_both_bad": _("Words for “both are bad”"),
}


class ReadingForm(forms.Form):
    """How a file is read."""

    format = forms.ChoiceField(label=_("Format"), required=False)
    axis = forms.ChoiceField(label=_("The labels of the file are about"), required=False)
    annotator = forms.CharField(
        label=_("Annotator"),
        max_length=120,
        required=False,
        help_text=_("Whose labels they are, where the file does not say. Empty: “dataset”."),
    )
    gold = forms.BooleanField(
        label=_("The labels are known answers: bring the pairs in as gold"), required=False
    )
    no_labels = forms.BooleanField(
        label=_("Leave the labels of the file out: the pairs are to be labelled anew"),
        required=False,
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choose_format, axis = self.fields["format"], self.fields["axis"]
        assert isinstance(choose_format, forms.ChoiceField)
        assert isinstance(axis, forms.ChoiceField)
        titles = [(name, str(TITLES[name])) for name in TITLES if name in FORMATS]
        choose_format.choices = [("", gettext("as the file looks")), *titles]
        axis.choices = [(name, str(Axis(name).label)) for name in project.axes]
        if len(project.axes) == 1:
            del self.fields["axis"]

    def options(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {name: given.get(name) for name in ("axis", "gold", "no_labels", "annotator")}


class PairUploadForm(ReadingForm, UploadForm):
    """`key` makes a double click one upload."""

    field_order = ("file", "format", "axis", "annotator", "gold", "no_labels", "key")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["file"].help_text = gettext(
            "JSON Lines, a JSON list, CSV or Parquet; gzip and zip are opened. %(limit)s"
        ) % {"limit": self.fields["file"].help_text}


class CheckForm(ReadingForm):
    """Check again in another way. Columns have a choice each, numbered: names may be anything."""

    def __init__(self, *args: Any, run: ImportRun, **kwargs: Any) -> None:
        asked = {**run.options, "format": run.format}
        super().__init__(*args, initial=asked, **kwargs)
        self.columns: list[list[str]] = columns_of(run)
        mapping = run.options.get("mapping") or guess(tuple(name for name, _e in self.columns))
        meaning = {column: what for what, column in mapping.items() if what in FROM_COLUMNS}
        choices = [("", gettext("not used")), *((w, str(MEANINGS[w])) for w in FROM_COLUMNS)]
        for n, (name, example) in enumerate(self.columns):
            self.fields[f"column_{n}"] = forms.ChoiceField(
                label=name,
                choices=choices,
                required=False,
                initial=meaning.get(name, ""),
                help_text=gettext("For example: %(text)s") % {"text": example} if example else "",
            )
        for what, label in WORD_LABELS.items():
            self.fields[what] = forms.CharField(
                label=label,
                max_length=300,
                required=False,
                initial=mapping.get(what, ""),
                help_text=gettext("Separated by commas. Empty: %(words)s.")
                % {"words": WORDS[VALUES[what]]},
            )

    def column_fields(self) -> list[forms.BoundField]:
        return [self[f"column_{n}"] for n in range(len(self.columns))]

    def word_fields(self) -> list[forms.BoundField]:
        return [self[what] for what in WORD_LABELS]

    def has_words(self) -> bool:
        return any(self[what].value() for what in WORD_LABELS)

    def reading_fields(self) -> list[forms.BoundField]:
        names = ("format", "axis", "annotator", "gold", "no_labels")
        return [self[name] for name in names if name in self.fields]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        seen: set[str] = set()
        for n in range(len(self.columns)):
            what = cleaned.get(f"column_{n}")
            if what and what in seen:
                self.add_error(f"column_{n}", gettext("Another column has this meaning already."))
            seen.add(what or "")
        return cleaned

    def options(self) -> dict[str, Any]:
        given = self.cleaned_data
        mapping = {
            given[f"column_{n}"]: name
            for n, (name, _example) in enumerate(self.columns)
            if given.get(f"column_{n}")
        }
        mapping |= {what: given[what] for what in WORD_LABELS if given.get(what)}
        options = super().options()
        return {**options, "mapping": mapping} if given["format"] == "columns" else options
