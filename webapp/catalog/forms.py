"""Forms of the catalog. They translate; the rules stand in the services."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.accounts.models import User
from webapp.catalog.enums import FEATURE_VALUE_LENGTH, STRATUM_FEATURES
from webapp.catalog.formats import FORMATS


class PersonaForm(forms.Form):
    pseudonym = forms.CharField(
        label=_("Pseudonym"), max_length=64, help_text=_("Not the person's name.")
    )
    summary = forms.CharField(label=_("Summary"), widget=forms.Textarea(attrs={"rows": 3}))
    owner = forms.ModelChoiceField(
        label=_("Owner"),
        queryset=User.objects.none(),
        required=False,
        help_text=_("The person behind it, if they vote too: such votes are marked."),
    )
    consent_scope = forms.CharField(
        label=_("Consent given for"),
        max_length=100,
        required=False,
        help_text=_("What the person agreed to. Leave it empty if there is no person behind it."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        owner = self.fields["owner"]
        assert isinstance(owner, forms.ModelChoiceField)
        owner.queryset = User.objects.filter(is_active=True).order_by("username")
        self.fields["summary"].help_text = summary_help()
        for name, label in STRATUM_FEATURES.items():
            self.fields[f"feature_{name}"] = forms.CharField(
                label=label, max_length=FEATURE_VALUE_LENGTH, required=False
            )

    def features(self) -> dict[str, str]:
        return {name: self.cleaned_data[f"feature_{name}"] for name in STRATUM_FEATURES}


def summary_help() -> str:
    return gettext("What raters see of the person: at most %(limit)s characters.") % {
        "limit": settings.PERSONA_SUMMARY_LIMIT
    }


class VersionForm(forms.Form):
    summary = forms.CharField(label=_("New summary"), widget=forms.Textarea(attrs={"rows": 3}))
    reason = forms.CharField(label=_("Why it changed"), max_length=200, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["summary"].help_text = summary_help()


class ConsentForm(forms.Form):
    scope = forms.CharField(label=_("Consent given for"), max_length=100)


class PromptFilterForm(forms.Form):
    text = forms.CharField(label=_("Contains"), max_length=100, required=False)
    category = forms.ChoiceField(label=_("Category"), required=False)
    language = forms.ChoiceField(label=_("Language"), required=False)

    def __init__(
        self, *args: Any, categories: list[str], languages: list[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for name, values in (("category", categories), ("language", languages)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", gettext("all")), *((value, value) for value in values)]


class PromptForm(forms.Form):
    text = forms.CharField(label=_("Question"), widget=forms.Textarea(attrs={"rows": 6}))
    category = forms.CharField(label=_("Category"), max_length=64, required=False)
    language = forms.CharField(
        label=_("Language"), max_length=16, required=False, help_text=_("Such as “en” or “zh”.")
    )


class UploadForm(forms.Form):
    """`key` makes a double click one upload."""

    file = forms.FileField(label=_("File"), max_length=1000)
    format = forms.ChoiceField(label=_("Format"), required=False)
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["format"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", gettext("as the file looks")), *((name, name) for name in FORMATS)]
        self.fields["file"].help_text = gettext("At most %(size)s, UTF-8.") % {
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
