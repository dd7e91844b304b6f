"""Calls to addresses that people typed in: guarded, limited, never following a redirect.

    post_json("https://example.org/hook", {"a": 1}, headers={...}, timeout=10, limit=65_536)

- http and https only, no name or password in the address, directly (no proxy).
- The host is resolved once, every address it has is checked, and the connection goes to a checked
  address: a name that resolves differently a moment later changes nothing. TLS and the Host header
  still use the name.
- Private, loopback, link-local, shared, multicast, reserved and unspecified addresses are refused,
  also inside IPv6 forms of IPv4, unless the host or its network stands in OUTBOUND_ALLOW.
- `timeout` seconds for everything together, `limit` bytes for the body of the answer.

Errors are `Permanent` (trying again changes nothing) or `Retryable`. None of them says a header, an
address or a body, so that they may be logged and shown. With `explain` the beginning of a refusal's
body is kept beside the message, for whoever sets an endpoint up.
"""

from __future__ import annotations

import ipaddress
import json
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpcore
import httpx
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.core.errors import PalateError
from webapp.core.pinned import Pinned

AGENT = "Palate"
TIMEOUT = 10.0  # seconds
LIMIT = 1024 * 1024  # bytes
LONGEST_WAIT = 24 * 3600.0  # what a Retry-After may ask for, in seconds
RETRYABLE = (408, 425, 429)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")

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


@dataclass(frozen=True)
class Response:
    """An answer with a status from 200 to 299. Names of headers are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises Permanent (bad_utf8, bad_json)."""
        try:
            return json.loads(self.body.decode("utf-8"))
        except UnicodeDecodeError:
            raise Permanent("bad_utf8", self.status) from None
        except (ValueError, RecursionError):
            raise Permanent("bad_json", self.status) from None


def post_json(
    url: str,
    payload: Any,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    limit: int = LIMIT,
    explain: int = 0,
) -> Response:
    """POST the payload as JSON. Raises Permanent or Retryable; redirects are errors."""
    body = json.dumps(payload, separators=(",", ":"), allow_nan=False).encode()
    return post_bytes(url, body, headers=headers, timeout=timeout, limit=limit, explain=explain)


def post_bytes(
    url: str,
    body: bytes,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    limit: int = LIMIT,
    explain: int = 0,
) -> Response:
    """POST these bytes of JSON. With `limit` 0 the body of the answer is left unread.

    `explain`: so many bytes of the body are kept in the error when the server refuses.
    """
    deadline = time.monotonic() + timeout
    target = check_url(url)
    addresses = checked_addresses(target, deadline)
    sent = {
        "Host": target.netloc.decode("ascii"),
        "User-Agent": AGENT,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "Connection": "close",
        **(headers or {}),
    }
    try:
        return _exchange(target, sent, body, Pinned(addresses, deadline), limit, explain)
    except httpcore.TimeoutException:
        raise Retryable("timeout") from None
    except httpcore.ConnectError as error:
        tls = isinstance(error.__context__, ssl.SSLError)
        raise Retryable("tls" if tls else "no_connection") from None
    except (httpcore.NetworkError, httpcore.ProtocolError):
        raise Retryable("broken_answer") from None


def _exchange(
    target: httpx.URL,
    headers: Mapping[str, str],
    body: bytes,
    backend: Pinned,
    limit: int,
    explain: int,
) -> Response:
    url = httpcore.URL(
        scheme=target.raw_scheme,
        host=target.raw_host,
        port=target.port,
        target=target.raw_path,
    )
    with httpcore.ConnectionPool(ssl_context=_tls(), network_backend=backend) as pool:
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), backend.left())
        with pool.stream(
            "POST", url, headers=_encoded(headers), content=body, extensions={"timeout": timeouts}
        ) as answer:
            found = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in answer.headers}
            try:
                check_status(answer.status, found)
            except OutboundError as error:
                error.body = _beginning(answer.iter_stream(), explain)
                raise
            text = _limited(answer.iter_stream(), limit) if limit else b""
            return Response(answer.status, found, text)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Checked here: what the library refuses it also writes to its log, and it may be a secret."""
    if not all(
        _HEADER_NAME.fullmatch(k) and _HEADER_VALUE.fullmatch(v) for k, v in headers.items()
    ):
        raise Permanent("bad_header")
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def _limited(chunks: Iterable[bytes], limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise Permanent("too_large")
        parts.append(chunk)
    return b"".join(parts)


def _beginning(chunks: Iterable[bytes], size: int) -> bytes:
    """The first bytes of a refusal; a body that breaks off is none the worse."""
    found = b""
    try:
        while len(found) < size and (chunk := next(iter(chunks), b"")):
            found += chunk
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
        pass
    return found[:size]


def check_status(status: int, headers: Mapping[str, str]) -> None:
    """Raise unless the status says that it went well."""
    if 200 <= status < 300:
        return
    if status in RETRYABLE or status >= 500:
        code = "server_error" if status >= 500 else "busy"
        raise Retryable(code, status, retry_after(headers.get("retry-after", "")))
    raise Permanent("redirect" if 300 <= status < 400 else "refused_by_server", status)


def retry_after(text: str, now: datetime | None = None) -> float | None:
    """Seconds to wait, from seconds or an HTTP date (RFC 9110, 10.2.3); at most a day."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    return min(max((at - (now or timezone.now())).total_seconds(), 0.0), LONGEST_WAIT)


