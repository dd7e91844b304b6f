"""Words for what runs report: reasons of failures, checks of the gate, stages, events."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

REASONS: dict[str, Any] = {
    "nonfinite": _("The loss or a gradient became infinite or undefined."),
    "disk_full": _("The disk of the training machine is full."),
    "out_of_memory": _("The memory of the training machine did not suffice."),
    "reward_model": _("A reward model may not be used: it failed its gate."),
    "data": _("The rows of a dataset could not be read."),
    "config": _("The settings were refused."),
    "error": _("The training program ended with an error."),
    "killed": _("The training process was killed."),
    "lost": _("The training process is gone."),
    "hang": _("The training process gave no sign of life."),
    "no_start": _("The training process did not start."),
}
CHECKS: dict[str, tuple[Any, Any]] = {
    "accuracy": (_("Accuracy"), _("held-out pairs in the right order")),
    "calibration": (_("Calibration"), _("how far its certainty is from how often it is right")),
    "length": (_("Length"), _("how much the value follows the length of the answer")),
    "jitter": (_("Jitter"), _("how much a value changes with the company in its batch")),
    "swap": (
        _("Swap"), _("same answers, opposite personas: share with the opposite order")),
}  # fmt: skip
STAGES: dict[str, Any] = {
    "checking": _("checking the settings"),
    "loading": _("loading the model"),
    "sft": _("training"),
    "grpo": _("training"),
    "eval": _("evaluating"),
    "evaluate": _("evaluating"),
    "quantize": _("quantising and measuring"),
    "predict": _("scoring answers"),
    "probe": _("asking the probes"),
    "gate": _("measuring the gate"),
}
EVENTS: dict[str, Any] = {
    "started": _("The process started."),
    "checkpoint": _("A checkpoint was saved."),
    "stopping": _("It was asked to stop and saved a checkpoint."),
    "dropped_prompts": _("Prompts that are too long were left out."),
    "forced": _("Reward models that failed their gate were used all the same."),
    "rules": _("The rules were proved on answers of known worth."),
    "gate": _("The gate was measured."),
    "phrases": _("Phrases were found that became frequent while they paid."),
    "quantised": _("The weights were rounded and measured."),
    "adapted": _("The adapter was compared with its base."),
    "finished": _("It ended."),
}
BADGES = {
    "starting": "info", "running": "info", "stopping": "warn", "succeeded": "ok", "failed": "err",
}  # fmt: skip
DEFECTS: dict[str, Any] = {
    "garbled": _("garbled"),
    "ritual": _("ritual phrase"),
    "shuffled": _("shuffled"),
    "stuttered": _("stuttered"),
    "truncated": _("truncated"),
    "vague": _("vague"),
    "wrong action": _("wrong action"),
    "wrong fact": _("wrong fact"),
    "wrong tool": _("wrong fact"),
}


def reason_of(reason: str) -> str:
    return str(REASONS.get(reason, reason))


def stage_of(stage: str) -> str:
    """What the process does now, in words."""
    head, _slash, tail = stage.partition("/")
    if head == "members" and tail:
        return gettext("training member %(n)s") % {"n": tail}
    if head == "auditors" and tail:
        return gettext("training the held-out model %(n)s") % {"n": tail}
    return str(STAGES.get(stage, stage))


def check_of(name: str) -> tuple[str, str]:
    """A check of the gate: its name, and what it measures."""
    if name.startswith("probe: "):
        return gettext("Probe: %(defect)s") % {"defect": defect_of(name[7:])}, gettext(
            "share of broken answers that it sees"
        )
    title, said = CHECKS.get(name, (name, ""))
    return str(title), str(said)


def defect_of(name: str) -> str:
    return str(DEFECTS.get(name, name))
