"""Strata: personas that agree in chosen features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.utils.translation import gettext as _

from webapp.catalog.enums import STRATUM_FEATURES


def stratum_of(features: Mapping[str, str], names: Iterable[str]) -> str:
    """The stratum of a persona: its chosen features as "expertise=novice, language=zh"."""
    return ", ".join(f"{name}={features.get(name, '?')}" for name in sorted(names))


def stratum_label(stratum: str) -> str:
    """A stratum like "expertise=expert, language=en" with the names of its features."""
    features: list[list[str]] = []
    for part in stratum.split(", "):
        name, equals, value = part.partition("=")
        if equals and name in STRATUM_FEATURES:
            features.append(
                [str(STRATUM_FEATURES[name]), _("not known") if value == "?" else value]
            )
        elif features:
            features[-1][1] += f", {part}"  # a comma within a value
        else:
            return stratum or _("all personas")
    said = [_("%(feature)s: %(value)s") % {"feature": f, "value": v} for f, v in features]
    return ", ".join(said)
