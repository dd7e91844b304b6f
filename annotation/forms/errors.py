"""What a service refuses, shown where somebody can mend it."""

from __future__ import annotations

from django import forms

from webapp.core.errors import PalateError


def point_at(
    form: forms.Form, error: PalateError, *, else_at: str | None = None, **named: str
) -> None:
    """Show a refusal at its field, or at `else_at` (None: above the form) where it names none.

    `named`: fields that the form calls otherwise than the service.
    """
    field = named.get(error.field, error.field)
    form.add_error(field if field in form.fields else else_at, str(error))
