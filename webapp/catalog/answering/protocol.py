"""What a source of answers is, whatever stands behind it.

A source is asked one context at a time, from several threads at once; it touches no database.
Errors tell by their type whether asking again makes sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Messages = Sequence[dict[str, str]]


@dataclass(frozen=True)
class Request:
    """One context as the contestant is asked it. `draw` counts further answers to the same."""

    messages: Messages
    draw: int = 0


@dataclass(frozen=True)
class Made:
    """An answer. Tokens are None where the source tells none; finish_reason as in FinishReason."""

    text: str
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    milliseconds: int = 0


class AnswerError(Exception):
    """No answer. `code` names the reason (`reasons.py`), `http_status` is the server's, if any.

    `blame`: the source as a whole is to blame, not this one context. `said` is what a server or
    process said about it: shown to whoever tries the source out, kept nowhere.
    """

    def __init__(
        self, code: str, *, http_status: int | None = None, blame: bool = False, said: str = ""
    ) -> None:
        super().__init__(code)
        self.code, self.http_status, self.blame, self.said = code, http_status, blame, said


class Final(AnswerError):
    """The same question would fail again, or the reply was no answer: a recorded failure."""


class TryAgain(AnswerError):
    """Worth asking again, at most `tries` times in all; `wait` seconds from now, if it was said."""

    def __init__(
        self,
        code: str,
        *,
        wait: float | None = None,
        tries: int = 6,
        http_status: int | None = None,
        blame: bool = True,
        said: str = "",
    ) -> None:
        super().__init__(code, http_status=http_status, blame=blame, said=said)
        self.wait, self.tries = wait, tries


class AnswerSource(Protocol):
    """`lane` names what shares one limit, of `width` questions at once. `in_turn`: contestants of
    one lane are asked one after the other, because each has to be loaded.
    """

    @property
    def lane(self) -> str: ...

    @property
    def width(self) -> int: ...

    @property
    def in_turn(self) -> bool: ...

    def answer(self, request: Request) -> Made:
        """Raises Final or TryAgain."""

    def close(self) -> None: ...
