"""The sentences behind the codes of failed answers: what went wrong, and what would help."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.core.outbound import MESSAGES

REASONS: dict[str, Any] = {
    **MESSAGES,
    "key_missing": _("The variable that holds the key is not set where answers are made."),
    "reply_shape": _("The reply is no chat completion: it holds no choice with a text."),
    "reply_blank": _("The reply is empty."),
    "reply_filtered": _("The endpoint's content filter withheld the reply."),
    "reply_unstorable": _("The reply is too long or holds characters that cannot be kept."),
    "given_up": _("Not asked: the contestant had failed so many times in a row."),
    "withdrawn": _("The persona's consent was withdrawn."),
    "taken": _("The same text is in another round already. A higher temperature may help."),
    "unexpected": _("An unexpected error; the log says more."),
    "no_model": _("There is no model at this place."),
    "weights_changed": _("The weights are not those that the contestant was made with."),
    "no_engine": _("The training packages are not installed where answers are made."),
    "engine_failed": _("The model could not be loaded."),
    "engine_died": _("The process of the model ended, perhaps for lack of memory."),
    "too_long": _("The question is longer than the model can read."),
}
STATUS: dict[int, Any] = {
    400: _("It does not accept the request: perhaps a sampling setting that it does not know."),
    401: _("It wants another key."),
    402: _("The account has no credit."),
    403: _("The key may not do this."),
    404: _("There is no such address, or no such model."),
    405: _("Nothing takes questions at this address."),
    413: _("The question is too long."),
    422: _("It does not accept the request: perhaps a sampling setting that it does not know."),
}


def reason(code: str, http_status: int | None = None) -> str:
    """What went wrong in the reader's language; with the server's status where there is one."""
    text = str(REASONS.get(code, REASONS["unexpected"]))
    if http_status is None:
        return text
    hint = str(STATUS.get(http_status, ""))
    told = gettext("The server answers with status %(status)s.") % {"status": http_status}
    return " ".join(filter(None, [text, told, hint]))
