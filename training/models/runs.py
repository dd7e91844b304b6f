"""Runs: one execution of the engine, its inputs, and the device that it holds."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from training.enums import Role, RunKind, RunState
from training.models.datasets import Dataset


class TrainingRun(models.Model):
    """What was asked, where it stands, what came of it.

    `config` is what differs from the preset, without paths: data, base and reward models are
    inputs. `config_sha256` names the resolved settings and the hashes of all inputs. `directory`
    lies under the storage of runs. `attempts` counts the starts of the process; `stop` says what
    was asked of a running one. `offsets` is how far each file of the directory was read.
    `changes` are the settings that a failure proposes to change.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    kind = models.CharField(_("kind"), max_length=16, choices=RunKind.choices)
    preset = models.CharField(_("preset"), max_length=40)
    config = models.JSONField(default=dict)
    config_sha256 = models.CharField(max_length=64)
    seed = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=12, choices=RunState.choices, default=RunState.QUEUED)
    key = models.CharField(max_length=64, null=True, unique=True)  # a double click is one run
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="clones")
    from_alert = models.ForeignKey(
        "Alert", null=True, on_delete=models.PROTECT, related_name="clones"
    )
    note = models.TextField(_("note"), blank=True)
    pinned = models.BooleanField(default=False)

    directory = models.CharField(max_length=80, unique=True)
    attempts = models.PositiveIntegerField(default=0)
    host = models.CharField(max_length=120, blank=True)
    pid = models.PositiveIntegerField(null=True)
    stop = models.CharField(max_length=8, blank=True)  # "" or "cancel"
    stop_at = models.DateTimeField(null=True)
    offsets = models.JSONField(default=dict)

    stage = models.CharField(max_length=40, blank=True)
    step = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)  # planned; 0: not known
    reason = models.CharField(max_length=40, blank=True)
    message = models.TextField(blank=True)
    changes = models.JSONField(default=dict)
    log_tail = models.TextField(blank=True)
    manifest = models.JSONField(default=dict)

    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    first_metric_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state", "queued_at"], name="run_queue")]

    def __str__(self) -> str:
        return self.name


class RunInput(models.Model):
    """One input of a run: a split of a frozen dataset, or what another run made. Append-only.

    `sha256` names the rows of the split, or the weights of the other run.
    """

    run = models.ForeignKey(TrainingRun, on_delete=models.PROTECT, related_name="inputs")
    role = models.CharField(max_length=16, choices=Role.choices)
    dataset = models.ForeignKey(
        Dataset, null=True, on_delete=models.PROTECT, related_name="used_by"
    )
    split = models.CharField(max_length=20, blank=True)
    source = models.ForeignKey(
        TrainingRun, null=True, on_delete=models.PROTECT, related_name="used_by"
    )
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "role"], name="run_input_once"),
            models.CheckConstraint(
                name="run_input_one_origin",
                condition=Q(dataset__isnull=False, source__isnull=True)
                | Q(dataset__isnull=True, source__isnull=False),
            ),
        ]


class Device(models.Model):
    """A device that runs take one at a time: the lease is the row (G23).

    `facts` is what the machine said about itself when its worker was last seen: packages, gpus,
    gpu_memory_gb, free_disk_gb.
    """

    name = models.CharField(max_length=40, unique=True)
    run = models.OneToOneField(
        TrainingRun, null=True, on_delete=models.PROTECT, related_name="device"
    )
    taken_at = models.DateTimeField(null=True)
    host = models.CharField(max_length=120, blank=True)
    facts = models.JSONField(default=dict)
    seen_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
