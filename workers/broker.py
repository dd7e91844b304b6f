"""The filesystem broker, with messages that appear whole.

kombu's own creates the file of a message before it writes into it. A worker that looks in between
reads nothing, takes that for broken JSON, and ends; and the message is gone.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from time import monotonic_ns
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.encoding import str_to_bytes
from kombu.utils.json import dumps

SCHEME = "palate-files"


class Channel(filesystem.Channel):
    def _put(self, queue: str, payload: dict[str, Any], **_more: Any) -> None:  # type: ignore[override]
        """Write beside, then rename: the name that workers look for stands for a whole message."""
        folder = Path(self.data_folder_out)
        # Workers take them in the order of their names: that of sending.
        name = f"{monotonic_ns():020}_{uuid.uuid4()}.{queue}.msg"
        beside = folder / f"{name}.new"
        try:
            beside.write_bytes(str_to_bytes(dumps(payload)))
            os.replace(beside, folder / name)
        except OSError as error:
            raise ChannelError(f"Cannot add file {name!r} to {folder}") from error


class Transport(filesystem.Transport):
    Channel = Channel


TRANSPORT_ALIASES[SCHEME] = f"{__name__}:{Transport.__name__}"
