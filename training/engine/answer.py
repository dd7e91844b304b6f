"""Answers from a model, line by line: `python -m training.engine answer PLACE`.

PLACE is the folder of a model or of a run, or `package:NAME` for weights that a Python package
carries. Standard input holds one JSON object a line: `id`, `messages`, and perhaps `sampling`
(temperature, top_p, top_k, max_tokens, repetition_penalty, seed). Standard output tells first
`{"ready": ENGINE}` or `{"fatal": CODE, "message": …}`, then for each question, in any order,
`{"id", "text", "finish_reason", "prompt_tokens", "completion_tokens"}` or `{"id", "error": CODE}`.
Questions that wait together are answered as one batch. The end of the input ends the process.

vLLM is used where it is installed and a GPU is there, else transformers. Torch is imported only
after the place has been found.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from training.engine.weights import NoModel, model_folder, weights_digest

PACKAGE = "package:"
BATCH = 8
GATHER_S = 0.02  # how long a batch waits for company
Asked = Mapping[str, Any]
Told = dict[str, Any]


class Writer(Protocol):
    """A loaded model. `write` answers questions that share their sampling settings."""

    @property
    def name(self) -> str: ...

    def write(self, asked: Sequence[Asked], sampling: Mapping[str, Any]) -> list[Told]: ...


def run(place: str, *, batch: int = BATCH, weights: str = "") -> int:
    """Load and answer until the input ends. `weights` refuses any other weights."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries print where they like
    try:
        writer = loaded(place, weights)
    except NoModel as error:
        return _fatal(out, "no_model", error)
    except WeightsChanged as error:
        return _fatal(out, "weights_changed", error)
    except ImportError as error:
        return _fatal(out, "no_engine", error)
    except Exception as error:  # whatever a library thinks of the folder
        return _fatal(out, "engine_failed", error)
    tell(out, {"ready": writer.name})
    serve(writer, sys.stdin, out, batch)
    return 0


class WeightsChanged(Exception):
    """The weights at the place are not those that were asked for."""


def loaded(place: str, weights: str) -> Writer:
    if place.startswith(PACKAGE):
        from training.engine.jobs.answers import from_package

        return from_package(place.removeprefix(PACKAGE))
    folder = model_folder(Path(place))
    if weights and weights_digest(folder) != weights:
        raise WeightsChanged(f"other weights than {weights[:12]}… in {folder}")
    from training.engine.jobs.answers import from_folder

    return from_folder(folder)


def serve(writer: Writer, source: Iterable[str], out: TextIO, batch: int) -> None:
    """Answer what comes in, what waits together in one go."""
    waiting: queue.SimpleQueue[Told | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(source, waiting), daemon=True).start()
    left: list[Told] = []
    ended = False
    while not ended or left:
        if not ended:
            ended = _gather(waiting, left, batch)
        now = [asked for asked in left if _how(asked) == _how(left[0])][:batch]
        left = [asked for asked in left if asked not in now]
        if now:
            for told in _written(writer, now):
                tell(out, told)


def _read(source: Iterable[str], waiting: queue.SimpleQueue[Told | None]) -> None:
    for line in source:
        if line.strip():
            waiting.put(json.loads(line))
    waiting.put(None)


def _gather(waiting: queue.SimpleQueue[Told | None], left: list[Told], batch: int) -> bool:
    """Take what is there; wait only when there is nothing to do. True when the input ended."""
    try:
        while len(left) < batch:
            asked = waiting.get(timeout=GATHER_S if left else None)
            if asked is None:
                return True
            left.append(asked)
    except queue.Empty:
        pass
    return False


def _how(asked: Asked) -> str:
    return json.dumps(asked.get("sampling", {}), sort_keys=True)


def _written(writer: Writer, asked: Sequence[Asked]) -> list[Told]:
    """A question that cannot be answered tells so; it does not take the others with it."""
    sampling = asked[0].get("sampling", {})
    try:
        return writer.write(asked, sampling)
    except Exception as error:
        print(f"{type(error).__name__} in a batch of {len(asked)}", file=sys.stderr, flush=True)
        if len(asked) == 1:
            return [{"id": asked[0]["id"], "error": "engine_failed"}]
        return [told for one in asked for told in _written(writer, [one])]


def tell(out: TextIO, line: Mapping[str, Any]) -> None:
    out.write(json.dumps(line, ensure_ascii=True) + "\n")
    out.flush()


def _fatal(out: TextIO, code: str, error: Exception) -> int:
    tell(out, {"fatal": code, "message": str(error)[:500]})
    return 2
