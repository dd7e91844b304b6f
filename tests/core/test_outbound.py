"""Calls to addresses that people typed in: where they may go, how long, and what comes back."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from webapp.core import outbound, outbound_addresses
from webapp.core.outbound import Permanent, Retryable, post_json

LOCAL = "127.0.0.1"
Handler = Callable[[socket.socket], None]


class Server:
    """A raw server: every connection is read up to the end of the request, then handled."""

    def __init__(self, handler: Handler, *, address: str = LOCAL) -> None:
        self.handler = handler
        self.requests: list[bytes] = []
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, 0))
        self.socket.listen()
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while True:
            try:
                connection, _peer = self.socket.accept()
            except OSError:
                return
            with connection:
                try:
                    self.requests.append(read_request(connection))
                    self.handler(connection)
                except OSError:
                    continue

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(5)

    def url(self, path: str = "/hook", host: str = LOCAL) -> str:
        return f"http://{host}:{self.port}{path}"


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise OSError("closed")
    return data


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    wanted = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    while len(body) < wanted:
        body += received(connection)
    return head + b"\r\n\r\n" + body


def answer(status: str = "200 OK", body: bytes = b"{}", *headers: str) -> Handler:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return lambda connection: connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


Serve = Callable[..., Server]


@pytest.fixture
def serve(settings: Any) -> Iterator[Serve]:
    """Servers on the loopback address, which is allowed here."""
    settings.OUTBOUND_ALLOW = ["127.0.0.0/8"]
    servers: list[Server] = []

    def start(handler: Handler, **options: Any) -> Server:
        servers.append(Server(handler, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def names(monkeypatch: pytest.MonkeyPatch, table: dict[str, list[str]]) -> list[str]:
    """Resolve names by a table. Returns the list of names that were asked for."""
    asked: list[str] = []

    def resolve(host: str) -> list[str]:
        asked.append(host)
        return table.get(host, [])

    monkeypatch.setattr(outbound_addresses, "resolve", resolve)
    return asked


def failure(url: str, **options: Any) -> outbound.OutboundError:
    with pytest.raises(outbound.OutboundError) as caught:
        post_json(url, {"a": 1}, **options)
    return caught.value


# --- what comes back ----------------------------------------------------------------------------


def test_the_payload_arrives_as_json_and_the_answer_comes_back(serve: Serve) -> None:
    server = serve(answer("201 Created", b'{"ok": "\xe5\xa5\xbd"}', "X-One: two"))
    found = post_json(server.url("/a?b=c"), {"text": "你好\ud83d"}, headers={"X-Mine": "yes"})
    assert (found.status, found.json(), found.headers["x-one"]) == (201, {"ok": "好"}, "two")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert f"Host: {LOCAL}:{server.port}".encode() in head
    assert b"X-Mine: yes" in head
    assert json.loads(body) == {"text": "你好\ud83d"}


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 T", "308 P"])
def test_a_redirect_is_an_error_and_not_followed(serve: Serve, status: str) -> None:
    goal = serve(answer())
    server = serve(answer(status, b"", f"Location: {goal.url()}"))
    error = failure(server.url())
    assert (type(error), error.code, error.http_status) == (Permanent, "redirect", int(status[:3]))
    assert "redirect" in str(error)
    assert not goal.requests


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, Permanent, "refused_by_server"),
        (401, Permanent, "refused_by_server"),
        (404, Permanent, "refused_by_server"),
        (410, Permanent, "refused_by_server"),
        (408, Retryable, "busy"),
        (425, Retryable, "busy"),
        (429, Retryable, "busy"),
        (500, Retryable, "server_error"),
        (503, Retryable, "server_error"),
    ],
)
def test_what_may_be_tried_again_is_told_apart_by_type(
    serve: Serve, status: int, kind: type, code: str
) -> None:
    error = failure(serve(answer(f"{status} X")).url())
    assert (type(error), error.code, error.http_status) == (kind, code, status)


def test_retry_after_in_seconds_and_as_a_date(serve: Serve) -> None:
    error = failure(serve(answer("429 Slow", b"", "Retry-After: 17")).url())
    assert isinstance(error, Retryable)
    assert error.retry_after == 17
    now = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
    assert outbound.retry_after("Sun, 29 Nov 2026 12:01:30 GMT", now) == 90
    assert outbound.retry_after("Sun, 29 Nov 2026 11:00:00 GMT", now) == 0
    assert outbound.retry_after("9" * 40) == outbound.LONGEST_WAIT
    for odd in ("", "soon", "-5", "1.5", "٣", "Sun, 99 Nov 2026", "29 Nov 2026 12:01:30"):
        assert outbound.retry_after(odd, now) is None


def test_garbage_in_the_answer_is_named(serve: Serve) -> None:
    for body, code in [
        (b"\xff\xfe", "bad_utf8"),
        (b"<html>", "bad_json"),
        (b"[" * 9999, "bad_json"),
    ]:
        found = post_json(serve(answer(body=body)).url(), {})
        with pytest.raises(Permanent) as caught:
            found.json()
        assert caught.value.code == code
    for raw in (b"SSH-2.0-OpenSSH\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"):
        error = failure(serve(lambda c, raw=raw: c.sendall(raw)).url())
        assert (type(error), error.code) == (Retryable, "broken_answer")


def test_an_endless_body_ends_at_the_limit(serve: Serve) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    error = failure(serve(endless).url(), limit=300_000)
    assert (type(error), error.code) == (Permanent, "too_large")
    assert post_json(serve(endless).url(), {}, limit=0).body == b""


@pytest.mark.parametrize("step", ["silent", "head", "body"])
def test_a_slow_server_ends_at_the_total_limit(serve: Serve, step: str) -> None:
    def drip(connection: socket.socket) -> None:
        if step == "body":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
        for _second in range(100):
            time.sleep(0.1)
            if step != "silent":
                connection.sendall(b"H")

    def head(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for n in range(100):
            time.sleep(0.1)
            connection.sendall(f"X-{n}: a\r\n".encode())

    server = serve(head if step == "head" else drip)
    started = time.monotonic()
    error = failure(server.url(), timeout=0.5)
    assert (type(error), error.code) == (Retryable, "timeout")
    assert 0.4 < time.monotonic() - started < 8  # of the ten that it would take


def test_nobody_listening_and_a_name_that_does_not_exist(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(answer())
    server.close()
    names(monkeypatch, {})
    assert failure(server.url()).code == "no_connection"
    error = failure("https://nowhere.example/")
    assert (type(error), error.code) == (Retryable, "not_resolved")
    monkeypatch.setattr(Server, "close", lambda self: None)


def test_a_slow_resolver_counts_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(host: str) -> list[str]:
        time.sleep(10)
        return []

    monkeypatch.setattr(outbound_addresses, "resolve", slow)
    started = time.monotonic()
    assert failure("http://slow.example/", timeout=0.3).code == "timeout"
    assert time.monotonic() - started < 8


def test_no_secret_is_in_an_error_or_a_log(serve: Serve, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "sk-very-secret"
    shown, hidden = [], []
    for handler in (
        answer("401 No"),
        answer("500 X"),
        answer("302 F", b"", "Location: /"),
        answer(),
    ):
        for header in (f"Bearer {secret}", f"Bearer {secret}\r\nX: y", f"Bearer {secret}é"):
            try:
                post_json(serve(handler).url(), {}, headers={"Authorization": header})
            except outbound.OutboundError as error:
                shown += [repr(error), str(error), repr(error.__cause__), repr(vars(error))]
                hidden.append(error.__suppress_context__ or error.__context__ is None)
    assert len(shown) > 20
    assert all(hidden)
    assert secret not in "".join(shown)
    assert secret not in caplog.text


# --- where calls may go -------------------------------------------------------------------------

LITERALS = [
    "127.0.0.1", "127.1", "0177.1", "0x7f.1", "2130706433", "017700000001", "0", "0.0.0.0",
    "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0xa9fea9fe", "100.64.0.1",
    "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::ffff:8.8.8.8]",
    "[::127.0.0.1]",
    "[fe80::1]", "[fc00::1]", "[fd12::1]", "[fec0::1]", "[ff02::1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]", "[2002:a00:1::]", "[2001:0:7f00:1::]", "[2001:db8::1]", "127。0。0。1",
    "localhost", "LOCALHOST", "localhost.", "a.localhost",
]  # fmt: skip


@pytest.mark.parametrize("host", LITERALS)
def test_addresses_that_are_not_public_are_refused(
    host: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.OUTBOUND_ALLOW = []
    asked = names(monkeypatch, {})
    error = failure(f"http://{host}:9/")
    assert (type(error), error.code) == (Permanent, "address_refused")
    assert not asked


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["fe80::1%eth0"],
        ["::ffff:10.0.0.1"],
        ["fd00::7"],
        ["93.184.216.34", "10.0.0.1"],
    ],
)
def test_names_of_such_addresses_are_refused(
    found: list[str], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.OUTBOUND_ALLOW = []
    names(monkeypatch, {"hook.example": found, "xn--bcher-kva.example": found})
    for url in ("http://hook.example/", "https://hook.example:444/x", "http://bücher.example/"):
        error = failure(url)
        assert (type(error), error.code) == (Permanent, "address_refused")


def test_public_addresses_are_public() -> None:
    import ipaddress

    for text in ("93.184.216.34", "8.8.8.8", "2606:4700::1111", "2002:5db8:d822::1"):
        assert outbound_addresses.is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://example.org/", "bad_url"),
        ("file:///etc/passwd", "bad_url"),
        ("gopher://example.org/", "bad_url"),
        ("//example.org/", "bad_url"),
        ("example.org", "bad_url"),
        ("http:///x", "bad_url"),
        ("http://", "bad_url"),
        ("", "bad_url"),
        ("http://a:0/", "bad_url"),
        ("http://a:99999/", "bad_url"),
        ("http://[fe80::1%25eth0]/", "bad_url"),
        ("http://exa mple/", "bad_url"),
        ("http://①②⑦.⓪.⓪.①/", "bad_url"),
        ("http://a\r\nb/", "bad_url"),
        ("http://0177.0.0.1/", "bad_url"),
        ("http://user:word@example.org/", "credentials"),
        ("http://user@example.org/", "credentials"),
        ("http://example.org\\@127.0.0.1/", "credentials"),
    ],
)
def test_what_is_not_an_address_is_refused(
    url: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = names(monkeypatch, {})
    error = failure(url)
    assert (type(error), error.code) == (Permanent, code)
    assert not asked


def test_a_name_is_resolved_once_and_the_call_goes_to_the_checked_address(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between check and connection the name points elsewhere: nobody asks a second time."""
    server = serve(answer())
    answers = iter([[LOCAL], ["10.0.0.1"], ["10.0.0.1"]])
    asked = []

    def rebinding(host: str) -> list[str]:
        asked.append(host)
        return next(answers)

    monkeypatch.setattr(outbound_addresses, "resolve", rebinding)
    assert post_json(server.url(host="hook.example"), {}).status == 200
    assert asked == ["hook.example"]
    assert f"Host: hook.example:{server.port}".encode() in server.requests[0]


