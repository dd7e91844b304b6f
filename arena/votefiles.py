"""Battle files from here and elsewhere, read row by row into votes.

Four formats, all UTF-8. JSON files may be one array or one object per line; memory holds the
columns of the votes, never the file.

palate    our own. JSON lines, or CSV with a header where the file ends in `.csv`. Fields
          `contestant_left`, `contestant_right`, then one verdict per axis (`quality`,
          `personalization`, any other axis by its name) or a single `outcome`; optional `rater`
          and `context`. Verdicts: left, right, tie, both_bad; an empty one means that the rater
          said nothing on that axis, and is left out.
fastchat  `model_a`, `model_b`, `winner` (model_a, model_b, tie, tie (bothbad)); optional `judge`
          (the rater) and `question_id` (the context).
llmfao    CSV with `left`, `right`, `winner` (left, right, tie); optional `worker` (the rater) and
          `prompt` (the context).
pandalm   `cmp_key` ("first_second"), `annotator1` … `annotatorN` (0 tie, 1 first, 2 second):
          one vote per annotator; the context is the instruction with its input.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from arena.ratings import Outcome, VoteTable

CHUNK = 1 << 16
LONGEST_RECORD = 1 << 24
AXES = ("quality", "personalization")

Record = Mapping[str, Any]


class VoteFormat(StrEnum):
    """Who wrote the file."""

    PALATE = "palate"
    FASTCHAT = "fastchat"
    LLMFAO = "llmfao"
    PANDALM = "pandalm"


@dataclass(frozen=True)
class RowError:
    """One refused record: where it is, which field, what is wrong and what would be right."""

    file: str
    line: int
    field: str
    reason: str
    expected: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}, field {self.field}"
        return f"{where}: {self.reason}; expected {self.expected}"


class VoteFileError(ValueError):
    """A file that cannot be read as votes; `errors` names the rows."""

    def __init__(self, errors: Iterable[RowError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


@dataclass(frozen=True)
class RawVote:
    """A vote as the file tells it; `rater` and `context` are None where it does not say."""

    line: int
    left: str
    right: str
    outcome: Outcome
    rater: str | None
    context: str | None


@dataclass(frozen=True, eq=False)
class LoadedVotes:
    """The votes of a file and the rows that were refused."""

    votes: VoteTable
    errors: tuple[RowError, ...]


class _RefusedError(Exception):
    def __init__(self, field: str, reason: str, expected: str) -> None:
        super().__init__(field, reason, expected)
        self.field, self.reason, self.expected = field, reason, expected


def load_votes(path: Path, form: VoteFormat, *, axis: str | None = None) -> LoadedVotes:
    """All votes of a file. Refused rows come back in `errors`; a file that is not of its format
    at all (not UTF-8, not JSON, no header) raises VoteFileError. OSError passes through."""
    votes: list[RawVote] = []
    errors: list[RowError] = []
    for row in read_votes(path, form, axis=axis):
        if isinstance(row, RowError):
            errors.append(row)
        else:
            votes.append(row)
    kept, late = _all_or_none(votes, path)
    return LoadedVotes(_to_table(kept), (*errors, *late))


def read_votes(
    path: Path, form: VoteFormat, *, axis: str | None = None
) -> Iterator[RawVote | RowError]:
    """The votes of a file one by one, with a RowError in the place of each refused record."""
    parse = _parser(form, axis)
    for line, record in _records(path, form):
        if isinstance(record, RowError):
            yield record
            continue
        try:
            yield from parse(line, record)
        except _RefusedError as error:
            yield RowError(path.name, line, error.field, error.reason, error.expected)


# Records: (line, mapping), or a RowError where a line is not a record.


def _records(path: Path, form: VoteFormat) -> Iterator[tuple[int, Record | RowError]]:
    as_csv = form is VoteFormat.LLMFAO or (
        form is VoteFormat.PALATE and path.suffix.lower() == ".csv"
    )
    with path.open(encoding="utf-8-sig", newline="" if as_csv else None) as stream:
        try:
            yield from _csv_records(stream, path) if as_csv else _json_records(stream, path)
        except UnicodeDecodeError as error:
            raise VoteFileError(
                [RowError(path.name, 0, "(file)", f"not UTF-8: {error.reason}", "a UTF-8 file")]
            ) from None


def _csv_records(stream: TextIO, path: Path) -> Iterator[tuple[int, Record | RowError]]:
    reader = csv.DictReader(stream, restkey="(beyond the header)", restval=None)
    try:
        if not reader.fieldnames:
            return
        for row in reader:
            if "(beyond the header)" in row or None in row.values():
                width = len(reader.fieldnames)
                yield (
                    reader.line_num,
                    RowError(
                        path.name, reader.line_num, "(row)", "wrong number of columns", f"{width}"
                    ),
                )
            else:
                yield reader.line_num, row
    except csv.Error as error:
        raise VoteFileError(
            [RowError(path.name, reader.line_num, "(row)", str(error), "a CSV row")]
        ) from None


def _json_records(stream: TextIO, path: Path) -> Iterator[tuple[int, Record | RowError]]:
    first = _first_character(stream)
    values = _array_values(stream, path) if first == "[" else _line_values(stream, path)
    for line, value in values:
        if isinstance(value, dict | RowError):
            yield line, value
        else:
            said = f"found {type(value).__name__}"
            yield line, RowError(path.name, line, "(record)", said, "a JSON object")


def _first_character(stream: TextIO) -> str:
    first = ""
    while (character := stream.read(1)) and not (first := character.strip()):
        pass
    stream.seek(0)
    return first


def _line_values(stream: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    for line, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        try:
            yield line, json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            yield line, RowError(path.name, line, "(record)", f"not JSON: {error}", "a JSON object")


def _array_values(stream: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    """The elements of a JSON array with the line on which each begins, in flat memory."""
    array = _ArrayReader(stream, path)
    array.expect("[")
    if array.peek() != "]":
        yield array.value()
        while array.peek() != "]":
            array.expect(",")
            yield array.value()
    array.expect("]")
    if array.peek():
        raise array.error("there is more behind the array")


class _ArrayReader:
    """A window on a JSON array: what was read and not yet used, and the line on which it begins."""

    def __init__(self, stream: TextIO, path: Path) -> None:
        self.stream, self.path = stream, path
        self.buffer, self.line = "", 1
        self.decoder = json.JSONDecoder()

    def peek(self) -> str:
        """The next character that is not white space, empty at the end of the file."""
        while True:
            rest = self.buffer.lstrip()
            self._use(len(self.buffer) - len(rest))
            if rest or not self._read():
                return rest[:1]

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise self.error(f"there is no {mark!r} where one belongs")
        self._use(1)

    def value(self) -> tuple[int, Any]:
        """The next value and its line; more is read until it is whole."""
        self.peek()
        while True:
            try:
                value, end = self.decoder.raw_decode(self.buffer)
            except (json.JSONDecodeError, RecursionError) as error:
                if len(self.buffer) > LONGEST_RECORD or not self._read():
                    raise self.error(str(error)) from None
                continue
            if end == len(self.buffer) and self._read():
                continue  # a number may go on
            line = self.line
            self._use(end)
            return line, value

    def error(self, reason: str) -> VoteFileError:
        said = f"not JSON: {reason}"
        return VoteFileError(
            [RowError(self.path.name, self.line, "(record)", said, "a JSON array")]
        )

    def _read(self) -> bool:
        more = self.stream.read(max(CHUNK, len(self.buffer)))
        self.buffer += more
        return bool(more)

    def _use(self, length: int) -> None:
        self.line += self.buffer.count("\n", 0, length)
        self.buffer = self.buffer[length:]


# Parsers: one record to its votes, or _RefusedError.


def _parser(form: VoteFormat, axis: str | None) -> Callable[[int, Record], Iterable[RawVote]]:
    if form is VoteFormat.PALATE:
        return lambda line, record: _parse_palate(line, record, axis)
    return {
        VoteFormat.FASTCHAT: _parse_fastchat,
        VoteFormat.LLMFAO: _parse_llmfao,
        VoteFormat.PANDALM: _parse_pandalm,
    }[form]


WORDS = {"left": Outcome.LEFT, "right": Outcome.RIGHT, "tie": Outcome.TIE}
PALATE_WORDS = {**WORDS, "both_bad": Outcome.BOTH_BAD}
FASTCHAT_WORDS = {
    "model_a": Outcome.LEFT,
    "model_b": Outcome.RIGHT,
    "tie": Outcome.TIE,
    "tie (bothbad)": Outcome.BOTH_BAD,
}
PANDALM_WORDS = {0: Outcome.TIE, 1: Outcome.LEFT, 2: Outcome.RIGHT}


def _parse_palate(line: int, record: Record, axis: str | None) -> Iterator[RawVote]:
    field = axis or next((f for f in ("outcome", *AXES) if f in record), "outcome")
    left, right = _pair(record, "contestant_left", "contestant_right")
    if field in record and record[field] in (None, ""):
        return
    outcome = _outcome(record, field, PALATE_WORDS)
    yield RawVote(line, left, right, outcome, _label(record, "rater"), _label(record, "context"))


def _parse_fastchat(line: int, record: Record) -> Iterator[RawVote]:
    left, right = _pair(record, "model_a", "model_b")
    outcome = _outcome(record, "winner", FASTCHAT_WORDS)
    rater, context = _label(record, "judge"), _label(record, "question_id")
    yield RawVote(line, left, right, outcome, rater, context)


def _parse_llmfao(line: int, record: Record) -> Iterator[RawVote]:
    left, right = _pair(record, "left", "right")
    outcome = _outcome(record, "winner", WORDS)
    rater, context = _label(record, "worker"), _label(record, "prompt")
    yield RawVote(line, left, right, outcome, rater, context)


def _parse_pandalm(line: int, record: Record) -> Iterator[RawVote]:
    names = _text(record, "cmp_key").split("_")
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        said = f"{record['cmp_key']!r} does not name two different models"
        raise _RefusedError("cmp_key", said, '"first_second" with one underscore')
    annotators = [field for field in record if re.fullmatch(r"annotator\d+", field)]
    if not annotators:
        raise _RefusedError("annotator1", "missing", "0 (tie), 1 or 2")
    context = f"{record.get('instruction', '')}\n{record.get('input', '')}"
    for field in annotators:
        verdict = record[field]
        if isinstance(verdict, bool) or verdict not in PANDALM_WORDS:
            raise _RefusedError(field, f"{verdict!r}", "0 (tie), 1 or 2")
        yield RawVote(line, names[0], names[1], PANDALM_WORDS[verdict], field, context)


def _pair(record: Record, left: str, right: str) -> tuple[str, str]:
    first, second = _text(record, left), _text(record, right)
    if first == second:
        raise _RefusedError(right, f"{second!r} meets itself", f"another contestant than in {left}")
    return first, second


def _text(record: Record, field: str) -> str:
    if field not in record:
        raise _RefusedError(field, "missing", "a name")
    value = record[field]
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _RefusedError(field, f"{value!r}", "a name that is not empty")
    return value


def _outcome(record: Record, field: str, words: Mapping[str, Outcome]) -> Outcome:
    expected = "one of " + ", ".join(words)
    if field not in record:
        raise _RefusedError(field, "missing", expected)
    value = record[field]
    if not isinstance(value, str) or value not in words:
        raise _RefusedError(field, f"{value!r}", expected)
    return words[value]


def _label(record: Record, field: str) -> str | None:
    value = record.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _RefusedError(field, f"{value!r}", "text or a whole number")
    return str(value)


# The table.


def _all_or_none(votes: list[RawVote], path: Path) -> tuple[list[RawVote], list[RowError]]:
    """Raters and contexts are named by all votes or by none; otherwise the nameless are refused."""
    errors: list[RowError] = []
    for field in ("rater", "context"):
        nameless = [vote for vote in votes if getattr(vote, field) is None]
        if nameless and len(nameless) < len(votes):
            said = f"a {field} in every row, or in none"
            errors += [RowError(path.name, v.line, field, "missing", said) for v in nameless]
            votes = [vote for vote in votes if getattr(vote, field) is not None]
    return votes, errors


def _to_table(votes: list[RawVote]) -> VoteTable:
    raters = [vote.rater for vote in votes if vote.rater is not None]
    contexts = [vote.context for vote in votes if vote.context is not None]
    return VoteTable.from_columns(
        [vote.left for vote in votes],
        [vote.right for vote in votes],
        [int(vote.outcome) for vote in votes],
        rater=raters if raters else None,
        context=contexts if contexts else None,
    )
