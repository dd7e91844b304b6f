"""Kinds, states and splits of datasets, with the legal moves as data."""

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
