"""States, verdicts and reasons of annotation, with the legal moves of a project as data."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from webapp.catalog.enums import Axis

__all__ = ["Axis"]


class ProjectState(models.TextChoices):
    DRAFT = "draft", _("draft")
    OPEN = "open", _("open")
    PAUSED = "paused", _("paused")
    CLOSED = "closed", _("closed")


TRANSITIONS: dict[str, frozenset[str]] = {
    ProjectState.DRAFT: frozenset({ProjectState.OPEN, ProjectState.CLOSED}),
    ProjectState.OPEN: frozenset({ProjectState.PAUSED, ProjectState.CLOSED}),
    ProjectState.PAUSED: frozenset({ProjectState.OPEN, ProjectState.CLOSED}),
    ProjectState.CLOSED: frozenset({ProjectState.OPEN}),
}


class Verdict(models.TextChoices):
    """Canonical: of the item's first and second answer, wherever they stood on the page."""

    FIRST = "first", _("the first is better")
    TIE = "tie", _("equal")
    SECOND = "second", _("the second is better")
    BOTH_BAD = "both_bad", _("both are bad")


class Shown(models.TextChoices):
    """The same as an annotator sees it: A stands left."""

    LEFT = "left", _("A is better")
    TIE = "tie", _("equal")
    RIGHT = "right", _("B is better")
    BOTH_BAD = "both_bad", _("both are bad")


class Strength(models.IntegerChoices):
    SLIGHT = 1, _("slightly")
    CLEAR = 2, _("clearly")
    MUCH = 3, _("much")


class MemberState(models.TextChoices):
    ONBOARDING = "onboarding", _("learning the guidelines")
    WORKING = "working", _("working")
    PAUSED = "paused", _("paused")
    LEFT = "left", _("left the project")


# What a manager may do with a member. Somebody who left comes back by being added again.
MEMBER_MOVES: dict[str, frozenset[str]] = {
    MemberState.ONBOARDING: frozenset({MemberState.WORKING, MemberState.PAUSED, MemberState.LEFT}),
    MemberState.WORKING: frozenset({MemberState.PAUSED, MemberState.LEFT}),
    MemberState.PAUSED: frozenset({MemberState.WORKING, MemberState.LEFT}),
    MemberState.LEFT: frozenset(),
}


class ItemKind(models.TextChoices):
    IMPORTED = "imported", _("imported pair")
    CATALOG = "catalog", _("two answers of the catalog")
    COUNTERFACTUAL = "counterfactual", _("counterfactual rewrite")


class ItemState(models.TextChoices):
    HELD = "held", _("held back, something looks wrong")
    PARKED = "parked", _("waiting, its stratum has enough")
    OPEN = "open", _("open")
    GOLD = "gold", _("gold")
    DISPUTED = "disputed", _("disputed")
    DONE = "done", _("done")
    DROPPED = "dropped", _("dropped")


class ItemFlag(models.TextChoices):
    """Why an item is held back before anyone spends time, or was dropped."""

    NEAR_IDENTICAL = "near_identical", _("the answers are nearly the same")
    EMPTY_SIDE = "empty_side", _("an answer is empty")
    NO_PERSONA = "no_persona", _("there is no persona whom it could suit")
    WITHDRAWN = "withdrawn", _("consent was withdrawn")
    REPORTED = "reported", _("an annotator reported a problem")
    REJECTED = "rejected", _("a reviewer rejected it")
    CONTESTED = "contested", _("an appeal or a report gave it to an adjudicator")


class LeaseState(models.TextChoices):
    RESERVED = "reserved", _("reserved")  # the next one, nothing shown yet
    SHOWN = "shown", _("shown")
    SUBMITTED = "submitted", _("submitted")
    SKIPPED = "skipped", _("skipped")
    EXPIRED = "expired", _("expired")
    SET_ASIDE = "set_aside", _("set aside")  # submitted, but a manager lets it count no more


