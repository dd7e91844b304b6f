"""Words of rounds for templates: `{% load arena_labels %}`."""

from __future__ import annotations

from django import template

from webapp.catalog.strata import stratum_label

register = template.Library()


@register.filter
def stratum(value: str) -> str:
    """A stratum in the reader's words: `{{ row.stratum|stratum }}`."""
    return stratum_label(value)
