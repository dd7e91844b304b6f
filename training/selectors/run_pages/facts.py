"""What came of a run: the gate of a reward model, evaluations, phrases, failure, lineage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from training.enums import Role, RunKind, RunState, Split
from training.models import Checkpoint, RunEvent, RunInput, TrainingRun
from training.selectors.run_pages.curves import Curves
from training.selectors.run_pages.settings import Change, changes, flat, resolved, shown
from training.words.fields import READ_BY, SECTIONS, label_of
from training.words.metrics import metric_name, scored_name
from training.words.runs import EVENTS, check_of, defect_of, reason_of
from webapp.core.charts_curves import number, share_bars

LOG_LINES = 40
EVENTS_SHOWN = 30
EVALUATED = (
    "eval/reward/reference", "eval/parts/quality", "eval/parts/personalization",
    "eval/parts/redundancy",
)  # fmt: skip


@dataclass(frozen=True)
class GateRow:
    name: str
    said: str
    value: str
    limit: str
    passed: bool


@dataclass(frozen=True)
class GateCard:
    """Every check of the reward-model gate, and the probes as a picture."""

    passed: bool
    rows: list[GateRow]
    probes: SafeString | None


@dataclass(frozen=True)
class Evaluations:
    """Columns are (step, share of the run in percent or None); a row is a metric over them."""

    columns: list[tuple[int, int | None]]
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True)
class Measured:
    """An evaluation: whether the model is a floor to build on; name, value and limit of rows."""

    passed: bool
    rows: list[tuple[str, str, str]]


@dataclass(frozen=True)
class PhraseRow:
    text: str
    early: str
    late: str
    lift: str


@dataclass(frozen=True)
class Failure:
    reason: str
    message: str
    changes: list[Change]
    lines: str


@dataclass(frozen=True)
class InputRow:
    """`name` of the dataset or run that is linked by `dataset` or `source`."""

    role: str
    name: str
    dataset: int | None
    source: int | None
    split: str
    sha256: str


@dataclass(frozen=True)
class Story:
    """What events of a run mean for its page."""

    gate: GateCard | None = None
    phrases: list[PhraseRow] = field(default_factory=list)
    lines: list[tuple[Any, str, str]] = field(default_factory=list)


def story(run: TrainingRun) -> Story:
    """From the last events, in one statement: the newest gate and phrases, and the list itself."""
    newest = RunEvent.objects.filter(run=run).exclude(kind="alert").order_by("-offset")
    events = list(newest[:EVENTS_SHOWN])
    gate = next((e for e in events if e.kind == "gate"), None)
    phrases = next((e for e in events if e.kind == "phrases"), None)
    return Story(
        gate_card(gate.facts) if gate else None,
        [phrase_row(found) for found in phrases.facts.get("found", ())] if phrases else [],
        [(e.at, str(EVENTS.get(e.kind, e.kind)), _facts(e)) for e in reversed(events)],
    )


def _facts(event: RunEvent) -> str:
    """The plain facts of an event: tables have a place of their own."""
    skipped = ("kind", "at", "pid", "run_kind")
    return " · ".join(
        f"{name} {shown(value)}"
        for name, value in event.facts.items()
        if name not in skipped and isinstance(value, str | int | float) and value != ""
    )


def gate_card(facts: dict[str, Any]) -> GateCard:
    rows = []
    for check in facts.get("checks", ()):
        title, said = check_of(check["name"])
        sign = "≥" if check.get("at_least") else "≤"
        wanted = f"{sign} {number(check.get('limit'))}"
        value = number(check.get("value"))
        rows.append(GateRow(title, said, value, wanted, bool(check.get("passed"))))
    probes = facts.get("probes") or {}
    limits = [c["limit"] for c in facts.get("checks", ()) if c["name"].startswith("probe: ")]
    limit = float(limits[0]) if limits else 0.9
    bars = [(defect_of(name), v, v is not None and v >= limit) for name, v in probes.items()]
    title = _("Share of broken answers that the model sees, by kind of defect")
    picture = share_bars(bars, limit=limit, title=title) if bars else None
    return GateCard(bool(facts.get("passed")), rows, picture)


def phrase_row(found: dict[str, Any]) -> PhraseRow:
    early, late = (f"{100 * float(found.get(k) or 0):.0f} %" for k in ("early", "late"))
    return PhraseRow(str(found.get("text", "")), early, late, number(found.get("lift")))


def evaluations(run: TrainingRun, curves: Curves) -> Evaluations | None:
    """Held-out prompts before, during and after the training (G27)."""
    names = [n for n in curves.values if n.startswith("eval/")]
    order = {name: i for i, name in enumerate(EVALUATED)}
    names.sort(key=lambda n: (order.get(n, len(order)), n))
    steps = sorted({int(step) for name in names for step, _v in curves.pairs(name)})
    if not steps:
        return None
    rows = []
    for name in names:
        by_step = dict(curves.pairs(name))
        values = [by_step.get(step) for step in steps]
        if any(value is not None for value in values):
            rows.append((metric_name(name), [number(value) for value in values]))
    columns = [(s, round(100 * s / run.steps) if run.steps else None) for s in steps]
    return Evaluations(columns, rows)


def measured(run: TrainingRun) -> Measured | None:
    """What an evaluation found, as its manifest says it."""
    facts: dict[str, Any] = (run.manifest or {}).get("facts") or {}
    if run.kind != RunKind.EVALUATE or "means" not in facts:
        return None
    limits = facts.get("limits") or {}
    answers, errors, bad = (int(facts.get(k) or 0) for k in ("answers", "n_err", "degenerate"))
    rows = [
        (_("Answers"), f"{answers:,}", ""),
        (_("Answers without a score"), f"{errors:,}", _limit(limits.get("errors"))),
        (_("Empty answers, or one word again and again"), f"{bad:,}",
         _limit(limits.get("degenerate"))),
        (_("Words per answer"), number(facts.get("words")), ""),
    ]  # fmt: skip
    rows += [(scored_name(name), number(value), "") for name, value in facts["means"].items()]
    return Measured(bool(facts.get("passed")), rows)


def _limit(share: Any) -> str:
    return _("at most %(n)s %%") % {"n": f"{100 * share:g}"} if share is not None else ""


def failure(run: TrainingRun) -> Failure | None:
    """Why a run ended that did not succeed, and what it proposes to change."""
    if run.state not in (RunState.FAILED, RunState.CANCELLED) or not (run.reason or run.message):
        return None
    lines = "\n".join(run.log_tail.splitlines()[-LOG_LINES:])
    proposed = changes(flat(resolved(run)), run.changes)
    return Failure(reason_of(run.reason), run.message, proposed, lines)


def input_rows(run: TrainingRun) -> list[InputRow]:
    rows = RunInput.objects.filter(run=run).select_related("dataset", "source").order_by("pk")
    return [
        InputRow(
            role=str(Role(row.role).label),
            name=row.dataset.name if row.dataset else row.source.name if row.source else "–",
            dataset=row.dataset_id,
            source=row.source_id,
            split=str(Split(row.split).label) if row.split in Split.values else row.split,
            sha256=row.sha256,
        )
        for row in rows
    ]


def users_of(run: TrainingRun) -> list[tuple[TrainingRun, str]]:
    """Runs that were made with what this one made, and what they took it for."""
    rows = RunInput.objects.filter(source=run).select_related("run").order_by("pk")[:50]
    return [(row.run, str(Role(row.role).label)) for row in rows]


def checkpoints_of(run: TrainingRun) -> list[Checkpoint]:
    return list(Checkpoint.objects.filter(run=run).order_by("step", "pk"))


def setting_rows(run: TrainingRun) -> list[tuple[str, list[tuple[str, str, str, bool]]]]:
    """The resolved settings by section: field, label, value, whether it differs from the preset."""
    asked = set(flat(run.config))
    read = (*READ_BY.get(run.kind, ()), "data")
    found: dict[str, list[tuple[str, str, str, bool]]] = {}
    for name, value in flat(resolved(run)).items():
        section, dot, _rest = name.partition(".")
        if dot and section in read:
            row = (name, label_of(name), shown(value), name in asked)
            found.setdefault(section, []).append(row)
    return [(str(SECTIONS[section]), rows) for section, rows in found.items()]


def versions(run: TrainingRun) -> list[tuple[str, str]]:
    """What it ran with: packages, peak memory, time, hashes of what it made."""
    manifest = run.manifest or {}
    found = sorted((manifest.get("versions") or {}).items())
    if "peak_memory_mb" in manifest:
        found.append((_("greatest memory"), f"{manifest['peak_memory_mb']} MB"))
    if "seconds" in manifest:
        found.append((_("time of the last start"), f"{manifest['seconds']:.0f} s"))
    return found


def compared(runs: Sequence[TrainingRun], curves: Sequence[Curves]) -> list[tuple[str, list[str]]]:
    """Outcomes side by side: the last value of the main curves, and of the last evaluation."""
    there = {n for c in curves for n in c.values if c.last(n) is not None}
    held_out = [n for n in EVALUATED if n in there]
    held_out += sorted(n for n in there if n.startswith("eval/") and n not in EVALUATED)
    found = [(metric_name(n), n) for n in OUTCOMES if n in there]
    found += [(_("Held-out prompts: %(name)s") % {"name": metric_name(n)}, n) for n in held_out]
    return [(name, [number(c.last(n)) for c in curves]) for name, n in found]


OUTCOMES = (
    "reward/reference", "reward", "kl", "length/mean", "parts/quality", "parts/personalization",
    "parts/redundancy", "entropy", "zero_spread", "tokens_per_second", "loss", "eval_loss",
)  # fmt: skip
