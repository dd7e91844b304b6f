"""The filesystem broker: a message is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection
from kombu.exceptions import ChannelError
from kombu.utils.json import dumps

from workers import broker
from workers.app import app


def connection(folder: Path) -> Connection:
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder),
               "control_folder": str(folder / "control"), "store_processed": False}  # fmt: skip
    return Connection(f"{broker.SCHEME}://localhost", transport_options=options)


def test_messages_come_in_the_order_of_sending(tmp_path: Path) -> None:
    with connection(tmp_path) as found, found.SimpleQueue("order") as queue:
        for number in range(3):
            queue.put({"n": number, "说": "你好"})
        got = [queue.get(timeout=60) for _ in range(3)]
        assert [message.payload["n"] for message in got] == [0, 1, 2]
        for message in got:
            message.ack()
    assert not list(tmp_path.glob("*.msg*"))


def test_nobody_sees_half_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks while it is written finds none, not an empty one."""
    seen: list[list[str]] = []
    write = Path.write_bytes

    def watched(self: Path, data: bytes) -> int:
        self.touch()
        seen.append([path.name for path in tmp_path.glob("*.msg")])
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", watched)
    with connection(tmp_path) as found, found.SimpleQueue("half") as queue:
        queue.put({"n": 1})
    assert seen == [[]]
    assert len(list(tmp_path.glob("*.half.msg"))) == 1


def test_what_cannot_be_written_is_an_error_and_leaves_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: Any) -> None:
        raise OSError("No space left on device")

    with connection(tmp_path) as found:
        channel: Any = found.channel()
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(ChannelError, match="Cannot add"):
            channel._put("default", dumps({}))
    assert not list(tmp_path.glob("*.msg"))


def test_the_site_uses_it_where_no_redis_is_set(settings: Any) -> None:
    if settings.REDIS_URL:
        pytest.skip("Redis is set")
    assert isinstance(app.connection_for_write().transport, broker.Transport)
