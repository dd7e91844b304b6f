"""Where trained contestants come from, as their frozen provenance says it, for readers of results.

Who trained them knows more; here stand names and hashes alone, and only unsealed rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from arena.enums import RoundState
from arena.models import RoundContestant
from webapp.catalog.models import Contestant

OVERRIDE, BASELINE = "override", "baseline"
GROUNDS: Mapping[str, Any] = {
    "gate": gettext_lazy("passed its gate"),
    OVERRIDE: gettext_lazy("let in by two administrators without a passed gate"),
    BASELINE: gettext_lazy("baseline: no reward has trained it"),
}
VERDICTS: Mapping[str, Any] = {
    "pass": gettext_lazy("passed"),
    "fail": gettext_lazy("failed"),
    "no_difference": gettext_lazy("no difference"),
    "no_verdict": gettext_lazy("no verdict"),
}
ROLES: Mapping[str, Any] = {
    "train": gettext_lazy("training"),
    "heldout": gettext_lazy("held out"),
    "gate": gettext_lazy("gate"),
    "probes": gettext_lazy("probes"),
    "swaps": gettext_lazy("swaps of personas"),
    "labelled": gettext_lazy("answers of known worth"),
    "quality": gettext_lazy("quality"),
    "personalization": gettext_lazy("personalization"),
}


@dataclass(frozen=True)
class Part:
    """A run or a dataset: what for, its name, the hash of weights or rows."""

    role: str
    name: str
    sha256: str


@dataclass(frozen=True)
class Lineage:
    """One trained contestant. `gate` is its name and verdict; `rounds` are unsealed ones."""

    contestant_id: int
    contestant: str
    ground: str
    grounds: str
    reason: str
    run: Part
    bases: tuple[Part, ...]
    datasets: tuple[Part, ...]
    reward_models: tuple[Part, ...]
    gate: tuple[str, str] | None
    rounds: tuple[tuple[int, str], ...]

    @property
    def warned(self) -> bool:
        """Whether no gate let it in, and it is no baseline either."""
        return self.ground == OVERRIDE

    @property
    def is_baseline(self) -> bool:
        return self.ground == BASELINE


def lineages_of(contestants: Iterable[int]) -> list[Lineage]:
    """Of those that were trained here, by name. Two queries, however many there are."""
    rows = Contestant.objects.filter(pk__in=list(contestants), provenance__run__isnull=False)
    found = sorted(rows, key=str)
    rounds: dict[int, list[tuple[int, str]]] = {}
    if found:
        taken = RoundContestant.objects.filter(
            contestant__in=found, round__state=RoundState.UNSEALED
        ).order_by("round__unsealed_at", "round")
        for pk, round_id, name in taken.values_list("contestant", "round", "round__name"):
            rounds.setdefault(pk, []).append((round_id, name))
    return [_lineage(row, tuple(rounds.get(row.pk, ()))) for row in found]


def _lineage(row: Contestant, rounds: tuple[tuple[int, str], ...]) -> Lineage:
    known: dict[str, Any] = row.provenance
    ground = str(known.get("promotion", ""))
    gate = known.get("gate")
    return Lineage(
        contestant_id=row.pk,
        contestant=str(row),
        ground=ground,
        grounds=str(GROUNDS.get(ground, ground)),
        reason=str(known.get("reason") or ""),
        run=_run(known["run"]),
        bases=tuple(_run(base) for base in known.get("bases") or ()),
        datasets=tuple(_dataset(data) for data in known.get("datasets") or ()),
        reward_models=tuple(_run(model) for model in known.get("reward_models") or ()),
        gate=(str(gate["name"]), _verdict(str(gate.get("verdict", "")))) if gate else None,
        rounds=rounds,
    )


def _run(known: Mapping[str, Any]) -> Part:
    return Part(_role(known), str(known.get("name", "")), str(known.get("weights_sha256", "")))


def _dataset(known: Mapping[str, Any]) -> Part:
    return Part(_role(known), str(known.get("name", "")), str(known.get("sha256", "")))


def _role(known: Mapping[str, Any]) -> str:
    role = str(known.get("role", ""))
    return str(ROLES.get(role, role))


def _verdict(verdict: str) -> str:
    return str(VERDICTS.get(verdict, verdict)) or _("no verdict")
