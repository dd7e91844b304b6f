"""Run a command and start it again when it dies; end it, with all its children, when told to.

    python tools/keep.py NAME COMMAND …

honcho ends everything as soon as one process ends. Under this wrapper a web server or worker that
was killed comes back instead. The command gets a process group of its own, so that nothing of it
survives: neither when it dies half, nor when this wrapper or its parent goes away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from types import FrameType

POLL = 0.2
PATIENCE = 2.5  # honcho kills after 5 s; a task that is cut short is taken up again from its rows
PAUSES = (0.2, 1.0, 3.0)  # between restarts; the last one repeats
STEADY = 30.0  # ran for so long: the next death is a new story


class Wanted:
    """Whether the command is to run: nobody asked for the end, and the parent is there.

    A signal only leaves a note. Did it raise, one that came while the command was being started
    would leave a process that nobody knows.
    """

    def __init__(self) -> None:
        self.parent, self.asked = os.getppid(), False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True

    def __bool__(self) -> bool:
        return not self.asked and os.getppid() == self.parent


def main(name: str, command: list[str]) -> int:
    """Keep `command` running until a signal comes or the parent is gone."""
    wanted, deaths = Wanted(), 0
    while wanted:
        started = time.monotonic()
        child = subprocess.Popen(command, start_new_session=True)
        while wanted and child.poll() is None:
            time.sleep(POLL)
        end_group(child)
        deaths = 1 if time.monotonic() - started > STEADY else deaths + 1
        pause = time.monotonic() + PAUSES[min(deaths, len(PAUSES)) - 1]
        if wanted:
            print(f"{name} ended ({child.returncode}); starting it again", flush=True)
        while wanted and time.monotonic() < pause:
            time.sleep(POLL / 4)
    return 0


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Ask the command to end; then make it, with all that it started."""
    deadline = time.monotonic() + PATIENCE
    if child.poll() is None:
        child.terminate()  # the leader alone: a worker lets its children finish
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal_group(child, signal.SIGKILL)
    child.wait()


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
