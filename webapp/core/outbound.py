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

import json
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpcore
import httpx
from django.utils import timezone

from webapp.core.outbound_addresses import check_url as check_url
from webapp.core.outbound_addresses import checked_addresses
from webapp.core.outbound_errors import MESSAGES as MESSAGES
from webapp.core.outbound_errors import OutboundError as OutboundError
from webapp.core.outbound_errors import Permanent as Permanent
from webapp.core.outbound_errors import Retryable as Retryable
from webapp.core.pinned import Pinned

AGENT = "Palate"
TIMEOUT = 10.0  # seconds
LIMIT = 1024 * 1024  # bytes
LONGEST_WAIT = 24 * 3600.0  # what a Retry-After may ask for, in seconds
RETRYABLE = (408, 425, 429)
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")


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
