"""The nouns that every domain names: personas, prompts, contestants, answers.

Texts that consent may take back stand in rows of their own, apart from the hashed rows (V14).
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from webapp.catalog.enums import ContestantKind, FinishReason, ImportState, Split, Where


def public_id() -> str:
    """A random id that tells nothing about order or origin (128 bits)."""
    return secrets.token_hex(16)


class Persona(models.Model):
    """A pseudonymous end user with allow-listed features, e.g. {"expertise": "novice"}."""

    pseudonym = models.CharField(_("pseudonym"), max_length=64, unique=True)
    features = models.JSONField(_("features"), default=dict, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="personas",
        verbose_name=_("owner"),
    )
    consent_at = models.DateTimeField(_("consent given"), null=True, blank=True)
    consent_scope = models.CharField(_("scope of consent"), max_length=100, blank=True)
    withdrawn_at = models.DateTimeField(_("consent withdrawn"), null=True, blank=True)
    split = models.CharField(max_length=16, choices=Split.choices, default=Split.NONE, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pseudonym"]

    def __str__(self) -> str:
        return self.pseudonym


class PersonaVersion(models.Model):
    """One immutable state of a persona's summary. Append-only."""

    persona = models.ForeignKey(Persona, on_delete=models.PROTECT, related_name="versions")
    n = models.PositiveIntegerField()
    summary_sha256 = models.CharField(max_length=64)
    source = models.CharField(max_length=16, default="authored")
    reason = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["persona_id", "-n"]
        constraints = [models.UniqueConstraint(fields=["persona", "n"], name="persona_version_n")]

    def __str__(self) -> str:
        return f"{self.persona_id} v{self.n}"


class PersonaText(models.Model):
    """The summary of a version: at most 100 characters; erased when consent is withdrawn."""

    version = models.OneToOneField(
        PersonaVersion, primary_key=True, on_delete=models.PROTECT, related_name="text"
    )
    summary = models.CharField(max_length=400)


class Prompt(models.Model):
    """A question: a conversation `[{"role", "content"}, …]` whose last turn is the user's."""

    messages = models.JSONField(_("messages"))
    text_hash = models.CharField(max_length=64, unique=True)
    category = models.CharField(_("category"), max_length=64, blank=True, db_index=True)
    language = models.CharField(_("language"), max_length=16, blank=True, db_index=True)
    source = models.CharField(_("source"), max_length=16, default="authored")
    split = models.CharField(max_length=16, choices=Split.choices, default=Split.NONE, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return str(self.messages[-1]["content"])[:80] if self.messages else ""


class Contestant(models.Model):
    """A model version with its sampling settings; frozen once it has answers."""

    name = models.CharField(_("name"), max_length=120)
    version = models.CharField(_("version"), max_length=64, blank=True)
    kind = models.CharField(
        _("kind"), max_length=16, choices=ContestantKind.choices, default=ContestantKind.IMPORTED
    )
    vendor = models.CharField(_("vendor"), max_length=64, blank=True)
    system_prompt = models.TextField(_("system prompt template"), blank=True)
    uses_persona = models.BooleanField(_("sees the persona summary"), default=False)
    sampling = models.JSONField(_("sampling settings"), default=dict, blank=True)
    endpoint = models.JSONField(_("endpoint"), default=dict, blank=True)
    provenance = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "version"]
        constraints = [models.UniqueConstraint(fields=["name", "version"], name="contestant_name")]

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class ImportRun(models.Model):
    """One import of a file: what was asked, how far it got, what came of it.

    `kind` names the importer, `subject` what it imports into (an id that it knows), `options` how
    the file is read.
    """

    kind = models.CharField(max_length=16, default="answers")
    subject = models.PositiveBigIntegerField(null=True)
    options = models.JSONField(default=dict)
    format = models.CharField(max_length=24)
    file_name = models.CharField(max_length=200)
    path = models.CharField(max_length=500)
    size = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    dry_run = models.BooleanField(default=False)
    state = models.CharField(
        max_length=16, choices=ImportState.choices, default=ImportState.UPLOADED
    )
    bytes_done = models.PositiveBigIntegerField(default=0)
    rows_done = models.PositiveBigIntegerField(default=0)  # resume here
    added = models.PositiveBigIntegerField(default=0)
    known = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    report = models.JSONField(default=dict)  # counts per contestant, first refusals
    message = models.CharField(max_length=300, blank=True)
    # Sent by the form: a double click finds the run that the first click made.
    key = models.CharField(max_length=64, null=True, unique=True)
    heartbeat_at = models.DateTimeField(null=True)
    # How many processes in a row were lost after the same row.
    lost = models.PositiveSmallIntegerField(default=0)
    lost_at = models.PositiveBigIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["kind", "subject", "-created_at"], name="import_of")]


class Answer(models.Model):
    """What a contestant answered in one context; append-only, its text in `AnswerText`.

    The key (contestant, prompt, persona_version, draw) is shared by import, generation and rounds.
    """

    contestant = models.ForeignKey(Contestant, on_delete=models.PROTECT, related_name="answers")
    prompt = models.ForeignKey(Prompt, on_delete=models.PROTECT, related_name="answers")
    persona_version = models.ForeignKey(
        PersonaVersion, null=True, on_delete=models.PROTECT, related_name="answers"
    )
    draw = models.PositiveIntegerField(default=0)
    text_sha256 = models.CharField(max_length=64, db_index=True)
    finish_reason = models.CharField(
        max_length=16, choices=FinishReason.choices, default=FinishReason.UNKNOWN, blank=True
    )
    features = models.JSONField(default=dict)  # style: see texts.style_features
    public_id = models.CharField(max_length=32, unique=True, default=public_id)
    imported_in = models.ForeignKey(
        ImportRun, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["contestant", "prompt", "persona_version", "draw"],
                condition=Q(persona_version__isnull=False),
                name="answer_slot",
            ),
            models.UniqueConstraint(
                fields=["contestant", "prompt", "draw"],
                condition=Q(persona_version__isnull=True),
                name="answer_slot_without_persona",
            ),
        ]


class AnswerText(models.Model):
    """The text of an answer. May be erased, never changed."""

    answer = models.OneToOneField(
        Answer, primary_key=True, on_delete=models.PROTECT, related_name="body"
    )
    text = models.TextField()


class AnswerCost(models.Model):
    """What it took to make an answer here; shown once its round is unsealed. Append-only.

    Tokens as the source counts them, None where it does not; `milliseconds` of the call that
    succeeded; `tries` with those that failed.
    """

    answer = models.OneToOneField(
        Answer, primary_key=True, on_delete=models.PROTECT, related_name="cost"
    )
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    milliseconds = models.PositiveIntegerField()
    tries = models.PositiveIntegerField(default=1)


class Exposure(models.Model):
    """A person met an answer. Append-only; who met it otherwise than by voting never judges it."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="exposures"
    )
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="exposures")
    where = models.CharField(max_length=16, choices=Where.choices)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "answer", "where"], name="exposure_once")
        ]


class Seal(models.Model):
    """The answer belongs to one sealed round (`holder`, e.g. "round:7") until `released_at`.

    One row per answer, for ever: a published mapping would unblind its return.
    """

    answer = models.OneToOneField(Answer, on_delete=models.PROTECT, related_name="seal")
    holder = models.CharField(max_length=64, db_index=True)
    sealed_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True)
