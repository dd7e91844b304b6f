"""The settings of a project: which there are, and what they may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotation.enums import Axis
from annotation.gold import least_labels
from webapp.catalog.enums import STRATUM_FEATURES
from webapp.core.errors import InvalidInput

SETTINGS = (
    "name",
    "axes",
    "ask_strength",
    "allow_tie",
    "allow_both_bad",
    "tags",
    "base_overlap",
    "max_overlap",
    "gold_percent",
    "gold_floor",
    "gold_minimum",
    "repeat_percent",
    "onboarding_size",
    "lease_minutes",
    "stratum_features",
    "targets",
    "price_cents",
    "currency",
)
RANGES = {  # lowest and highest value of each number
    "gold_percent": (0, 50),
    "repeat_percent": (0, 50),
    "gold_floor": (0, 95),
    "gold_minimum": (1, 1000),
    "onboarding_size": (0, 200),
    "price_cents": (0, 1_000_000),
    "lease_minutes": (1, 240),
}
OVERLAP_LIMIT = 50
TAG_LENGTH, TAG_LIMIT = 64, 30


def check_settings(values: Mapping[str, Any]) -> None:
    """Raise InvalidInput naming the first setting that cannot be as it is."""
    unknown = sorted(set(values) - set(SETTINGS))
    if unknown:
        raise InvalidInput(
            _("There is no setting “%(name)s”.") % {"name": unknown[0]}, field=unknown[0]
        )
    if "name" in values and not 1 <= len(values["name"].strip()) <= 120:
        raise InvalidInput(_("Give the project a name of at most 120 characters."), field="name")
    axes = values.get("axes", Axis.values)
    if not axes or set(axes) - set(Axis.values) or len(set(axes)) != len(axes):
        raise InvalidInput(_("Choose one axis or both."), field="axes")
    _check_numbers(values)
    _check_lists(values)
    if "base_overlap" in values and "max_overlap" in values:
        _check_overlap(values["base_overlap"], values["max_overlap"])


def _check_numbers(values: Mapping[str, Any]) -> None:
    for name, (low, high) in RANGES.items():
        value = values.get(name)
        if value is not None and not low <= value <= high:
            raise InvalidInput(
                _("A number from %(low)s to %(high)s.") % {"low": low, "high": high}, field=name
            )
    least = least_labels(values.get("gold_floor", 0) / 100)
    if values.get("gold_minimum", least) < least:
        raise InvalidInput(
            _("At least %(least)s: with fewer, even somebody who is always right would be paused.")
            % {"least": least},
            field="gold_minimum",
        )
    if values.get("gold_percent", 0) + values.get("repeat_percent", 0) > 50:
        raise InvalidInput(
            _("Gold and repeated items together are at most half of the work."),
            field="gold_percent",
        )


def _check_lists(values: Mapping[str, Any]) -> None:
    strange = sorted(set(values.get("stratum_features", [])) - set(STRATUM_FEATURES))
    if strange:
        raise InvalidInput(
            _("“%(name)s” is not a feature of a persona.") % {"name": strange[0]},
            field="stratum_features",
        )
    tags = values.get("tags", [])
    if len(tags) > TAG_LIMIT or len(set(tags)) != len(tags):
        raise InvalidInput(
            _("At most %(most)s different reasons.") % {"most": TAG_LIMIT}, field="tags"
        )
    if any(not 1 <= len(tag.strip()) <= TAG_LENGTH for tag in tags):
        raise InvalidInput(
            _("A reason has from 1 to %(most)s characters.") % {"most": TAG_LENGTH}, field="tags"
        )
    if any(not isinstance(n, int) or n < 1 for n in values.get("targets", {}).values()):
        raise InvalidInput(_("A target is a whole number from 1."), field="targets")
    currency = values.get("currency", "EUR")
    if len(currency) != 3 or not currency.isascii() or not currency.isupper():
        raise InvalidInput(_("Three capital letters, like EUR."), field="currency")


def _check_overlap(base: int, most: int) -> None:
    if not 1 <= base <= most <= OVERLAP_LIMIT:
        raise InvalidInput(
            _("At least 1 label per item, and the maximum not below it (at most 50)."),
            field="max_overlap",
        )
