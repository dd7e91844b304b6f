"""Kinds, states and splits of datasets, kinds and states of runs, with the legal moves as data."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Kind(models.TextChoices):
    """What a dataset teaches."""

    INSTRUCTIONS = "instructions", _("instructions")  # supervised fine-tuning
    TOOL_TRACES = "tool_traces", _("tool traces")  # kept and checked now, used later
    PREFERENCES = "preferences", _("preference pairs")
    COUNTERFACTUALS = "counterfactuals", _("counterfactual pairs")
    COUNTEREXAMPLES = "counterexamples", _("counter-examples")


PAIRS = (Kind.PREFERENCES, Kind.COUNTERFACTUALS)
IMPORTED = (Kind.INSTRUCTIONS, Kind.TOOL_TRACES, Kind.COUNTEREXAMPLES)


class DatasetState(models.TextChoices):
    DRAFT = "draft", _("draft")
    FREEZING = "freezing", _("freezing")
    FROZEN = "frozen", _("frozen")
    DISCARDED = "discarded", _("discarded")


TRANSITIONS: dict[str, frozenset[str]] = {
    DatasetState.DRAFT: frozenset({DatasetState.FREEZING, DatasetState.DISCARDED}),
    DatasetState.FREEZING: frozenset({DatasetState.DRAFT, DatasetState.FROZEN}),
    DatasetState.FROZEN: frozenset(),
    DatasetState.DISCARDED: frozenset(),
}


class Split(models.TextChoices):
    """What a row is for. No prompt and no persona is in two of them, over all frozen datasets."""

    TRAIN = "train", _("training")
    REWARD_MODEL_GATE = "reward_model_gate", _("gate of reward models")
    GATE = "gate", _("gate of policies")
    EDGE = "edge", _("edge cases")
    ARENA = "arena", _("arena")


class Source(models.TextChoices):
    ANNOTATION = "annotation", _("decisions of annotation")
    ARENA = "arena", _("votes of unsealed rounds")
    IMPORT = "import", _("imported files")


class Of(models.TextChoices):
    """What a split is claimed for."""

    PROMPT = "prompt", _("prompt")
    PERSONA = "persona", _("persona")


class RunKind(models.TextChoices):
    """What a run does; the names are those of the engine."""

    SFT = "sft", _("supervised fine-tuning")
    REWARD_MODEL = "reward_model", _("reward model")
    GRPO = "grpo", _("GRPO")
    EVALUATE = "evaluate", _("evaluation")
    QUANTIZE = "quantize", _("quantisation")
    PREDICT = "predict", _("prediction")  # what reward models say of given answers


class RunState(models.TextChoices):
    QUEUED = "queued", _("queued")
    STARTING = "starting", _("starting")
    RUNNING = "running", _("running")
    STOPPING = "stopping", _("stopping")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


# A failed or cancelled run may be resumed: it goes back into the queue.
RUN_TRANSITIONS: dict[str, frozenset[str]] = {
    RunState.QUEUED: frozenset({RunState.STARTING, RunState.CANCELLED}),
    RunState.STARTING: frozenset(
        {RunState.RUNNING, RunState.STOPPING, RunState.FAILED, RunState.QUEUED}
    ),
    RunState.RUNNING: frozenset({RunState.STOPPING, RunState.SUCCEEDED, RunState.FAILED}),
    RunState.STOPPING: frozenset({RunState.CANCELLED, RunState.SUCCEEDED, RunState.FAILED}),
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset({RunState.QUEUED}),
    RunState.CANCELLED: frozenset({RunState.QUEUED}),
}
ON_DEVICE = (RunState.STARTING, RunState.RUNNING, RunState.STOPPING)
ENDED = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


class Role(models.TextChoices):
    """What an input of a run is for: rows of a dataset, or what another run made."""

    TRAIN = "train", _("training rows")
    HELDOUT = "heldout", _("held-out rows")
    GATE = "gate", _("rows of the gate")
    PROBES = "probes", _("probes by kind of defect")
    SWAPS = "swaps", _("swaps of personas")
    LABELLED = "labelled", _("answers of known worth")
    BASE = "base", _("base model")
    QUALITY = "quality", _("reward model for quality")
    PERSONALIZATION = "personalization", _("reward model for personalization")


class GateState(models.TextChoices):
    MEASURING = "measuring", _("measuring")
    DECIDED = "decided", _("decided")
    FAILED = "failed", _("not measured")


class Verdict(models.TextChoices):
    """What a gate says; the names are those of `training.gating`."""

    PASS = "pass", _("passed")
    FAIL = "fail", _("failed")
    NO_DIFFERENCE = "no_difference", _("no difference")
    NO_VERDICT = "no_verdict", _("no verdict")


class EdgeSource(models.TextChoices):
    GATE = "gate", _("failed at a gate")
    COMPLAINT = "complaint", _("adjudicated complaint")
    ROLLOUT = "rollout", _("failed rollout")
    AUDIT = "audit", _("fake success found by reading")
    AUTHORED = "authored", _("written by hand")


class AuditVerdict(models.TextChoices):
    GENUINE = "genuine", _("genuine")
    FAKE = "fake", _("fake success")


class PromotionKind(models.TextChoices):
    GATE = "gate", _("passed its gate")
    OVERRIDE = "override", _("override by two administrators")
    BASELINE = "baseline", _("baseline, not trained by reward")


class ChainStage(models.TextChoices):
    """Stages of a chain in their order; the names are those of `training.chains`."""

    FREEZE = "freeze", _("datasets")
    REWARDS = "rewards", _("reward models")
    GRPO = "grpo", _("GRPO")
    GATE = "gate", _("gate")
    CONTESTANT = "contestant", _("contestant")
    ROUND = "round", _("draft of a round")


class Arrow(models.TextChoices):
    """Whether a chain goes on into a stage."""

    OFF = "off", _("off: it ends here")
    ASK = "ask", _("ask: a person lets it go on")
    ON = "on", _("on: by itself")


class ChainState(models.TextChoices):
    RUNNING = "running", _("running")
    WAITING = "waiting", _("waiting")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


ACTIVE_CHAIN = (ChainState.RUNNING, ChainState.WAITING)


class StepState(models.TextChoices):
    PENDING = "pending", _("not begun")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("done")
    FAILED = "failed", _("failed")


# A failed run goes on when its failed stage is tried again; what is done or cancelled stays so.
CHAIN_TRANSITIONS: dict[str, frozenset[str]] = {
    ChainState.RUNNING: frozenset(
        {ChainState.WAITING, ChainState.DONE, ChainState.FAILED, ChainState.CANCELLED}
    ),
    ChainState.WAITING: frozenset(
        {ChainState.RUNNING, ChainState.DONE, ChainState.FAILED, ChainState.CANCELLED}
    ),
    ChainState.DONE: frozenset(),
    ChainState.FAILED: frozenset({ChainState.RUNNING, ChainState.CANCELLED}),
    ChainState.CANCELLED: frozenset(),
}
