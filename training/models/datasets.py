"""Datasets and their rows. Texts stand apart, named by hash, so that they can be erased (V14)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from training.enums import DatasetState, Kind, Of, Source, Split
from webapp.catalog.models import Persona


class RowText(models.Model):
    """One row as canonical JSON, kept once however many datasets hold it. Erased, never changed."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    line = models.TextField()
    persona = models.ForeignKey(Persona, null=True, on_delete=models.PROTECT, related_name="+")


class Dataset(models.Model):
    """A saved filter; once frozen an immutable snapshot, named by `content_sha256`.

    `filter` is what `training.filters` reads. `counts` holds the mix (rows by split, stratum,
    language …, histograms, balance), `lineage` where the rows come from, `split_sha256` one hash
    per split. `report` says why a freeze was refused. `erased_rows` of a frozen dataset are gone
    since a consent was withdrawn; hashes stay.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    filter = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=DatasetState.choices, default="draft")
    content_sha256 = models.CharField(max_length=64, blank=True)
    split_sha256 = models.JSONField(default=dict)
    rows = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict)
    lineage = models.JSONField(default=dict)
    report = models.JSONField(default=dict)
    code_version = models.CharField(max_length=64, blank=True)
    erased_rows = models.PositiveIntegerField(default=0)
    marked_at = models.DateTimeField(null=True)

    stage = models.CharField(max_length=12, blank=True)  # collect, store, finish
    rows_done = models.PositiveIntegerField(default=0)
    rows_total = models.PositiveIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True)
    key = models.CharField(max_length=64, null=True, unique=True)  # a double click is one dataset
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    frozen_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                name="dataset_frozen_has_hash",
                condition=~Q(state="frozen")
                | (~Q(content_sha256="") & Q(frozen_at__isnull=False, rows__gt=0)),
            )
        ]

    def __str__(self) -> str:
        return self.name


class DatasetItem(models.Model):
    """A row of a dataset: the hash of its text, and what may be counted without reading it.

    `ref` says where it comes from ("item:12:quality", "slot:7:quality", "record:3").
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="items")
    row_sha256 = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64, db_index=True)
    persona = models.ForeignKey(Persona, null=True, on_delete=models.PROTECT, related_name="+")
    split = models.CharField(max_length=20, choices=Split.choices)
    source = models.CharField(max_length=12, choices=Source.choices)
    stratum = models.CharField(max_length=200, blank=True)
    synthetic = models.BooleanField(default=False)
    simulated = models.BooleanField(default=False)
    ref = models.CharField(max_length=80)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dataset", "row_sha256"], name="dataset_row_once")
        ]
        indexes = [models.Index(fields=["dataset", "split"], name="dataset_item_split")]


class SplitClaim(models.Model):
    """A prompt or persona belongs to one split, for ever. Append-only.

    Written when a dataset is frozen; unique, so that no two datasets can disagree (V11).
    """

    of = models.CharField(max_length=8, choices=Of.choices)
    key = models.CharField(max_length=64)  # hash of the prompt, or id of the persona
    split = models.CharField(max_length=20, choices=Split.choices)
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="claims")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["of", "key"], name="split_claimed_once")]
