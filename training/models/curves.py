"""What a run said: metric lines, events, alerts, samples, checkpoints. Append-only.

A line is known by its place in the file of the run directory, so that reading a file again adds
nothing. After a resume a step may come again: the later line counts.
"""

from __future__ import annotations

from django.db import models

from training.models.runs import TrainingRun


class MetricLine(models.Model):
    """One line of metrics.jsonl: values by name; what was no number is null."""

    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="metrics")
    offset = models.PositiveBigIntegerField()
    step = models.PositiveIntegerField()
    stage = models.CharField(max_length=40, blank=True)
    at = models.DateTimeField()
    values = models.JSONField()

    class Meta:
        ordering = ["offset"]
        constraints = [models.UniqueConstraint(fields=["run", "offset"], name="metric_line_once")]


class RunEvent(models.Model):
    """One line of events.jsonl."""

    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="events")
    offset = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=40)
    at = models.DateTimeField()
    facts = models.JSONField(default=dict)

    class Meta:
        ordering = ["offset"]
        constraints = [models.UniqueConstraint(fields=["run", "offset"], name="run_event_once")]


class Alert(models.Model):
    """What a rule found: the evidence, and the change of settings that it proposes.

    `evidence` holds message, curves, window, numbers, advice; `changes` dotted settings.
    """

    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="alerts")
    rule = models.CharField(max_length=40)
    step = models.PositiveIntegerField()
    severity = models.CharField(max_length=10, default="warning")
    evidence = models.JSONField(default=dict)
    changes = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        ordering = ["step", "pk"]
        constraints = [models.UniqueConstraint(fields=["run", "rule", "step"], name="alert_once")]


class SampleLine(models.Model):
    """Where a completion stands in samples.jsonl; its text stays in the run directory."""

    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="samples")
    offset = models.PositiveBigIntegerField()
    step = models.PositiveIntegerField()
    evaluation = models.BooleanField(default=False)

    class Meta:
        ordering = ["offset"]
        constraints = [models.UniqueConstraint(fields=["run", "offset"], name="sample_line_once")]
        indexes = [models.Index(fields=["run", "step"], name="sample_of_step")]


class Checkpoint(models.Model):
    """Saved weights of a run. `path` lies in its directory; the files may be removed, not the row.

    `final`: what the run made at its end. `sha256` names the weights.
    """

    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="checkpoints")
    step = models.PositiveIntegerField()
    path = models.CharField(max_length=120)
    sha256 = models.CharField(max_length=64, blank=True)
    size = models.PositiveBigIntegerField(default=0)  # bytes
    final = models.BooleanField(default=False)
    at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["run", "step", "pk"]
        constraints = [models.UniqueConstraint(fields=["run", "path"], name="checkpoint_once")]
