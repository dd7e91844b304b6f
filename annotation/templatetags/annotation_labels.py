"""Words of annotation for templates: `{% load annotation_labels %}`."""

from __future__ import annotations

from typing import Any

from django import template

from annotation.enums import ItemFlag
from webapp.catalog.strata import stratum_label

register = template.Library()


@register.filter
def stratum(value: str) -> str:
    """A stratum in the reader's words: `{{ item.stratum|stratum }}`."""
    return stratum_label(value)


@register.filter
def flag(value: Any) -> Any:
    """Why an item is held, in words: `{{ name|flag }}`."""
    return ItemFlag(value).label if value in ItemFlag.values else value
