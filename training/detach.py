"""Starts a command in a session of its own, says its process id, and ends: nobody's child.

    python detach.py LOG COMMAND …

The process that asked for it may be restarted or killed; what it started goes on, and its end
leaves no zombie, because nobody has to wait for it. Standard library only.
"""

from __future__ import annotations

import os
import subprocess
import sys


def main(log: str, command: list[str]) -> None:
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        close_fds=True,
    )
    print(started.pid, flush=True)
    os._exit(0)  # not waited for on purpose


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
