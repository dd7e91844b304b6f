"""What was sent after a login had ended, or from a page older than it: kept in the next page.

The server saves nothing of it. The page that asks to sign in carries it, signed, and the page after
that offers to send it, with a fresh token against forgery. Files cannot travel so, and anything
beside a password is better typed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core import signing
from django.http import HttpRequest, UnreadablePostError
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

FIELD = "kept"
SALT = "palate.unsent"
# Of the packed text, which must fit into a form of DATA_UPLOAD_MAX_MEMORY_SIZE.
MAX_CHARS = 1_500_000
TOKEN = "csrfmiddlewaretoken"  # noqa: S105 - the name of a field
SECRETS = ("password", "secret")  # in the name of a field


@dataclass(frozen=True)
class Unsent:
    """A form: where it goes, its fields in order, the page it stood on, whether it had files."""

    path: str
    fields: tuple[tuple[str, str], ...]
    back: str
    had_files: bool


def unsent(request: HttpRequest) -> Unsent | None:
    """What this request sends, or None where it should not be kept: what needs no login, signing
    out, forms with a password, and what did not arrive whole."""
    if request.method != "POST":
        return None
    try:
        sent = request.POST.lists()
    except UnreadablePostError:
        return None
    if request.path == reverse("accounts:login"):
        return unpack(request.POST.get(FIELD, ""))
    if not _needs_login(request) or request.path == reverse("accounts:logout"):
        return None
    fields = tuple((name, value) for name, values in sent for value in values if name != TOKEN)
    if any(word in name.lower() for name, _value in fields for word in SECRETS):
        return None
    return Unsent(request.get_full_path(), fields, came_from(request), bool(request.FILES))


def _needs_login(request: HttpRequest) -> bool:
    match = request.resolver_match
    return bool(match and getattr(match.func, "login_required", True))


def came_from(request: HttpRequest) -> str:
    """The page of this site that the form stood on, else the start."""
    referer = request.headers.get("Referer", "")
    here = {request.get_host()}
    fine = url_has_allowed_host_and_scheme(referer, here, require_https=request.is_secure())
    return referer if fine and urlsplit(referer).path != reverse("accounts:login") else "/"


def pack(form: Unsent) -> str:
    """One signed line of text. Empty where it would be too long for a form."""
    parts = [form.path, form.fields, form.back, form.had_files]
    packed = signing.dumps(parts, salt=SALT, compress=True)
    return packed if len(packed) <= MAX_CHARS else ""


def unpack(packed: str) -> Unsent | None:
    """The form again; None for what this site did not sign.

    No age is asked: the form is offered to be sent, and what it asks for is checked as ever.
    """
    try:
        path, fields, back, had_files = signing.loads(packed, salt=SALT)
    except signing.BadSignature:
        return None
    return Unsent(path, tuple((name, value) for name, value in fields), back, had_files)
