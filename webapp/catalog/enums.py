"""Kinds and allow-lists of the catalog."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _


class Axis(models.TextChoices):
    """What people are asked about two answers, in rounds and in annotation alike."""

    QUALITY = "quality", _("quality")
    PERSONALIZATION = "personalization", _("personalization")


class ContestantKind(models.TextChoices):
    IMPORTED = "imported", _("imported answers")
    ENDPOINT = "endpoint", _("OpenAI-compatible endpoint")
    CHECKPOINT = "checkpoint", _("local checkpoint")


# Whose answers are made here, for a round; imported ones come in files.
MADE_HERE = (ContestantKind.ENDPOINT, ContestantKind.CHECKPOINT)


class FinishReason(models.TextChoices):
    STOP = "stop", _("ended by itself")
    LENGTH = "length", _("cut at the length limit")
    UNKNOWN = "", _("not known")


class Where(models.TextChoices):
    """Where a person met an answer. All but VOTED keep him from judging it (V7)."""

    WROTE = "wrote", _("wrote it")
    LABELLED = "labelled", _("labelled it")
    IMPORTED = "imported", _("imported it")
    AUDITED = "audited", _("read it with its maker")
    VOTED = "voted", _("voted on it")


class Split(models.TextChoices):
    """What a persona or prompt is kept for (V11). Empty: nothing yet. HOLDOUT is for ever."""

    NONE = "", _("not assigned")
    ROTATING = "rotating", _("rotating")
    HOLDOUT = "holdout", _("holdout")


class ImportState(models.TextChoices):
    UPLOADED = "uploaded", _("uploaded, not started")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


# Features that may form strata. Nothing else about a person is kept.
STRATUM_FEATURES: dict[str, Any] = {
    "expertise": _("expertise"),
    "goal": _("goal"),
    "language": _("language"),
    "detail": _("wanted detail"),
    "tone": _("wanted tone"),
    "domain": _("field of work"),
    "age_band": _("age band"),
}
FEATURE_VALUE_LENGTH = 32