@cache
def _tls() -> ssl.SSLContext:
    """Certificates are checked against the usual list, or SSL_CERT_FILE."""
    return httpx.create_ssl_context()


# --- which addresses may be called --------------------------------------------------------------


def check_url(url: str) -> httpx.URL:
    """The address taken apart, by the same rules that the call uses. Nothing is resolved.

    Raises Permanent for what can be told without asking: a scheme, credentials, a literal address.
    """
    try:
        target = httpx.URL(url)
        port = target.port
    except (httpx.InvalidURL, TypeError, ValueError):
        raise Permanent("bad_url") from None
    if target.userinfo or "@" in target.netloc.decode("latin-1"):
        raise Permanent("credentials")
    if target.scheme not in ("http", "https") or not target.host or port == 0:
        raise Permanent("bad_url")
    if (port or 1) > 65535 or "%" in target.raw_host.decode("latin-1"):
        raise Permanent("bad_url")
    literal = literal_address(target.raw_host.decode("ascii"))
    name = _name(target)
    local = name == "localhost" or name.endswith(".localhost")
    if (literal is not None and not _may_call(target, literal)) or (local and not _named(target)):
        raise Permanent("address_refused")
    return target


def literal_address(host: str) -> Address | None:
    """The address that the host spells out, in any form that a resolver takes (0x7f.1, 017700…)."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return None


def checked_addresses(target: httpx.URL, deadline: float) -> list[str]:
    """Resolve once. Raises Permanent where one of the addresses must not be called."""
    host = target.raw_host.decode("ascii")
    literal = literal_address(host)
    found = [str(literal)] if literal is not None else _resolve_in_time(host, deadline)
    for text in found:
        if not _may_call(target, ipaddress.ip_address(text)):
            raise Permanent("address_refused")
    return found


def _resolve_in_time(host: str, deadline: float) -> list[str]:
    """A resolver knows no time limit, so it works in a thread that is left behind if it is slow."""
    answers: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(resolve(host)), daemon=True).start()
    try:
        found = answers.get(timeout=max(deadline - time.monotonic(), 0.001))
    except queue.Empty:
        raise Retryable("timeout") from None
    if not found:
        raise Retryable("not_resolved")
    return found


def resolve(host: str) -> list[str]:
    """All addresses of a host name, in the resolver's order; none where it fails."""
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def is_public(address: Address) -> bool:
    """Whether it is an address of the open internet, as is every one that an IPv6 form wraps."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    if address.is_site_local:
        return False
    return all(is_public(inner) for inner in _wrapped(address))


def _wrapped(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that 6to4 and Teredo carry; mapped, compatible and NAT64 are reserved."""
    teredo = address.teredo or ()
    return [inner for inner in (address.sixtofour, *teredo) if inner is not None]


def _may_call(target: httpx.URL, address: Address) -> bool:
    return is_public(address) or _named(target) or _in_allowed_network(address)


def _named(target: httpx.URL) -> bool:
    return _name(target) in {entry.lower().rstrip(".") for entry in settings.OUTBOUND_ALLOW}


def _name(target: httpx.URL) -> str:
    return target.raw_host.decode("ascii").lower().rstrip(".")


def _in_allowed_network(address: Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    return any(
        one in network for network in _allowed_networks() for one in (address, mapped) if one
    )


def _allowed_networks() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    found = []
    for entry in settings.OUTBOUND_ALLOW:
        try:
            found.append(ipaddress.ip_network(entry, strict=False))
        except ValueError:
            continue  # a host name
    return found
