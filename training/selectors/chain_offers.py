"""What may be chosen for a chain: datasets, a base, gates, contestants, raters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from training.enums import DatasetState, Kind, RunKind, RunState, Split
from training.models import Dataset, GateSpec, TrainingRun
from webapp.accounts.enums import VOTING_ROLES
from webapp.accounts.models import User
from webapp.catalog.models import Contestant

MOST = 200
Choices = list[tuple[Any, Any]]


def offered() -> dict[str, Choices]:
    """Choices by field, the newest first."""
    choose: Choices = [("", _("choose"))]
    frozen = list(Dataset.objects.filter(state=DatasetState.FROZEN)[:MOST])
    pairs = [d for d in frozen if d.kind == Kind.PREFERENCES]
    found: dict[str, Choices] = {
        axis: choose + [(d.pk, d.name) for d in pairs if d.filter.get("axis") == axis]
        for axis in ("quality", "personalization")
    }
    asks = [d for d in frozen if {Split.TRAIN, Split.GATE} <= set(d.split_sha256)]
    defects = [d for d in frozen if d.kind == Kind.COUNTEREXAMPLES]
    bases = TrainingRun.objects.filter(kind=RunKind.SFT, state=RunState.SUCCEEDED)[:MOST]
    people = User.objects.filter(role__in=VOTING_ROLES, is_active=True).order_by("username")
    return {
        **found,
        "prompts": choose + [(d.pk, d.name) for d in asks if d.kind != Kind.COUNTEREXAMPLES],
        "defects": [("", _("none"))] + [(d.pk, d.name) for d in defects],
        "base": choose + [(run.pk, run.name) for run in bases],
        "gate": choose + [(spec.pk, spec.name) for spec in GateSpec.objects.all()[:MOST]],
        "contestants": [(c.pk, str(c)) for c in Contestant.objects.order_by("-pk")[:MOST]],
        "raters": [(user.pk, user.get_username()) for user in people[:MOST]],
    }


def chosen(data: Mapping[str, Any]) -> dict[str, Any]:
    """The rows behind the choices of a form that was checked."""
    sets = {
        name: Dataset.objects.get(pk=data[name]) if data[name] else None
        for name in ("quality", "personalization", "prompts", "defects")
    }
    return {
        **sets,
        "base": TrainingRun.objects.get(pk=data["base"]),
        "gate": GateSpec.objects.get(pk=data["gate"]),
    }
