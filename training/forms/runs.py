"""The launch form, made from the engine's schema: one field per setting, one per input.

A field is named like the setting ("grpo.beta") or input ("inputs.train") that it fills, so that the
problems of the pre-flight check stand beside their fields.
"""

from __future__ import annotations

import types
import typing
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from training.engine.config.load import Problem, apply_changes
from training.engine.config.schema import RunConfig
from training.enums import Role
from training.forms import offers
from training.launching import InputSpec, Preflight, preflight
from training.models import TrainingRun
from training.roles import BRANCHES, ROLES
from training.selectors.run_pages.settings import Change, Flat, difference, flat, resolved, shown
from training.words import fields as words
from training.words.problems import problem_text

SMALL = {"inputmode": "decimal", "autocomplete": "off"}


@dataclass(frozen=True)
class FieldRow:
    """A field as the form shows it; `fix` is what the one-click button fills in."""

    field: forms.BoundField
    hint: str
    warning: str
    fix: str
    fix_text: str


@dataclass(frozen=True)
class Section:
    title: str
    rows: list[FieldRow]
    opened: bool = False


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = forms.Textarea(attrs={"rows": 3})

    def clean(self, value: Any) -> Any:
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]


class NumbersField(forms.CharField):
    """Numbers, separated by commas."""

    def clean(self, value: Any) -> Any:
        parts = [part.strip() for part in str(value or "").split(",") if part.strip()]
        try:
            return [float(part) for part in parts]
        except ValueError as error:
            message = gettext("Numbers, separated by commas: 0, 0.5, 1.")
            raise forms.ValidationError(message) from error


class PointsField(forms.CharField):
    """Points of a line, progress before value: “0: 0.7, 0.5: 0.5”."""

    def clean(self, value: Any) -> Any:
        points = []
        for part in str(value or "").split(","):
            at, _colon, number = part.partition(":")
            try:
                points.append([float(at), float(number)])
            except ValueError as error:
                message = gettext("Points as progress: value, for example 0: 0.7, 0.5: 0.5.")
                raise forms.ValidationError(message) from error
        return points


