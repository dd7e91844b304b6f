"""Words of annotation for templates: `{% load annotation_labels %}`."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.translation import gettext_lazy as _

from annotation.enums import ItemFlag, ItemState
from webapp.catalog.strata import stratum_label

register = template.Library()
SHORT = {ItemState.HELD: _("held back"), ItemState.PARKED: _("waiting")}


@register.filter
def stratum(value: str) -> str:
    """A stratum in the reader's words: `{{ item.stratum|stratum }}`."""
    return stratum_label(value)


@register.filter
def flag(value: Any) -> Any:
    """Why an item is held, in words: `{{ name|flag }}`."""
    return ItemFlag(value).label if value in ItemFlag.values else value


@register.filter
def short_state(value: Any) -> Any:
    """The state of an item in few words, for badges: `{{ item.state|short_state }}`."""
    if value not in ItemState.values:
        return value
    return SHORT.get(ItemState(value), ItemState(value).label)
