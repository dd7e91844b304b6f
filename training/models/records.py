"""Imported rows: instructions, tool traces and counter-examples."""

from __future__ import annotations

from django.db import models

from training.enums import Kind
from webapp.catalog.models import ImportRun, Persona


class Record(models.Model):
    """An imported row that datasets may take. Its text is a `RowText`; the same row is kept once.

    `synthetic`: the file says that a program wrote it.
    """

    imported_in = models.ForeignKey(ImportRun, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    row_sha256 = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    persona = models.ForeignKey(Persona, null=True, on_delete=models.PROTECT, related_name="+")
    language = models.CharField(max_length=16, blank=True)
    category = models.CharField(max_length=64, blank=True)
    synthetic = models.BooleanField(default=False)
    line = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "row_sha256"], name="record_once")]
