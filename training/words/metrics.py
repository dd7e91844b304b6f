"""Names of metrics in the reader's language, and how the run page groups them.

A metric that is not known here is shown under its own name, in the last group: nothing that a run
logs is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from training.engine.monitor import history as h

NAMES: dict[str, Any] = {
    h.REWARD: _("reward, with the weights of its step"),
    h.REFERENCE: _("reference reward, fixed weights"),
    "reward_std": _("spread of the reward"),
    h.KL: _("KL to the model at the start"),
    h.LENGTH: _("length of answers"),
    "length/max": _("longest answer"),
    h.PROMPT_LENGTH: _("length of prompts"),
    h.CLIPPED: _("share of answers cut off"),
    h.QUALITY: _("quality"),
    h.PERSONALIZATION: _("personalization"),
    h.REDUNDANCY: _("redundancy"),
    "parts/judge": _("judge"),
    h.PARTS_CORRELATION: _("correlation of quality and personalization within groups"),
    "alpha": _("share of quality, α"),
    "weight/quality": _("effective weight of quality"),
    "weight/personalization": _("effective weight of personalization"),
    "weight/redundancy": _("effective weight of redundancy"),
    h.AUDITOR_QUALITY: _("quality, by a model held out"),
    h.AUDITOR_PERSONALIZATION: _("personalization, by a model held out"),
    h.SPREAD_QUALITY: _("quality: spread of the reward models"),
    h.SPREAD_PERSONALIZATION: _("personalization: spread of the reward models"),
    h.AUDIT_RULES: _("rules"),
    "audit/match": _("answers in the style that the persona wants (truth of the toy)"),
    "audit/quality": _("quality (truth of the toy)"),
    "audit/goal": _("rules: goal"),
    "audit/completeness": _("rules: completeness"),
    "audit/arguments": _("rules: arguments"),
    "audit/efficiency": _("rules: efficiency"),
    "audit/coherence": _("rules: coherence"),
    h.PROBES: _("probes: share in which the good answer is likelier"),
    h.PROBE_MARGIN: _("probes: margin of the good answer"),
    h.PROBE_SWAP: _("two people would get the answers that suit them"),
    h.SENSITIVITY: _("difference between what two people are told"),
    h.ENTROPY: _("entropy"),
    h.ZERO_SPREAD: _("share of groups without spread"),
    h.UNSCORED: _("share of answers without a score"),
    h.DISTINCT: _("share of answers that differ"),
    h.GRAD_NORM: _("norm of the gradient"),
    h.STEP_TIME: _("time of a step"),
    h.TOKENS_PER_SECOND: _("tokens per second"),
    h.SUCCESS: _("success"),
    h.INVALID: _("invalid actions"),
    h.TOOL_RATE: _("correct tool calls"),
    h.EPISODE_STEPS: _("steps of an episode"),
    "loss": _("loss"),
    "policy_loss": _("loss of the policy"),
    "learning_rate": _("learning rate"),
    "tokens": _("tokens so far"),
    "token_accuracy": _("share of tokens predicted"),
    "eval_loss": _("loss on held-out rows"),
    "eval_mean_token_accuracy": _("share of held-out tokens predicted"),
    "accuracy": _("pairs in the right order"),
    "eval_accuracy": _("held-out pairs in the right order"),
    "margin": _("margin between the two answers"),
    "eval_margin": _("margin on held-out pairs"),
}
UNITS: dict[str, Any] = {
    h.KL: _("k3 estimate, nats per token"),
    h.LENGTH: _("tokens"),
    "length/max": _("tokens"),
    h.PROMPT_LENGTH: _("characters"),
    h.SENSITIVITY: _("bits"),
    h.ENTROPY: _("nats per token"),
    h.PROBE_MARGIN: _("nats per token"),
    h.STEP_TIME: _("seconds"),
}
PINNED_TITLE = _("Main curves")
EVAL_TITLE = _("Held-out prompts")
OTHERS_TITLE = _("Other curves")
MEMBERS = ("members/", "auditors/")
# Many curves that nobody needs to see beside others of the same kind.
HIDDEN = (
    "clip_ratio/", "completions/", "entropy_coef", "tokens", "eval_runtime", "eval_samples_per",
    "eval_steps_per", "eval_num_tokens", "eval_model_prep",
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Charts that stand together; a chart holds one curve or several of one unit."""

    name: str
    title: Any
    charts: tuple[tuple[str, ...], ...]


GROUPS: tuple[Group, ...] = (
    Group("parts", _("Parts of the reward"), (
        (h.QUALITY, h.PERSONALIZATION, "parts/judge"), (h.REDUNDANCY,), ("alpha",),
        ("weight/quality", "weight/personalization", "weight/redundancy"),
        (h.PARTS_CORRELATION,), ("reward_std",),
    )),
    Group("watch", _("What watches and gives no reward"), (
        (h.QUALITY, h.AUDITOR_QUALITY), (h.PERSONALIZATION, h.AUDITOR_PERSONALIZATION),
        (h.SPREAD_QUALITY, h.SPREAD_PERSONALIZATION), (h.AUDIT_RULES,),
        ("audit/match", "audit/quality"), (h.PROBES,), (h.PROBE_MARGIN,), (h.PROBE_SWAP,),
        (h.SENSITIVITY,),
    )),
    Group("policy", _("The policy"), (
        (h.ENTROPY,), (h.CLIPPED,), (h.ZERO_SPREAD,), (h.DISTINCT,), (h.UNSCORED,),
        ("length/max",), (h.PROMPT_LENGTH,), (h.SUCCESS,), (h.TOOL_RATE,), (h.INVALID,),
        (h.EPISODE_STEPS,),
    )),
    Group("machine", _("Optimizer and machine"), (
        ("loss",), (h.GRAD_NORM,), ("learning_rate",), (h.STEP_TIME,), (h.TOKENS_PER_SECOND,),
        ("token_accuracy",), ("eval_loss",), ("eval_mean_token_accuracy",),
    )),
)  # fmt: skip
# Of the members of a reward model: one chart each, a curve per member.
MEMBER_PINNED = ("loss", "eval_accuracy", "eval_margin")
MEMBER_CHARTS = (
    "accuracy", "margin", "eval_loss", "grad_norm", "learning_rate", "tokens_per_second",
    "step_time",
)  # fmt: skip


def metric_name(name: str) -> str:
    """The name for people; of what is not known, as the run wrote it."""
    if name in NAMES:
        return str(NAMES[name])
    head, _slash, tail = name.partition("/")
    if head == "eval" and tail:
        return metric_name(tail)
    if head == "probe":
        return gettext("probe: %(defect)s") % {"defect": tail}
    if head == "members" and "/" not in tail:
        return gettext("member %(n)s") % {"n": tail}
    if head == "auditors" and "/" not in tail:
        return gettext("held out %(n)s") % {"n": tail}
    return name


def scored_name(name: str) -> str:
    """A scorer of an evaluation, or one of its values: quality, quality/auditors, truth/match."""
    scorer, _slash, part = name.partition("/")
    if f"auditor/{scorer}" in NAMES:
        return metric_name(f"{'auditor' if part == 'auditors' else 'parts'}/{scorer}")
    found = metric_name(f"audit/{part or scorer}")
    return name if found.startswith("audit/") else found


def unit(name: str) -> str:
    return str(UNITS.get(name, ""))


def hidden(name: str) -> bool:
    return name == "tokens" or (name.startswith(HIDDEN) and name not in NAMES)
