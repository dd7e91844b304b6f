"""Answers from a checkpoint: the engine's process loads the model, the site never does.

`python -m training.engine answer PLACE` reads questions and tells answers, a JSON object a line.
Questions of several threads go out as they come, so that the engine answers them in batches. The
process gets no database, no broker and no keys.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any

from django.conf import settings

from webapp.catalog.answering.endpoint import options_for
from webapp.catalog.answering.protocol import Final, Made, Request, TryAgain
from webapp.catalog.models import Contestant
from webapp.catalog.texts import is_blank, unstorable

LANE = "checkpoints"  # one model at a time: memory is the limit
AT_ONCE = 8
TIMEOUT = 900.0  # seconds until an answer, loading included
CLOSING_S = 10.0
SAID = 300
HIDDEN = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL")
FINISH = {"stop": "stop", "length": "length"}


class CheckpointSource:
    """One contestant's model in a process of its own, started when it is first asked."""

    in_turn = True
    lane = LANE

    def __init__(self, contestant: Contestant, *, timeout: float | None = None) -> None:
        kept = contestant.endpoint
        self.place, self.weights = str(kept["place"]), str(kept.get("weights", ""))
        self.width = int(kept.get("at_once", AT_ONCE))
        self.timeout = timeout or TIMEOUT
        self.sampling = dict(contestant.sampling)
        self.engine: _Engine | None = None
        self.lock = threading.Lock()

    def answer(self, request: Request) -> Made:
        began = time.monotonic()
        engine = self._running()
        asked = {
            "messages": list(request.messages),
            "sampling": options_for(self.sampling, request.draw),
        }
        try:
            told = engine.ask(asked).result(self.timeout)
        except NoAnswer:
            raise TryAgain("timeout", tries=2) from None
        if "error" in told:
            raise Final(str(told["error"]))
        return _made(told, round(1000 * (time.monotonic() - began)))

    def _running(self) -> _Engine:
        with self.lock:
            if self.engine is None or self.engine.ended:
                self.engine = _Engine(self.place, self.weights, self.width)
            return self.engine

    def close(self) -> None:
        with self.lock:
            if self.engine is not None:
                self.engine.close()
            self.engine = None


def _made(told: dict[str, Any], milliseconds: int) -> Made:
    text = str(told.get("text", ""))
    if is_blank(text):
        raise Final("reply_blank")
    if unstorable(text):
        raise Final("reply_unstorable")
    return Made(
        text,
        FINISH.get(str(told.get("finish_reason")), ""),
        told.get("prompt_tokens"),
        told.get("completion_tokens"),
        milliseconds,
    )


class _Engine:
    """The process, and who waits for which line of it."""

    def __init__(self, place: str, weights: str, width: int) -> None:
        command = [sys.executable, "-m", "training.engine", "answer", place]
        command += ["--batch", str(width), *(["--weights", weights] if weights else [])]
        self.errors = TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        self.process = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=environment(os.environ.items()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
        )
        self.waiting: dict[int, Future[dict[str, Any]]] = {}
        self.lock = threading.Lock()
        self.number, self.ended = 0, False
        self.fatal: Final | TryAgain = TryAgain("engine_died", tries=3)
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def ask(self, asked: dict[str, Any]) -> Future[dict[str, Any]]:
        found: Future[dict[str, Any]] = Future()
        with self.lock:
            if self.ended:
                raise self.fatal
            self.number += 1
            self.waiting[self.number] = found
            line = json.dumps({"id": self.number, **asked})
            assert self.process.stdin is not None
            with suppress(OSError):  # it ended: whoever listens tells everybody
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()
        return found

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self.process.stdout:
                self._hear(json.loads(line))
        self.process.wait()
        with self.lock:
            self.ended = True
            self._let_go()
            if isinstance(self.fatal, TryAgain):
                self.fatal.said = self._last_words()
            for found in self.waiting.values():
                found.set_exception(self.fatal)
            self.waiting.clear()
            self.errors.close()

    def _let_go(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was written and never read
                    pipe.close()

    def _hear(self, told: dict[str, Any]) -> None:
        if "fatal" in told:
            said = str(told.get("message", ""))[:SAID]
            self.fatal = Final(str(told["fatal"]), blame=True, said=said)
        with self.lock:
            found = self.waiting.pop(told["id"], None) if "id" in told else None
        if found is not None:
            found.set_result(told)

    def _last_words(self) -> str:
        """The last line that the process wrote about its end, such as a missing package."""
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - 4096))
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:SAID] if lines else ""

    def close(self) -> None:
        """End it; what is in work is let go."""
        self.process.kill()
        self.listener.join(CLOSING_S)


def environment(variables: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What the engine's process may know: neither keys nor where the database is."""
    known = {
        name: value
        for name, value in variables
        if name not in HIDDEN and not name.startswith("PALATE_KEY_")
    }
    return {**known, "PALATE_MODELS": str(settings.PALATE_MODELS)}
