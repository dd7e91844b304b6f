"""Which addresses may be called: those of the open internet, and what OUTBOUND_ALLOW names."""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
import time

import httpx
from django.conf import settings

from webapp.core.outbound_errors import Permanent, Retryable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