def test_the_next_address_is_tried_where_one_does_not_answer(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(answer())
    names(monkeypatch, {"hook.example": ["127.0.0.9", LOCAL]})
    assert post_json(server.url(host="hook.example"), {}).status == 200


def test_hosts_and_networks_can_be_allowed(
    serve: Serve, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(answer())
    names(
        monkeypatch,
        {"hook.internal": [LOCAL], "hook.internal.": [LOCAL], "other.internal": [LOCAL]},
    )
    settings.OUTBOUND_ALLOW = ["Hook.internal."]
    assert post_json(server.url(host="hook.internal"), {}).status == 200
    assert post_json(server.url(host="HOOK.internal."), {}).status == 200
    assert failure(server.url(host="other.internal")).code == "address_refused"
    assert failure(server.url()).code == "address_refused"
    settings.OUTBOUND_ALLOW = [LOCAL]
    assert post_json(server.url(host="other.internal"), {}).status == 200
    assert failure("http://127.0.0.2/").code == "address_refused"


def test_an_environment_with_a_proxy_changes_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = serve(answer()), serve(answer())
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://{LOCAL}:{proxy.port}")
    assert post_json(server.url(), {}).status == 200
    assert not proxy.requests


def test_tls_uses_the_name_and_checks_the_certificate(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name goes out in the TLS greeting although the connection goes to an address."""
    settings.OUTBOUND_ALLOW = [LOCAL]
    names(monkeypatch, {"hook.example": [LOCAL]})
    greeting: list[bytes] = []
    listener = socket.create_server((LOCAL, 0))

    def greet() -> None:
        connection, _peer = listener.accept()
        with connection:
            greeting.append(connection.recv(4096))
            connection.sendall(b"\x15\x03\x01\x00\x02\x02\x28")  # alert: handshake failure

    thread = threading.Thread(target=greet, daemon=True)
    thread.start()
    error = failure(f"https://hook.example:{listener.getsockname()[1]}/", timeout=30)
    thread.join(5)
    listener.close()
    assert (type(error), error.code) == (Retryable, "tls")
    assert b"hook.example" in greeting[0]
    assert outbound._tls().verify_mode == ssl.CERT_REQUIRED
    assert outbound._tls().check_hostname
