"""What a dataset is built from: a saved filter. Pure; the services explain the codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

SPLITS = ("train", "reward_model_gate", "gate", "edge", "arena")
AXES = ("quality", "personalization")
SOURCES = ("annotation", "arena", "import")
DECIDED = ("unanimous", "majority", "adjudicated", "synthetic")
KINDS: dict[str, tuple[str, ...]] = {  # the sources of each kind
    "instructions": ("import",),
    "tool_traces": ("import",),
    "preferences": ("annotation", "arena"),
    "counterfactuals": ("annotation",),
    "counterexamples": ("annotation", "arena", "import"),
}
PAIRS = ("preferences", "counterfactuals")
TRAIN_ONLY = ("counterfactuals",)  # what a program wrote measures nothing


class FilterError(Exception):
    """One setting that cannot be used."""

    def __init__(self, code: str, field: str, **params: object) -> None:
        super().__init__(code)
        self.code, self.field, self.params = code, field, params


@dataclass(frozen=True)
class Filter:
    """Percentages are whole numbers; an empty tuple takes everything.

    `minimum` is the least posterior of the verdict, `votes` the least number of votes for one side.
    `extras` lets late labels count in the posterior. `cut`: where everything hangs together, leave
    out rows between the splits instead of refusing. `simulated`: simulated votes and labels, too.
    """

    sources: tuple[str, ...] = ()
    axis: str = ""
    projects: tuple[int, ...] = ()
    decided: tuple[str, ...] = ("unanimous", "majority", "adjudicated")
    minimum: int = 0
    extras: bool = False
    rounds: tuple[int, ...] = ()
    votes: int = 1
    simulated: bool = False
    imports: tuple[int, ...] = ()
    stratum_features: tuple[str, ...] = ("expertise", "language")
    strata: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    train: int = 100
    reward_model_gate: int = 0
    gate: int = 0
    edge: int = 0
    arena: int = 0
    cut: bool = True
    seed: int = 1

    @property
    def shares(self) -> dict[str, int]:
        """The splits that are asked for, in percent."""
        return {split: getattr(self, split) for split in SPLITS if getattr(self, split)}

    def as_json(self) -> dict[str, Any]:
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in found.items()}


def parse(kind: str, values: Mapping[str, Any]) -> Filter:
    """A filter from JSON or a form. Raises FilterError for the first setting that does not fit."""
    known = {field.name: field for field in fields(Filter)}
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise FilterError("unknown", name)
        given[name] = _typed(name, value, getattr(Filter, name))
    if not given.get("sources"):
        given["sources"] = KINDS[kind]
    if kind == "counterfactuals":
        given.setdefault("axis", "personalization")
        given["decided"] = ("synthetic", *given.get("decided", Filter.decided))
    found = Filter(**given)
    _check(kind, found)
    return found


def _typed(name: str, value: Any, default: Any) -> Any:
    """The value in the type of the default; lists become sorted tuples without repetition."""
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple):
            raise FilterError("choice", name)
        kind = int if name in ("projects", "rounds", "imports") else str
        if any(not isinstance(entry, kind) or isinstance(entry, bool) for entry in value):
            raise FilterError("choice", name)
        return tuple(sorted(set(value)))
    if isinstance(value, bool) != isinstance(default, bool) or not isinstance(value, type(default)):
        raise FilterError("choice", name)
    return value


def _check(kind: str, found: Filter) -> None:
    for source in found.sources:
        if source not in KINDS[kind]:
            raise FilterError("source", "sources", source=source, allowed=", ".join(KINDS[kind]))
    if kind in PAIRS and found.axis not in AXES:
        raise FilterError("choice", "axis")
    if set(found.decided) - set(DECIDED) or not found.decided:
        raise FilterError("choice", "decided")
    for name in ("minimum", *SPLITS):
        if not 0 <= getattr(found, name) <= 100:
            raise FilterError("percentage", name)
    if sum(found.shares.values()) != 100:
        raise FilterError("shares", "train", sum=sum(found.shares.values()))
    if kind in TRAIN_ONLY and found.train != 100:
        raise FilterError("train_only", "train")
    if found.votes < 1:
        raise FilterError("choice", "votes")
    if not 0 <= found.seed < 2**31:
        raise FilterError("choice", "seed")
