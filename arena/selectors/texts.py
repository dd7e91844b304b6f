"""The text of an entry as raters see it: masked where screening said so."""

from __future__ import annotations

from arena.leakage import mask_spans
from arena.models import Entry

ERASED = "▇▇▇"


def shown_text(entry: Entry) -> str:
    """The masked text; a bar where the text was erased because consent was withdrawn."""
    body = getattr(entry.answer, "body", None)
    if body is None:
        return ERASED
    return mask_spans(body.text, entry.spans)
