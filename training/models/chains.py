"""Chains: what trains anew by itself, how far each time got, and what it made."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from arena.models import Round
from training.enums import ChainStage, ChainState, StepState
from training.models.datasets import Dataset
from training.models.gates import GateRun
from training.models.runs import TrainingRun
from webapp.catalog.models import Contestant


class Chain(models.Model):
    """What is done anew, in whose name, and when.

    `arrows` by the stage into which they lead: off, ask, on; one that is missing is off. `hour` is
    the hour of the local day at which it begins, or nothing. `recipe` is what
    `training.services.chain_recipes` reads. What it starts is made in the name of `enabled_by`, who
    set the arrows and the hour last; hours before `enabled_at` do not count.
    """

    name = models.CharField(_("name"), max_length=60, unique=True)
    hour = models.PositiveSmallIntegerField(null=True)
    arrows = models.JSONField(default=dict)
    recipe = models.JSONField(default=dict)
    key = models.CharField(max_length=64, null=True, unique=True)  # a double click is one chain
    enabled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    enabled_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="chain_hour_of_a_day", condition=Q(hour__isnull=True) | Q(hour__lt=24)
            )
        ]

    def __str__(self) -> str:
        return self.name


class ChainRun(models.Model):
    """One time that a chain ran, with the recipe that it began with.

    `night` is the local date that it began for; nothing where somebody began it by hand. `reason`
    says why it waits or ended: ask, audit, off, same, complete, step, actor; `stage` where it
    stands.
    """

    chain = models.ForeignKey(Chain, on_delete=models.PROTECT, related_name="runs")
    number = models.PositiveIntegerField()
    night = models.DateField(null=True)
    key = models.CharField(max_length=64, null=True, unique=True)
    recipe = models.JSONField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, choices=ChainState.choices, default=ChainState.RUNNING)
    stage = models.CharField(max_length=12, choices=ChainStage.choices, blank=True)
    reason = models.CharField(max_length=12, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["chain", "number"], name="chain_run_number_once"),
            models.UniqueConstraint(fields=["chain", "night"], name="chain_run_night_once"),
            models.UniqueConstraint(
                fields=["chain"],
                condition=Q(state__in=("running", "waiting")),
                name="chain_runs_one_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chain} {self.number}"


class ChainStep(models.Model):
    """One stage of one run. `let_by` let it go on where its arrow asks.

    `attempt` counts how often a person had it tried again, `repeats` how often the chain itself
    took up what a killed process had left.
    """

    chain_run = models.ForeignKey(ChainRun, on_delete=models.PROTECT, related_name="steps")
    stage = models.CharField(max_length=12, choices=ChainStage.choices)
    state = models.CharField(max_length=10, choices=StepState.choices, default=StepState.PENDING)
    attempt = models.PositiveSmallIntegerField(default=0)
    repeats = models.PositiveSmallIntegerField(default=0)
    message = models.TextField(blank=True)
    let_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    let_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["chain_run", "stage"], name="chain_stage_once")
        ]


class ChainLink(models.Model):
    """What a stage made, by its name within the stage. Append-only.

    The newest attempt of a name counts; earlier ones were given up.
    """

    step = models.ForeignKey(ChainStep, on_delete=models.PROTECT, related_name="links")
    name = models.CharField(max_length=20)
    attempt = models.PositiveSmallIntegerField(default=0)
    dataset = models.ForeignKey(
        Dataset, null=True, on_delete=models.PROTECT, related_name="chain_links"
    )
    run = models.ForeignKey(
        TrainingRun, null=True, on_delete=models.PROTECT, related_name="chain_links"
    )
    gate = models.ForeignKey(
        GateRun, null=True, on_delete=models.PROTECT, related_name="chain_links"
    )
    contestant = models.ForeignKey(
        Contestant, null=True, on_delete=models.PROTECT, related_name="chain_links"
    )
    round = models.ForeignKey(
        Round, null=True, on_delete=models.PROTECT, related_name="chain_links"
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["step", "name", "attempt"], name="chain_link_once"),
            models.CheckConstraint(
                name="chain_link_has_end",
                condition=Q(dataset__isnull=False)
                | Q(run__isnull=False)
                | Q(gate__isnull=False)
                | Q(contestant__isnull=False)
                | Q(round__isnull=False),
            ),
        ]
