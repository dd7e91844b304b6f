"""What was sent after a login had ended, or from a page older than it: kept in the next page.

The server saves nothing of it. The page that asks to sign in carries it, signed, and the page after
that offers to send it, with a fresh token against forgery. Files cannot travel so, and anything
beside a password is better typed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.core import signing
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

FIELD = "kept"
SALT = "palate.unsent"
MAX_AGE_S = 24 * 3600
MAX_CHARS = (
    1_500_000  # of the packed text, which must fit into a form of DATA_UPLOAD_MAX_MEMORY_SIZE
)
TOKEN = "csrfmiddlewaretoken"  # noqa: S105 - the name of a field


@dataclass(frozen=True)
class Unsent:
    """A form: where it goes, its fields in order, the page it stood on, whether it had files."""

    path: str
    fields: tuple[tuple[str, str], ...]
    back: str
    had_files: bool


def unsent(request: HttpRequest) -> Unsent | None:
    """What this request sends, or None where it should not be kept (passwords, signing out)."""
    if request.method != "POST" or request.path == reverse("accounts:logout"):
        return None
    if request.path == reverse("accounts:login"):
        return unpack(request.POST.get(FIELD, ""))
    fields = tuple(
        (name, value) for name, values in request.POST.lists() for value in values if name != TOKEN
    )
    if any("password" in name for name, _value in fields):
        return None
    return Unsent(request.get_full_path(), fields, came_from(request), bool(request.FILES))


def came_from(request: HttpRequest) -> str:
    """The page of this site that the form stood on, else the start."""
    referer = request.headers.get("Referer", "")
    here = {request.get_host()}
    fine = url_has_allowed_host_and_scheme(referer, here, require_https=request.is_secure())
    return referer if fine else "/"


def pack(form: Unsent) -> str:
    """One signed line of text. Empty where it would be too long for a form."""
    parts = [form.path, form.fields, form.back, form.had_files]
    packed = signing.dumps(parts, salt=SALT, compress=True)
    return packed if len(packed) <= MAX_CHARS else ""


def unpack(packed: str) -> Unsent | None:
    """The form again; None for what this site did not sign, or signed more than a day ago."""
    try:
        path, fields, back, had_files = signing.loads(packed, salt=SALT, max_age=MAX_AGE_S)
    except signing.BadSignature:
        return None
    return Unsent(path, _pairs(fields), back, had_files)


def _pairs(fields: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in fields)
