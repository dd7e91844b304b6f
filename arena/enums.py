"""States, verdicts and rules of the arena, with the legal moves as data."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from webapp.catalog.enums import Axis as Axis


class RoundState(models.TextChoices):
    DRAFT = "draft", _("draft")
    SCREENING = "screening", _("screening")
    OPEN = "open", _("open")
    CLOSED = "closed", _("closed, sealed")
    UNSEALED = "unsealed", _("unsealed")
    CANCELLED = "cancelled", _("cancelled")


TRANSITIONS: dict[str, frozenset[str]] = {
    RoundState.DRAFT: frozenset({RoundState.SCREENING, RoundState.CANCELLED}),
    RoundState.SCREENING: frozenset({RoundState.DRAFT, RoundState.OPEN, RoundState.CANCELLED}),
    RoundState.OPEN: frozenset({RoundState.CLOSED, RoundState.CANCELLED}),
    RoundState.CLOSED: frozenset({RoundState.UNSEALED}),
    RoundState.UNSEALED: frozenset(),
    RoundState.CANCELLED: frozenset(),
}
SEALED_STATES = (RoundState.OPEN, RoundState.CLOSED)


COMPOSITE = "overall"  # the axis name of the weighted sum


class Verdict(models.TextChoices):
    LEFT = "left", _("A is better")
    TIE = "tie", _("equal")
    RIGHT = "right", _("B is better")
    BOTH_BAD = "both_bad", _("both are bad")


class TieModel(models.TextChoices):
    BRADLEY_TERRY = "bradley_terry", _("Bradley–Terry, a tie is half a win each")
    DAVIDSON = "davidson", _("Davidson, ties have a parameter of their own")


class StopRule(models.TextChoices):
    """When a round closes by itself. Never by its results (V2)."""

    VOTES = "votes", _("when the planned votes are in")
    DATE = "date", _("at a date")


class AssignmentState(models.TextChoices):
    RESERVED = "reserved", _("reserved")  # prefetched, nothing shown yet
    SHOWN = "shown", _("shown")
    VOTED = "voted", _("voted")
    SKIPPED = "skipped", _("skipped")
    EXPIRED = "expired", _("expired")


LIVE_STATES = (AssignmentState.RESERVED, AssignmentState.SHOWN, AssignmentState.VOTED)


class SkipReason(models.TextChoices):
    UNSURE = "unsure", _("I cannot judge this topic")
    LANGUAGE = "language", _("I do not read this language")
    BROKEN = "broken", _("something is broken on the page")
    OFFENSIVE = "offensive", _("I do not want to read this")
    RECOGNISED = "recognised", _("I recognise who wrote it")


class Tag(models.TextChoices):
    WRONG = "wrong", _("wrong facts")
    INCOMPLETE = "incomplete", _("incomplete")
    WORDY = "wordy", _("too wordy")
    TERSE = "terse", _("too terse")
    OFF_PERSONA = "off_persona", _("ignores the persona")
    FLATTERY = "flattery", _("empty flattery")
    FORMAT = "format", _("badly formatted")


class ExclusionRule(models.TextChoices):
    """Rules fixed before opening; votes they hit are left out of the second set of ratings."""

    TOO_FAST = "too_fast", _("less active time than the minimum")
    ONE_SIDED = "one_sided", _("rater chooses one side far too often")
    LATE = "late", _("sent after the lease had expired")
    OWNER = "owner", _("the persona's owner")


class Variant(models.TextChoices):
    ALL = "all", _("all votes")
    EXCLUDED = "excluded", _("with the pre-registered exclusions")


class AnswerJobState(models.TextChoices):
    RUNNING = "running", _("being made")
    DONE = "done", _("finished")
    CANCELLED = "cancelled", _("stopped")


class WantedState(models.TextChoices):
    """A slot holds one answer or one recorded failure; until then it waits."""

    WAITING = "waiting", _("waiting")
    MADE = "made", _("made")
    FAILED = "failed", _("failed")
