"""Forms on users and invitations."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from webapp.accounts.enums import Role


class InviteForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)
    note = forms.CharField(
        label=_("Note"),
        max_length=100,
        required=False,
        help_text=_("For yourself: whom is it for?"),
    )


class AcceptForm(forms.Form):
    username = forms.CharField(label=_("User name"), max_length=150)
    password = forms.CharField(
        label=_("Password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
        help_text=_("At least 8 characters, not only digits, not a common password."),
    )


class TokenForm(forms.Form):
    name = forms.CharField(label=_("What is it for?"), max_length=60)
