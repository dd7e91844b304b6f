"""What an export was asked for: formats, filters, policies. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

TRL, TRL_IMPLICIT, TRL_UNPAIRED = "trl_preference", "trl_implicit", "trl_unpaired"
OPENAI, PAIRS, PAIRS_CSV = "openai_preference", "palate_pairs", "palate_csv"
OWN = (PAIRS, PAIRS_CSV)  # items with all their labels, rather than one outcome on one axis
FILE_TYPES: dict[str, tuple[str, ...]] = {
    TRL: ("jsonl", "parquet", "dataset"),
    TRL_IMPLICIT: ("jsonl", "parquet", "dataset"),
    TRL_UNPAIRED: ("jsonl", "parquet", "dataset"),
    OPENAI: ("jsonl",),
    PAIRS: ("jsonl",),
    PAIRS_CSV: ("csv",),
}
STYLES = ("conversational", "standard")
AXES = ("quality", "personalization")
SOURCES = ("unanimous", "majority", "adjudicated", "unresolved")
TIES = ("drop", "both")  # own formats keep ties in any case
SYNTHETIC = ("no", "yes", "reviewed")
SPLITS = ("train", "validation", "test")
MISSED = 2  # percentage points between a split's wanted and found share that are worth saying


class OptionError(Exception):
    """One option that cannot be used. `code` is explained by the service."""

    def __init__(self, code: str, field: str) -> None:
        super().__init__(code)
        self.code, self.field = code, field


@dataclass(frozen=True)
class Options:
    """One request. Percentages are whole numbers.

    `minimum` is the least posterior of the outcome, `unresolved` that of the likeliest verdict of
    an unresolved item. What an adjudicator decided or what holds by construction needs neither.
    `ties`, `both_bad`: "both" writes two rows where the format has no pair (both good, both bad).
    `undecided` is about our own formats: items without an outcome are rows, too, as are those held
    back or dropped.
    """

    format: str = TRL
    file_type: str = "jsonl"
    style: str = "conversational"
    axis: str = "quality"
    sources: tuple[str, ...] = ("unanimous", "majority", "adjudicated")
    minimum: int = 0
    unresolved: int = 95
    ties: str = "drop"
    both_bad: str = "drop"
    synthetic: str = "no"
    external: bool = True
    undecided: bool = True
    persona_in_prompt: bool = True
    train: int = 100
    validation: int = 0
    test: int = 0
    seed: int = 0

    @property
    def own(self) -> bool:
        return self.format in OWN

    @property
    def shares(self) -> dict[str, int]:
        """The splits that were asked for, in percent."""
        every = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: share for name, share in every.items() if share or name == "train"}

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.shares)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "sources": list(self.sources)}


def parse(values: Mapping[str, Any]) -> Options:
    """Options from JSON or a form. Raises OptionError for the first that cannot be used."""
    known = {field.name for field in fields(Options)}
    for name in values:
        if name not in known:
            raise OptionError("unknown", name)
    given = {name: value for name, value in values.items() if value is not None}
    if "sources" in given:
        given["sources"] = tuple(given["sources"])
    if given.get("format") == PAIRS_CSV:
        given.setdefault("file_type", "csv")
    if given.get("format") in OWN:
        given.setdefault("synthetic", "yes")
    options = Options(**given)
    _check(options)
    return options


def _check(options: Options) -> None:
    _one_of(options.format, FILE_TYPES, "format")
    _one_of(options.file_type, FILE_TYPES[options.format], "file_type")
    _one_of(options.style, STYLES, "style")
    _one_of(options.axis, AXES, "axis")
    _one_of(options.synthetic, SYNTHETIC, "synthetic")
    for field in ("ties", "both_bad"):
        _one_of(getattr(options, field), TIES, field)
        if getattr(options, field) == "both" and options.format != TRL_UNPAIRED:
            raise OptionError("no_place_for_ties", field)
    if not options.sources or set(options.sources) - set(SOURCES):
        raise OptionError("choice", "sources")
    for field in ("external", "undecided", "persona_in_prompt"):
        if not isinstance(getattr(options, field), bool):
            raise OptionError("choice", field)
    for field in ("minimum", "unresolved", *SPLITS):
        _percentage(getattr(options, field), field)
    if options.train + options.validation + options.test != 100:
        raise OptionError("shares", "train")
    if isinstance(options.seed, bool) or not isinstance(options.seed, int):
        raise OptionError("number", "seed")
    if not 0 <= options.seed < 2**31:
        raise OptionError("number", "seed")


def _one_of(value: Any, allowed: Any, field: str) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise OptionError("choice", field)


def _percentage(value: Any, field: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:
        raise OptionError("percentage", field)
