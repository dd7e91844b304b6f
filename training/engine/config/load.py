"""From JSON or YAML to a `RunConfig`: presets, differences on top, all mistakes at once."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Union, get_args, get_origin

import yaml

from training.engine.config.schema import RunConfig


@dataclass(frozen=True)
class Problem:
    """What is wrong with one field; `nearest` is a valid value where one can be named."""

    field: str
    message: str
    nearest: Any = None

    def __str__(self) -> str:
        hint = "" if self.nearest is None else f" Nearest: {self.nearest}."
        return f"{self.field}: {self.message}{hint}"


class Refused(Exception):
    """A configuration that cannot run, with every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def preset_names() -> list[str]:
    folder = resources.files("training.engine.config") / "presets"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".yaml"))


def read_preset(name: str) -> dict[str, Any]:
    """The preset as written; `about` and `hints` are for people and not part of a run."""
    if name not in preset_names():
        close = difflib.get_close_matches(name, preset_names(), 1, 0.5)
        message = f"there is no preset “{name}”"
        raise Refused([Problem("preset", message, close[0] if close else None)])
    file = resources.files("training.engine.config") / "presets" / f"{name}.yaml"
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def load(values: Mapping[str, Any]) -> RunConfig:
    """A run from what `config.json` says, on top of its preset. Raises `Refused`."""
    preset = values.get("preset") or ""
    base: dict[str, Any] = read_preset(preset) if preset else {}
    base = {key: value for key, value in base.items() if key not in ("about", "hints")}
    problems: list[Problem] = []
    config = build(RunConfig, merge(base, values), "", problems)
    if problems:
        raise Refused(problems)
    return typing.cast(RunConfig, config)


def merge(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`more` over `base`; only mappings are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in more.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def apply_changes(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Set dotted keys, as an alert proposes them: {"grpo.beta": 0.06}."""
    changed = dict(values)
    for dotted, value in changes.items():
        nested: Any = value
        for key in reversed(dotted.split(".")):
            nested = {key: nested}
        changed = merge(changed, nested)
    return changed


def as_dict(config: RunConfig) -> dict[str, Any]:
    """The resolved configuration: loading it gives the same run, whatever presets become."""
    return {**dataclasses.asdict(config), "preset": ""}


def build(kind: Any, values: Any, path: str, problems: list[Problem]) -> Any:
    """Fill a dataclass; every unknown key and wrong type becomes a problem."""
    if not isinstance(values, Mapping):
        problems.append(Problem(path or "config", "is not a mapping"))
        return None
    hints = typing.get_type_hints(kind)
    filled = {}
    for key, value in values.items():
        name = f"{path}.{key}" if path else str(key)
        if key not in hints:
            close = difflib.get_close_matches(str(key), list(hints), 1)
            problems.append(Problem(name, "is not a known setting", close[0] if close else None))
        else:
            filled[key] = convert(hints[key], value, name, problems)
    needed = [
        f.name
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in needed if name not in values]
    problems.extend(Problem(f"{path}.{n}" if path else n, "is missing") for n in missing)
    return None if missing else kind(**filled)


def convert(hint: Any, value: Any, name: str, problems: list[Problem]) -> Any:
    """The value as the annotation wants it: whole numbers may stand for others, never back."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return convert(
            next(a for a in get_args(hint) if a is not types.NoneType), value, name, problems
        )
    if dataclasses.is_dataclass(hint):
        return build(hint, value, name, problems)
    if origin is tuple and isinstance(value, list | tuple):
        inner = get_args(hint)
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
        if len(kinds) == len(value):
            pairs = zip(kinds, value, strict=True)
            return tuple(convert(k, v, f"{name}[{i}]", problems) for i, (k, v) in enumerate(pairs))
    elif origin is dict and isinstance(value, Mapping):
        return dict(value)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif hint in (int, str) and type(value) is hint:
        return value
    wanted = {float: "a number", int: "a whole number", str: "a text"}.get(hint, "a list")
    problems.append(Problem(name, f"must be {wanted}, not {value!r}"))
    return None
