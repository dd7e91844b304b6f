"""What the machines offer that runs are started on, as far as their workers said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from training import storage
from training.engine.config.load import Problem
from training.engine.config.preflight import Machine, this_machine
from training.models import Checkpoint, Device

SEEN = timedelta(minutes=3)  # a worker that was silent for longer may be gone


def machines() -> list[tuple[Machine, str]]:
    """Each machine once; beside it a sentence where no worker says what it offers."""
    fresh = Device.objects.filter(seen_at__gte=timezone.now() - SEEN).exclude(facts={})
    found = {device.host: machine_of(device.facts) for device in fresh}
    if found:
        return [(machine, "") for machine in found.values()]
    unseen = _("No worker for the queue “gpu” has been seen; this machine was looked at instead.")
    return [(this_machine(storage.folder()), unseen)]


def machine_of(facts: Mapping[str, Any]) -> Machine:
    """What a worker wrote down about its machine."""
    packages = frozenset(facts.get("packages", ()))
    return Machine(
        lambda name: name in packages,
        int(facts.get("gpus", 0)),
        float(facts.get("gpu_memory_gb", 0.0)),
        float(facts.get("free_disk_gb", math.inf)),
    )


def used_gb() -> float:
    """What the weights take that runs have saved and nobody removed."""
    kept = Checkpoint.objects.filter(removed_at=None).aggregate(size=Sum("size"))["size"] or 0
    return float(kept) / storage.GB


def storage_problems(needed_gb: float) -> list[Problem]:
    """The quota; free space is asked by the engine's own check."""
    used, quota = used_gb(), float(settings.PALATE_RUNS_QUOTA_GB)
    if used + needed_gb <= quota:
        return []
    message = _(
        "%(used).1f of %(quota).0f GB are used by checkpoints and %(needed).1f GB are needed. "
        "Remove some on the page of the storage."
    ) % {"used": used, "quota": quota, "needed": needed_gb}
    return [Problem("storage", message)]
