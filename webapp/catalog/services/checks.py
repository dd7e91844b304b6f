"""Checks of input that people type or programs send. Each refusal says what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from webapp.catalog.enums import FEATURE_VALUE_LENGTH, STRATUM_FEATURES
from webapp.catalog.formats import fields
from webapp.catalog.formats.palate import slug
from webapp.catalog.formats.rows import Limits, RowError
from webapp.catalog.refusals import explain
from webapp.catalog.texts import is_blank, unstorable
from webapp.core.errors import InvalidInput


def import_limits() -> Limits:
    return Limits(
        summary=settings.PERSONA_SUMMARY_LIMIT,
        unpacked=settings.UNPACKED_LIMIT,
        features=tuple(STRATUM_FEATURES),
        feature_value=FEATURE_VALUE_LENGTH,
    )


def invalid(bad: RowError) -> InvalidInput:
    reason, right = explain(bad.code, bad.params)
    return InvalidInput(f"{reason} {right}".strip(), field=bad.field, code=bad.code)


def check_text(value: str, field: str, *, limit: int = 0) -> str:
    """A storable text that is not blank, at most `limit` characters (code points)."""
    trouble = unstorable(value)
    if trouble:
        raise invalid(RowError(trouble[0], field, position=trouble[1]))
    if is_blank(value):
        raise invalid(RowError("empty", field))
    if limit and len(value) > limit:
        raise invalid(RowError("long", field, count=len(value), limit=limit))
    return value


def check_summary(summary: str) -> str:
    """The summary without outer spaces. Over-long ones are refused with their count."""
    summary = check_text(summary.strip(), "summary")
    if len(summary) > settings.PERSONA_SUMMARY_LIMIT:
        raise InvalidInput(
            _("The summary has %(count)s characters; at most %(limit)s are allowed.")
            % {"count": len(summary), "limit": settings.PERSONA_SUMMARY_LIMIT},
            field="summary",
            code="long",
        )
    return summary


def check_features(features: Mapping[str, Any]) -> dict[str, str]:
    """Allow-listed features with short values; empty values are left out."""
    found = {}
    for name, value in features.items():
        if name not in STRATUM_FEATURES:
            raise InvalidInput(
                _("“%(name)s” is not kept about a person. Allowed: %(allowed)s.")
                % {"name": str(name)[:60], "allowed": ", ".join(STRATUM_FEATURES)},
                field="features",
                code="unknown_feature",
            )
        if value in ("", None):
            continue
        try:
            found[name] = slug(value, name, FEATURE_VALUE_LENGTH)
        except RowError as bad:
            raise invalid(bad) from bad
    return found


def check_messages(messages: Sequence[Mapping[str, Any]] | str) -> list[dict[str, str]]:
    """A conversation whose last turn is the user's, as a list of {role, content}."""
    try:
        value = messages if isinstance(messages, str) else [dict(turn) for turn in messages]
        turns = fields.conversation(value)
    except RowError as bad:
        raise invalid(bad) from bad
    for role, content in turns:
        check_text(content, "prompt")
        check_text(role, "prompt")
    return [{"role": role, "content": content} for role, content in turns]
