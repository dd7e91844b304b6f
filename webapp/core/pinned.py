"""A connection to checked addresses only, with one deadline over everything."""

from __future__ import annotations

import ssl
import time
from typing import Any

import httpcore

CHUNK = 16 * 1024


class Pinned(httpcore.NetworkBackend):
    """Connects to the checked addresses only, and holds everything to one deadline."""

    def __init__(self, addresses: list[str], deadline: float) -> None:
        self.addresses, self.deadline = addresses, deadline

    def left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        """The first address that answers; the name is not resolved again."""
        last: Exception = httpcore.ConnectError()
        for n, address in enumerate(self.addresses):
            share = self.left() / (len(self.addresses) - n)
            try:
                stream = httpcore.SyncBackend().connect_tcp(
                    address, port, timeout=share, socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
            else:
                return Timed(stream, self)
        raise last


class Timed(httpcore.NetworkStream):
    """A stream whose every step ends at the deadline, however slowly the other side drips."""

    def __init__(self, stream: httpcore.NetworkStream, backend: Pinned) -> None:
        self.stream, self.backend = stream, backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.stream.read(max_bytes, timeout=self.backend.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), CHUNK):
            self.stream.write(buffer[start : start + CHUNK], timeout=self.backend.left())

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self.stream.start_tls(ssl_context, server_hostname, timeout=self.backend.left())
        return Timed(stream, self.backend)

    def get_extra_info(self, info: str) -> Any:
        return self.stream.get_extra_info(info)
