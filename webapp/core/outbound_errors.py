"""Why a call to an address did not succeed. No message says a header, an address or a body."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from webapp.core.errors import PalateError

MESSAGES: dict[str, Any] = {
    "bad_url": _("This is not an address that can be called: it begins with https:// or http://."),
    "credentials": _("The address must not hold a name or password."),
    "address_refused": _(
        "The host is on a private, local or reserved network. Who runs this site can allow it."
    ),
    "redirect": _("The server answers with a redirect, which is not followed."),
    "bad_header": _("A header holds characters that cannot be sent."),
    "too_large": _("The answer is too large."),
    "bad_utf8": _("The answer is not UTF-8."),
    "bad_json": _("The answer is not JSON."),
    "refused_by_server": _("The server refused the request."),
    "not_resolved": _("The host name cannot be resolved."),
    "timeout": _("The server did not answer completely in time."),
    "no_connection": _("No connection to the server."),
    "tls": _("No safe connection: the certificate or the protocol does not fit."),
    "broken_answer": _("The connection broke, or the answer was not HTTP."),
    "busy": _("The server asks to try again later."),
    "server_error": _("The server reports an error of its own."),
}


class OutboundError(PalateError):
    """A call that did not succeed. `http_status` is the server's, if it answered at all."""

    status = 502
    body = b""  # only with `explain`

    def __init__(self, code: str, http_status: int | None = None) -> None:
        super().__init__(MESSAGES[code], code=code)
        self.http_status = http_status


class Permanent(OutboundError):
    """The same call would fail again."""


class Retryable(OutboundError):
    """Worth trying again; `retry_after` seconds from now, if the server says so."""

    def __init__(
        self, code: str, http_status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(code, http_status)
        self.retry_after = retry_after
