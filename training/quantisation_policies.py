"""What a quantisation must leave of the sensitivity to the persona before a promotion (I1, V20)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from training.ancestry import ancestry_of
from training.enums import RunKind
from training.models import Checkpoint, TrainingRun
from webapp.core.errors import Refused

KEPT = 0.8  # share of the original's sensitivity that must stay, whatever a run asked


@dataclass(frozen=True)
class Quantised:
    """The nearest quantisation behind a model. `ratio` is the share of the original's sensitivity
    that is there now: what every quantisation left, times what every adapter on them changed. None:
    unknown. `low` and `high` are those of a model that was quantised once and is no more than that.
    """

    run: TrainingRun
    bits: int
    ratio: float | None
    adapted: bool
    low: float | None = None
    high: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.pk,
            "name": self.run.name,
            "bits": self.bits,
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "adapted": self.adapted,
        }


def quantised(run: TrainingRun, checkpoint: Checkpoint | None = None) -> Quantised | None:
    """The nearest quantisation of a model or of what it comes from; None where there is none.

    Adapters are measured at their end: of intermediate weights nothing is known.
    """
    chain = ancestry_of(run)
    places = [n for n, one in enumerate(chain) if one.kind == RunKind.QUANTIZE]
    if not places:
        return None
    # What came before the first quantisation is the original.
    ratio = None if checkpoint is not None else _product(chain[: places[-1] + 1])
    nearest, alone = chain[places[0]], places == [0]
    facts = _facts(nearest)
    found = facts.get("sensitivity") or {} if alone else {}
    return Quantised(
        nearest, int(facts.get("bits") or 0), ratio, nearest.pk != run.pk,
        found.get("low"), found.get("high"),
    )  # fmt: skip


def _facts(run: TrainingRun) -> dict[str, Any]:
    return dict((run.manifest or {}).get("facts") or {})


def _product(chain: list[TrainingRun]) -> float | None:
    """What is left over all of them; None where one was not measured."""
    left = 1.0
    for run in chain:
        part = _kept(run)
        if part is None:
            return None
        left *= part
    return left


def _kept(run: TrainingRun) -> float | None:
    """What one quantisation left, or one adapter changed, as a share; None where unknown."""
    facts = _facts(run)
    if run.kind == RunKind.QUANTIZE:
        ratio = (facts.get("sensitivity") or {}).get("ratio")
        return None if ratio is None else float(ratio)
    found = (facts.get("adaptation") or {}).get("sensitivity") or {}
    before, after = found.get("before"), found.get("after")
    return None if not before or after is None else float(after) / float(before)


def check_persona_kept(run: TrainingRun, checkpoint: Checkpoint | None = None) -> None:
    """Raise where a quantised model lost too much of what depends on the person."""
    found = quantised(run, checkpoint)
    if found is None:
        return
    if found.ratio is None:
        raise Refused(
            _("How much of the sensitivity to the persona is left since “%(name)s” is not known. "
              "It cannot be promoted by its gate.") % {"name": found.run.name},
            code="sensitivity_unknown",
        )  # fmt: skip
    if found.ratio < KEPT:
        raise Refused(
            _("With %(bits)s bits, %(share)s %% of the sensitivity to the persona are left; "
              "%(least)s %% are needed. It cannot be promoted by its gate.")
            % {"bits": found.bits, "share": f"{100 * found.ratio:.0f}",
               "least": f"{100 * KEPT:.0f}"},
            code="persona_lost",
        )  # fmt: skip
