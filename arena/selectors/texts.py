"""The text of an entry as raters see it: masked where screening said so, and as it was sealed."""

from __future__ import annotations

import logging
from typing import Any

from django.utils.translation import gettext as _

from arena.blinding import text_sha256
from arena.leakage import mask_spans
from arena.models import Assignment, Entry, Slot
from webapp.catalog.models import PersonaVersion
from webapp.catalog.texts import prompt_hash
from webapp.core.errors import Refused

ERASED = "▇▇▇"
log = logging.getLogger("palate.sealing")


def shown_text(entry: Entry) -> str:
    """The masked text; a bar where the text was erased because consent was withdrawn."""
    body = getattr(entry.answer, "body", None)
    if body is None:
        return ERASED
    return mask_spans(body.text, entry.spans)


def shown_hashes(slot: Slot, left_is_x: bool) -> tuple[str, str]:
    """The sealed hashes of the two texts of a battle, left first: what a receipt binds."""
    x, y = slot.x.shown_sha256, slot.y.shown_sha256
    return (x, y) if left_is_x else (y, x)


def check_unaltered(row: Assignment) -> None:
    """Refuse to serve anything but what was sealed (V5). The log names the part, never a text."""
    altered = altered_parts(row.slot)
    for part in altered:
        place = {"round": row.round_id, "battle": row.battle.public_id}
        log.error("%s of a sealed battle was altered", part, extra=place)
    if altered:
        raise Refused(
            _("This battle is no longer what was sealed and is not shown. Tell who runs Palate."),
            code="altered",
        )


def altered_parts(slot: Slot) -> list[str]:
    """What of a battle no longer fits its sealed hash; erased texts have nothing that could."""
    context = slot.context
    version = context.persona_version
    fits = {
        "the text of an answer": _text_fits(slot.x) and _text_fits(slot.y),
        "the question": _question_hash(context.prompt.messages) == context.prompt.text_hash,
        "the persona summary": version is None or _summary_fits(version),
    }
    return [part for part, good in fits.items() if not good]


def _text_fits(entry: Entry) -> bool:
    erased = getattr(entry.answer, "body", None) is None
    return erased or _hash(shown_text(entry)) == entry.shown_sha256


def _summary_fits(version: PersonaVersion) -> bool:
    text = getattr(version, "text", None)
    return text is None or _hash(text.summary) == version.summary_sha256


def _hash(text: str) -> str:
    try:
        return text_sha256(text)
    except ValueError:  # a lone surrogate: nothing that could have been sealed
        return ""


def _question_hash(messages: Any) -> str:
    try:
        return prompt_hash(messages)
    except (KeyError, TypeError, ValueError):  # no longer a conversation
        return ""
