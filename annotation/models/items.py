"""Items: pairs of answers to label. Producers stand in a table of their own (V8)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from annotation.enums import ItemKind, ItemState
from annotation.models.projects import Project
from webapp.catalog.models import Answer, ImportRun, PersonaVersion, Prompt, public_id


class Item(models.Model):
    """A pair in a project's queue.

    `target` labels are wanted, `live` are leased or submitted, `done` submitted; what is late and
    finds no place is kept beyond them. The queue goes by `priority`, then by `shuffle_key`, a hash
    of seed and content. `content_sha256` covers prompt, persona version and both texts, whichever
    comes first.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="items")
    public_id = models.CharField(max_length=32, unique=True, default=public_id)
    content_sha256 = models.CharField(max_length=64)
    prompt = models.ForeignKey(Prompt, on_delete=models.PROTECT, related_name="+")
    persona_version = models.ForeignKey(
        PersonaVersion, null=True, on_delete=models.PROTECT, related_name="items"
    )
    first_sha256 = models.CharField(max_length=64)
    second_sha256 = models.CharField(max_length=64)
    first_answer = models.ForeignKey(Answer, null=True, on_delete=models.PROTECT, related_name="+")
    second_answer = models.ForeignKey(Answer, null=True, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=ItemKind.choices, default=ItemKind.IMPORTED)
    synthetic = models.BooleanField(default=False)
    stratum = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=12, choices=ItemState.choices, default=ItemState.OPEN)
    flags = models.JSONField(default=list)
    target = models.PositiveSmallIntegerField()
    live = models.PositiveSmallIntegerField(default=0)
    done = models.PositiveSmallIntegerField(default=0)
    priority = models.SmallIntegerField(default=0)
    shuffle_key = models.BigIntegerField()
    quality_decision = models.ForeignKey(
        "Decision", null=True, on_delete=models.PROTECT, related_name="+"
    )
    personalization_decision = models.ForeignKey(
        "Decision", null=True, on_delete=models.PROTECT, related_name="+"
    )
    source = models.CharField(max_length=200, blank=True)  # e.g. "pairs.jsonl:12"
    imported_in = models.ForeignKey(
        ImportRun, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "content_sha256"], name="item_once"),
            models.CheckConstraint(
                name="item_slots",
                condition=Q(done__lte=F("live")) & Q(live__lte=F("target")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["project", "-priority", "shuffle_key"],
                name="item_queue",
                condition=Q(state="open", live__lt=F("target")),
            ),
            models.Index(
                fields=["project", "shuffle_key"], name="item_gold", condition=Q(state="gold")
            ),
            models.Index(fields=["project", "state", "stratum"], name="item_states"),
            models.Index(
                fields=["project"],
                name="item_ready",
                condition=Q(state="open", done__gte=F("target")),
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class ItemText(models.Model):
    """The two answers of an item. May be erased, never changed."""

    item = models.OneToOneField(
        Item, primary_key=True, on_delete=models.PROTECT, related_name="body"
    )
    first = models.TextField()
    second = models.TextField()


class ItemOrigin(models.Model):
    """Who made the answers and what else the source said. Never read for an annotator's page."""

    item = models.OneToOneField(
        Item, primary_key=True, on_delete=models.PROTECT, related_name="origin"
    )
    first_producer = models.CharField(max_length=200, blank=True)
    second_producer = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict)


class GoldItem(models.Model):
    """A known answer, one row per correction (append-only); the highest `n` holds.

    An axis without verdict is not checked. `onboarding` items teach with feedback and stay out of
    the hidden ones. `active` False takes an item out of use.
    """

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="gold")
    n = models.PositiveIntegerField()
    quality = models.CharField(max_length=8, blank=True)
    personalization = models.CharField(max_length=8, blank=True)
    explanation = models.TextField(blank=True)
    onboarding = models.BooleanField(default=False)
    active = models.BooleanField(default=True)
    reason = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "n"], name="gold_item_n")]