HELD = (LeaseState.RESERVED, LeaseState.SHOWN)  # the item is somebody's
# What she submitted, whatever a manager thinks of it: she sees no difference. Her labels on gold
# are never set aside, so a difference would tell which they are.
GIVEN = (LeaseState.SUBMITTED, LeaseState.SET_ASIDE)


class SkipReason(models.TextChoices):
    UNSURE = "unsure", _("I cannot judge this topic")
    LANGUAGE = "language", _("I do not read this language")
    PERSONA = "persona", _("the person is not clear enough")
    OFFENSIVE = "offensive", _("I do not want to read this")


class Tag(models.TextChoices):
    """The reason tags that a project starts with; a project may have others."""

    WRONG = "wrong", _("wrong facts")
    INCOMPLETE = "incomplete", _("incomplete")
    WORDY = "wordy", _("too wordy")
    TERSE = "terse", _("too terse")
    OFF_PERSONA = "off_persona", _("ignores the persona")
    FLATTERY = "flattery", _("empty flattery")
    FORMAT = "format", _("badly formatted")
    DEPENDS = "depends", _("another person would choose otherwise")


class ProblemKind(models.TextChoices):
    BROKEN = "broken", _("the text is broken")
    UNSAFE = "unsafe", _("harmful or private content")
    PERSONA = "persona", _("the person does not fit the question")
    DUPLICATE = "duplicate", _("I have seen this pair before")
    OTHER = "other", _("something else")


class AppealState(models.TextChoices):
    OPEN = "open", _("waiting for an answer")
    UPHELD = "upheld", _("upheld")
    REJECTED = "rejected", _("not upheld")


class DecisionSource(models.TextChoices):
    UNANIMOUS = "unanimous", _("unanimous")
    MAJORITY = "majority", _("majority")
    ADJUDICATED = "adjudicated", _("adjudicated")
    UNRESOLVED = "unresolved", _("unresolved")
    SYNTHETIC = "synthetic", _("by construction")


class AdjudicationReason(models.TextChoices):
    AMBIGUOUS = "ambiguous", _("the item is ambiguous")
    GUIDELINE_GAP = "guideline_gap", _("the guidelines do not cover it")
    ANNOTATOR_ERROR = "annotator_error", _("an annotator made a mistake")
    SUBJECTIVE = "subjective", _("a matter of taste")


class AdjudicationState(models.TextChoices):
    BLIND = "blind", _("deciding blind")
    REVEALED = "revealed", _("labels shown")
    DONE = "done", _("decided")
    RELEASED = "released", _("given back")


IN_HAND = (AdjudicationState.BLIND, AdjudicationState.REVEALED)


class JobState(models.TextChoices):
    """Of exports and of counterfactual jobs."""

    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class RewriterKind(models.TextChoices):
    RULES = "rules", _("rules, without a model")
    ENDPOINT = "endpoint", _("OpenAI-compatible endpoint")


class ReviewState(models.TextChoices):
    PROPOSED = "proposed", _("not reviewed")
    ACCEPTED = "accepted", _("accepted")
    REJECTED = "rejected", _("rejected")


class WebhookEvent(models.TextChoices):
    """What a webhook may be told about. TEST is sent by a manager's button and never chosen."""

    LABEL_SUBMITTED = "label.submitted", _("a label was submitted or changed")
    LABEL_WITHDRAWN = "label.withdrawn", _("a label was taken back")
    ITEM_SETTLED = "item.settled", _("an item was settled")
    ITEM_DISPUTED = "item.disputed", _("an item is disputed")
    PROJECT_STATE = "project.state", _("the project was opened, paused or closed")
    IMPORT_FINISHED = "import.finished", _("an import ended")
    EXPORT_FINISHED = "export.finished", _("an export ended")
    APPEAL_RAISED = "appeal.raised", _("an annotator raised an appeal")
    TEST = "test", _("a test")


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    DELIVERED = "delivered", _("delivered")
    FAILED = "failed", _("given up")