class RunForm(forms.Form):
    """Everything that a run is asked. `key` makes a double click one run."""

    name = forms.CharField(label=_("Name"), max_length=120)
    note = forms.CharField(
        label=_("Note"), max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    seed = forms.IntegerField(
        label=_("Seed"), initial=1, min_value=0, max_value=2**31 - 1,
        help_text=_("The same seed on the same machine gives the same curve."),
    )  # fmt: skip
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)

    def __init__(
        self,
        *args: Any,
        kind: str,
        preset: str,
        parent: TrainingRun | None = None,
        changes: Mapping[str, Any] | None = None,
        inputs: Mapping[str, InputSpec] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.preset, self.parent = kind, preset, parent
        self.changes = dict(changes or {})
        self.defaults = offers.defaults(kind, preset)
        self.hints = offers.hints(preset)
        self.offer = offers.offer(kind)
        self.checked: Preflight | None = None
        self.asked: dict[str, Any] = {}  # the configuration that was checked
        self.problems: dict[str, Problem] = {}
        self.warned: dict[str, Problem] = {}
        start = {**self.defaults, **(flat(resolved(parent)) if parent else {}), **self.changes}
        for name, hint in self._settings().items():
            self.fields[name] = _field(name, hint, start.get(name))
        chosen = inputs or {}
        for role in ROLES[kind]:
            self._add_input(str(role), chosen.get(role), start)

    def _settings(self) -> dict[str, Any]:
        """Settings that this kind reads and a person may set, with their types."""
        read = words.READ_BY[self.kind]
        return {
            name: hint
            for name, hint in schema().items()
            if name.partition(".")[0] in read
            and name in self.defaults
            and not name.startswith(words.BY_INPUTS)
        }

    def _add_input(self, role: str, spec: InputSpec | None, start: Flat) -> None:
        initial = offers.value_of(spec) if spec else ""
        if role in BRANCHES and start.get(f"reward.{role}") == offers.RULES:
            initial = offers.RULES
        choices = self.offer.choices[role]
        if initial not in dict(choices):  # older than what is offered
            choices = [*choices, (initial, spec.source or spec.dataset if spec else initial)]
            if spec:
                self.offer.specs[initial] = spec
        self.fields[f"inputs.{role}"] = forms.ChoiceField(
            label=capfirst(Role(role).label), choices=choices, required=False, initial=initial
        )

    # What was asked

    def value(self, name: str) -> Any:
        """As cleaned; of a form that was not sent, as it begins."""
        if self.is_bound:
            return self.cleaned_data.get(name)
        field = self.fields[name]
        try:
            return field.clean(self.get_initial_for_field(field, name))
        except forms.ValidationError:
            return None

    def config(self) -> dict[str, Any]:
        """What differs from the preset, nested; settings that the form does not show are kept."""
        kept = {**(flat(self.parent.config) if self.parent else {}), **self.changes}
        asked = {n: v for n, v in kept.items() if n not in self.fields and n in self.defaults}
        asked = {n: v for n, v in asked.items() if not n.startswith(words.BY_INPUTS)}
        for name in self._settings():
            value = self.value(name)
            if shown(value) != shown(self.defaults[name]):
                asked[name] = value
        for role in BRANCHES:
            if f"inputs.{role}" in self.fields and self.value(f"inputs.{role}") == offers.RULES:
                asked[f"reward.{role}"] = offers.RULES
        return apply_changes({}, asked)

    def inputs(self) -> dict[str, InputSpec]:
        chosen = {str(role): self.value(f"inputs.{role}") for role in ROLES[self.kind]}
        return {
            role: self.offer.specs[value]
            for role, value in chosen.items()
            if value in self.offer.specs
        }

    def check(self) -> Preflight:
        """The pre-flight check; its problems become errors beside their fields."""
        self.asked, seed = self.config(), self.value("seed")
        checked = preflight(self.kind, self.preset, self.asked, self.inputs(), seed)
        self.checked = checked
        for problem in checked.warnings:
            self.warned.setdefault(self.place(problem.field), problem)
        if self.is_bound:
            self.tell(checked.problems)
        return checked

    def tell(self, problems: list[Problem]) -> None:
        for problem in problems:
            name = self.place(problem.field)
            if name not in self.fields:
                label = words.label_of(problem.field)
                self.add_error(None, f"{label}: {problem_text(problem.message)}")
                continue
            self.problems.setdefault(name, problem)
            self.add_error(name, problem_text(problem.message))

    def place(self, name: str) -> str:
        """The field that a problem belongs to."""
        if name in self.fields:
            return name
        head, _dot, tail = name.partition(".")
        if head in ("data", "reward") and f"inputs.{tail}" in self.fields:
            return f"inputs.{tail}"
        bare = name.partition("[")[0]  # one value of a list
        return bare if bare in self.fields else name

    def differences(self) -> list[Change]:
        """Against the run that is cloned."""
        if self.parent is None:
            return []
        if self.checked is None:  # something cannot even be read
            return []
        after = {**self.defaults, **flat(self.asked)}
        return difference(flat(resolved(self.parent)), after, words.READ_BY[self.kind])

    # How it is shown

    def row(self, name: str) -> FieldRow:
        """A setting that is not seen at once tells its warnings above the form."""
        warned = self.warned.get(name) if self._near(name) else None
        problem = self.problems.get(name) or warned
        fix = as_text(problem.nearest) if problem and problem.nearest is not None else ""
        warning = problem_text(warned.message) if warned else ""
        return FieldRow(self[name], self.hints.get(name, ""), warning, f"{name}={fix}", fix)

    def first(self) -> list[FieldRow]:
        return [self.row(name) for name in ("name", "seed", "note")]

    def input_rows(self) -> list[FieldRow]:
        return [self.row(f"inputs.{role}") for role in ROLES[self.kind]]

    def important(self) -> list[FieldRow]:
        return [self.row(n) for n in words.IMPORTANT[self.kind] if n in self.fields]

    def others(self) -> list[Section]:
        """Every other setting by section; a section with a problem is open."""
        found = []
        for section in words.READ_BY[self.kind]:
            names = [
                n for n in self._settings()
                if n.startswith(f"{section}.") and n not in words.IMPORTANT[self.kind]
            ]  # fmt: skip
            if names:
                opened = any(n in self.errors for n in names)
                rows = [self.row(name) for name in names]
                found.append(Section(str(words.SECTIONS[section]), rows, opened))
        return found

    def loose_warnings(self) -> list[str]:
        """Warnings whose field is not seen at once."""
        return [
            f"{words.label_of(p.field)}: {problem_text(p.message)}"
            for name, p in self.warned.items()
            if not self._near(name)
        ]

    def _near(self, name: str) -> bool:
        """Whether a field stands open on the page."""
        return name.startswith("inputs.") or name in words.IMPORTANT[self.kind]


def schema(kind: Any = RunConfig, path: str = "") -> dict[str, Any]:
    """Every setting of the engine by its dotted name, with its type."""
    found: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(kind).items():
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            hint = next(a for a in typing.get_args(hint) if a is not types.NoneType)
        if is_dataclass(hint):
            found |= schema(hint, f"{path}{name}.")
        elif path:
            found[f"{path}{name}"] = hint
    return found


def _field(name: str, hint: Any, initial: Any) -> forms.Field:
    """The field for a setting of this type."""
    about: dict[str, Any] = {
        "label": words.label_of(name), "help_text": words.help_of(name),
        "initial": as_text(initial),
    }  # fmt: skip
    if name in words.CHOICES:
        values = dict.fromkeys((*words.CHOICES[name], as_text(initial)))
        choices = [(v, words.CHOICE_WORDS.get(v, v)) for v in values]
        return forms.ChoiceField(choices=choices, **about)
    if hint is int:
        return forms.IntegerField(**about)
    if hint is float:
        return forms.FloatField(widget=forms.TextInput(attrs=SMALL), **about)
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        kinds: dict[Any, type[forms.CharField]] = {str: LinesField, float: NumbersField}
        return kinds.get(inner, PointsField)(required=False, **about)
    return forms.CharField(required=False, max_length=2000, **about)


def as_text(value: Any) -> str:
    """A value as it stands in its field."""
    if isinstance(value, list | tuple):
        if all(isinstance(v, list | tuple) and len(v) == 2 for v in value):
            return ", ".join(f"{as_text(a)}: {as_text(b)}" for a, b in value)
        separator = "\n" if all(isinstance(v, str) for v in value) else ", "
        return separator.join(map(as_text, value))
    if isinstance(value, float):
        return f"{value:.12g}"
    return "" if value is None else str(value)
