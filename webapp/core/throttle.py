"""How often one address without an account may fetch what is dear to make."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.throttling import SimpleRateThrottle

from webapp.core.errors import TooMany

DEFAULT_RATE = "30/min"


class DownloadThrottle(SimpleRateThrottle):
    """Counted by the address as NUM_PROXIES tells it: a header that anybody may write is not it."""

    scope = "downloads"

    def get_rate(self) -> str:
        rates = cast(dict[str, str], settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"])
        return rates.get(self.scope, DEFAULT_RATE)

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"downloads:{self.get_ident(request)}"


def check_downloads(request: HttpRequest) -> None:
    """Raise TooMany where an address without an account asks too often."""
    if request.user.is_authenticated:
        return
    if not DownloadThrottle().allow_request(request, None):  # type: ignore[arg-type]
        raise TooMany(
            _("Too many downloads from your address. Wait a minute and try again."),
            code="throttled",
        )
