"""Forms of webhooks."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.services.webhooks import CHOICES, URL_LENGTH


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=_("Address"),
        max_length=URL_LENGTH,
        help_text=_("Begins with https://. It gets a POST with JSON for each event."),
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        label=_("Tell it when"),
        choices=[(event.value, event.label) for event in CHOICES],
        widget=forms.CheckboxSelectMultiple,
    )


class PasswordForm(forms.Form):
    """The secret is shown to who gives the password of the account again."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "id_secret_%s")
        super().__init__(*args, **kwargs)
