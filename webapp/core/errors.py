"""What can go wrong on purpose. Each error says what is wrong and what would be right."""

from __future__ import annotations

from typing import Any


class PalateError(Exception):
    """A refusal that a person may read. `code` is stable for programs, `message` is for people.

    `message` may be a lazy translation; it is turned into text when it is shown.
    """

    status = 400

    def __init__(self, message: Any, *, code: str = "refused", field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.field = field

    def __str__(self) -> str:
        return str(self.message)


class InvalidInput(PalateError):
    """Input that cannot be used as it is."""

    status = 422


class Refused(PalateError):
    """The state of the object does not allow it."""

    status = 409


class Forbidden(PalateError):
    """This person may not do it."""

    status = 403


class TooMany(PalateError):
    """Asked too often."""

    status = 429
