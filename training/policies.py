"""What states of datasets and runs allow, and who may: `check_x` raises, `may_x` answers."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from arena.enums import RoundState
from arena.models import Round
from training.enums import (
    CHAIN_TRANSITIONS,
    RUN_TRANSITIONS,
    TRANSITIONS,
    ChainState,
    DatasetState,
    RunState,
    Split,
)
from training.models import BaselineEvaluation, ChainRun, Dataset, TrainingRun
from webapp.accounts.policies import check_admin
from webapp.core.errors import PalateError, Refused


def check_manage(actor: Any) -> None:
    """Raise unless this user manages datasets and runs. `None` is whoever runs a command."""
    if actor is not None:
        check_admin(actor)


def check_move(dataset: Dataset, to: str) -> None:
    """Raise unless the life cycle allows the move."""
    if to not in TRANSITIONS[dataset.state]:
        raise Refused(
            _("A dataset that is %(state)s cannot become %(to)s.")
            % {"state": dataset.get_state_display(), "to": DatasetState(to).label},
            code="illegal_move",
        )


def check_run_move(run: TrainingRun, to: str) -> None:
    """Raise unless the life cycle of runs allows the move."""
    if to not in RUN_TRANSITIONS[run.state]:
        raise Refused(
            _("A run that is %(state)s cannot become %(to)s.")
            % {"state": run.get_state_display(), "to": RunState(to).label},
            code="illegal_move",
        )


def check_chain_move(run: ChainRun, to: str) -> None:
    """Raise unless the life cycle of chains allows the move; staying is none."""
    if to != run.state and to not in CHAIN_TRANSITIONS[run.state]:
        raise Refused(
            _("A chain that is %(state)s cannot become %(to)s.")
            % {"state": run.get_state_display(), "to": ChainState(to).label},
            code="illegal_move",
        )


def may_move_run(run: TrainingRun, to: str) -> bool:
    return to in RUN_TRANSITIONS[run.state]


def check_frozen(dataset: Dataset) -> None:
    """Raise unless the dataset has rows that may be used."""
    if dataset.state != DatasetState.FROZEN:
        raise Refused(_("Freeze the dataset first."), code="not_frozen")


def check_has_gate(dataset: Dataset) -> str:
    """The hash of the gate split, or raise: without one nothing can be compared."""
    check_frozen(dataset)
    digest: str = dataset.split_sha256.get(Split.GATE, "")
    if not digest:
        raise Refused(
            _("“%(name)s” has no gate split, so nothing can be compared with it.")
            % {"name": dataset.name},
            code="no_gate_split",
        )
    return digest


def check_may_start_grpo(base: str, dataset: Dataset, base_sha256: str = "") -> None:
    """Raise unless this base model was evaluated on the gate split of the dataset (F18, H12).

    Reinforcement learning without a floor swings and crashes: what the base can do is measured
    first, on the rows that the gate will use.
    """
    digest = check_has_gate(dataset)
    rows = BaselineEvaluation.objects.filter(base=base, split_sha256=digest)
    if base_sha256:
        rows = rows.filter(base_sha256=base_sha256)
    newest = rows.order_by("-pk").first()
    if newest is None:
        raise Refused(
            _("“%(base)s” has no baseline evaluation on the gate split of “%(name)s” yet.")
            % {"base": base, "name": dataset.name},
            code="no_baseline",
        )
    if not newest.passed:
        raise Refused(
            _("“%(base)s” did not pass its baseline evaluation on “%(name)s”.")
            % {"base": base, "name": dataset.name},
            code="baseline_failed",
        )


def check_predictable(pk: Any) -> Round:
    """The round whose answers reward models may be shown, or raise: only an unsealed one (V1).

    Before that, a file with its texts beside a run would tell whom a text may be from.
    """
    round_ = Round.objects.filter(pk=pk).first()
    if round_ is None:
        raise Refused(_("There is no round with this number."), code="no_round")
    if round_.state != RoundState.UNSEALED:
        raise Refused(
            _("“%(name)s” is not unsealed: until then no reward model is shown its answers.")
            % {"name": round_.name},
            code="sealed",
        )
    return round_


def may_start_grpo(base: str, dataset: Dataset, base_sha256: str = "") -> bool:
    try:
        check_may_start_grpo(base, dataset, base_sha256)
    except PalateError:
        return False
    return True
