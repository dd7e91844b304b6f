"""Which inputs each kind of run takes: rows in a form, or what another run made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from training.enums import Kind, Role, RunKind, Split

ANY = (Kind.INSTRUCTIONS, Kind.PREFERENCES, Kind.COUNTERFACTUALS, Kind.COUNTEREXAMPLES)
PAIRED = (Kind.PREFERENCES, Kind.COUNTERFACTUALS)
MEASURING = (Split.REWARD_MODEL_GATE, Split.GATE, Split.EDGE)


@dataclass(frozen=True)
class Takes:
    """What one role takes: `form` names the rows (see `training.engine.snapshots`), or "model",
    "reward_model". `kinds` and `splits` are those of datasets, `runs` the kinds of runs.
    """

    form: str
    needed: bool = False
    kinds: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    @property
    def rows(self) -> bool:
        return bool(self.kinds)


def _rows(
    form: str, kinds: tuple[str, ...], splits: tuple[str, ...], needed: bool = False
) -> Takes:
    return Takes(form, needed, kinds, splits)


BASE = Takes("model", runs=(RunKind.SFT, RunKind.GRPO))
POLICY = Takes("model", runs=(RunKind.SFT, RunKind.GRPO, RunKind.QUANTIZE))
REWARD = Takes("reward_model", runs=(RunKind.REWARD_MODEL,))
PROBES = _rows("probes", (Kind.COUNTEREXAMPLES,), (*MEASURING, Split.TRAIN))
SWAPS = _rows("swaps", PAIRED, (*MEASURING, Split.TRAIN))

ROLES: Mapping[str, Mapping[str, Takes]] = {
    RunKind.SFT: {
        Role.TRAIN: _rows("instructions", (Kind.INSTRUCTIONS,), (Split.TRAIN,), True),
        Role.HELDOUT: _rows("instructions", (Kind.INSTRUCTIONS,), MEASURING),
        Role.BASE: BASE,
    },
    RunKind.REWARD_MODEL: {
        Role.TRAIN: _rows("pairs", PAIRED, (Split.TRAIN,), True),
        Role.HELDOUT: _rows("pairs", (Kind.PREFERENCES,), MEASURING, True),
        Role.GATE: _rows("pairs", (Kind.PREFERENCES,), (Split.REWARD_MODEL_GATE,), True),
        Role.PROBES: PROBES,
        Role.SWAPS: SWAPS,
        Role.BASE: BASE,
    },
    RunKind.GRPO: {
        Role.TRAIN: _rows("prompts", ANY, (Split.TRAIN,), True),
        Role.HELDOUT: _rows("prompts", ANY, MEASURING),
        Role.GATE: _rows("prompts", ANY, (Split.GATE,)),
        Role.PROBES: PROBES,
        Role.SWAPS: SWAPS,
        Role.LABELLED: _rows("labelled", (Kind.COUNTEREXAMPLES,), (*MEASURING, Split.TRAIN)),
        Role.BASE: POLICY,
        Role.QUALITY: REWARD,
        Role.PERSONALIZATION: REWARD,
    },
    RunKind.EVALUATE: {
        Role.GATE: _rows("prompts", ANY, MEASURING, True),
        Role.BASE: POLICY,
        Role.QUALITY: REWARD,
        Role.PERSONALIZATION: REWARD,
    },
    RunKind.QUANTIZE: {
        Role.BASE: BASE,
        Role.SWAPS: SWAPS,
        Role.GATE: _rows("prompts", ANY, MEASURING),
        Role.PERSONALIZATION: REWARD,
    },
    RunKind.PREDICT: {Role.QUALITY: REWARD, Role.PERSONALIZATION: REWARD},
}
# Rows of the gate of a GRPO run are not handed to the engine: they say where its base was measured.
NOT_WRITTEN = {(RunKind.GRPO, Role.GATE)}
BRANCHES = (Role.QUALITY, Role.PERSONALIZATION)


def file_of(role: str) -> str:
    """Where the rows of a role lie in the run directory."""
    return f"data/{role}.jsonl"


def written(kind: str) -> list[str]:
    """The roles whose rows the engine reads."""
    return [r for r, takes in ROLES[kind].items() if takes.rows and (kind, r) not in NOT_WRITTEN]
