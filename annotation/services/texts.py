"""Texts that people write beside their verdicts: comments on reports, answers, notes, reasons."""

from __future__ import annotations

from django.utils.translation import gettext as _

from webapp.core.errors import InvalidInput

TEXT_LIMIT = 2000
REASON_LIMIT = 300


def checked_text(
    text: str, *, field: str = "text", required: str = "", limit: int = TEXT_LIMIT
) -> str:
    """The text without white space around it. InvalidInput where it is too long, missing (and
    `required` says what is asked for), or holds what PostgreSQL cannot keep.
    """
    text = text.strip()
    if required and not text:
        raise InvalidInput(required, field=field, code="missing_text")
    if len(text) > limit or "\x00" in text:
        raise InvalidInput(
            _("At most %(most)s characters, none of them NUL.") % {"most": limit}, field=field
        )
    return text


def checked_reason(text: str) -> str:
    """The same for the reason of a move, which may be left out."""
    return checked_text(text, field="reason", limit=REASON_LIMIT)
