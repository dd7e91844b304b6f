"""The configuration of a run as dataclasses: every key a preset or a form may set.

`python -m training.engine presets` prints the presets; `config.load` fills these classes and
refuses what they do not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS = ("sft", "reward_model", "grpo", "evaluate", "predict", "quantize")
BRANCHES = ("quality", "personalization")


@dataclass(frozen=True)
class Hardware:
    device: str = "cpu"  # cpu, gpu
    processes: int = 1  # one per GPU
    memory_gb: float = 0.0  # needed per device; 0: not checked
    disk_gb: float = 1.0  # free space that must be there at the start
    threads: int = 1  # of torch on the CPU; 0: torch decides
    packages: tuple[str, ...] = ()  # needed beyond torch, transformers and trl


@dataclass(frozen=True)
class Scratch:
    """A model made here, for tests and for seeing the whole loop in minutes."""

    hidden: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    intermediate: int = 256
    vocabulary: int = 450
    initializer_range: float = 0.08  # with 0.02 so small a model stays on a plateau


@dataclass(frozen=True)
class Lora:
    rank: int = 16
    alpha: int = 32
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclass(frozen=True)
class Model:
    path: str = ""  # a folder, or a name that the model store knows
    package: str = ""  # a Python package that carries the weights
    scratch: Scratch | None = None  # made here when path and package are empty
    dtype: str = "float32"  # float32, bfloat16
    lora: Lora | None = None


@dataclass(frozen=True)
class Data:
    """Snapshots beside config.json, and the SHA-256 that each must have ("" : not checked)."""

    train: str = "data/train.jsonl"
    heldout: str = "data/heldout.jsonl"
    gate: str = ""  # pairs of the reward-model gate
    probes: str = ""  # good and bad answers by kind of defect: for the gate, and for the policy
    labelled: str = ""  # answers of known worth, on which rules are proved
    swaps: str = ""  # two answers, two personas that want the opposite
    edges: str = ""  # prompts of edge cases, asked besides those of the gate
    answers: str = ""  # answers that were given elsewhere, for a prediction
    persona_turns: int = 0  # turns that a dialogue keeps its persona summary; 0: as frozen
    sha256: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sft:
    epochs: float = 2.0
    max_steps: int = -1
    batch: int = 32
    accumulation: int = 1
    learning_rate: float = 2e-3
    scheduler: str = "cosine"
    warmup_steps: int = 10
    max_length: int = 256
    max_grad_norm: float = 1.0
    save_every: int = 0  # 0: at the end and when stopped


@dataclass(frozen=True)
class RewardModel:
    branch: str = "quality"
    members: int = 3  # seeds × data folds, averaged
    auditors: int = 1  # trained alike, never used as reward: they watch the policy
    folds: int = 4  # each member leaves one fold out
    max_steps: int = 160
    eval_every: int = 20
    stop_accuracy: float = 0.97  # on the member's left-out fold; 1.01: never stop early
    batch: int = 32
    accumulation: int = 1
    learning_rate: float = 1e-3
    scheduler: str = "constant"
    warmup_steps: int = 0
    center: float = 0.01  # pull of the mean logit to 0
    max_length: int = 256
    max_grad_norm: float = 1.0


@dataclass(frozen=True)
class Gate:
    """Limits of the reward-model gate. A model that fails is not used as a reward."""

    accuracy: float = 0.95
    calibration_error: float = 0.1
    swap: float = 0.9  # personalization only
    length_correlation: float = 0.6
    jitter: float = 1e-4
    probe: float = 0.9  # of every kind of defect
    rules: float = 0.9  # how surely rules tell right answers from wrong ones (AUC)


@dataclass(frozen=True)
class Grpo:
    steps: int = 100
    batch: int = 64  # completions per device and pass
    accumulation: int = 1
    group: int = 8  # completions of one prompt
    learning_rate: float = 3e-4
    scheduler: str = "constant"
    warmup_steps: int = 0
    beta: float = 0.04  # 0: no reference model and no KL
    temperature: float = 0.9
    max_prompt: int = 128  # longer prompts are left out before the start, and counted
    max_completion: int = 40
    entropy: float = 0.0
    loss: str = "dapo"
    scale: str = "group"  # group, batch, none
    max_grad_norm: float = 1.0
    save_every: int = 25
    keep_checkpoints: int = 2
    keep_at: tuple[float, ...] = (0.5,)  # progress at which weights are kept for good
    gate: str = ""  # name of a gate of the site: start, middle and end go through it at the end
    evaluate_at: tuple[float, ...] = (0.0, 0.5, 1.0)  # progress
    evaluate_prompts: int = 64
    evaluate_samples: int = 1  # answers to each
    probe_every: int = 10  # steps between questions to the policy itself; 0: never
    probe_rows: int = 60  # of data.probes and of data.swaps
    samples_per_step: int = 8  # completions written to samples.jsonl
    sampler: str = "transformers"  # transformers, vllm
    vllm_mode: str = "colocate"  # colocate, server
    vllm_memory: float = 0.3
    vllm_server: str = ""  # address in server mode


@dataclass(frozen=True)
class Evaluate:
    """A model answers the prompts of data.gate; scorers judge, nothing is trained."""

    scorers: tuple[str, ...] = ()  # of quality, personalization, …/auditors, rules, judge
    draws: int = 1  # answers to each prompt
    batch: int = 32  # answers at once
    temperature: float = 0.9  # 0: greedy
    max_completion: int = 512
    edges: tuple[str, ...] = ()  # ids of edge cases
    checkpoint: int = 0  # step of the base whose saved weights answer; 0: what it made
    errors: float = 0.05  # share of answers that may be without a score
    degenerate: float = 0.05  # share that may be empty or one word again and again


@dataclass(frozen=True)
class Quantize:
    """A policy whose weights are rounded; nothing is trained."""

    bits: int = 8  # of every weight: 8, 4, 3 or 2
    rows: int = 200  # questions at most on which two people are compared
    batch: int = 32  # answers at once, where a reward model is asked
    ratio: float = 0.8  # share of the dependence on the persona that must stay


@dataclass(frozen=True)
class Predict:
    """Reward models score answers that were given elsewhere; nothing is generated or trained."""

    round: int = 0  # the unsealed round whose answers the site hands over
    batch: int = 64  # answers at once


@dataclass(frozen=True)
class Reward:
    """R = α·Q + (1−α)·P − w·L."""

    alpha: tuple[tuple[float, float], ...] = ((0.0, 0.7), (0.5, 0.5), (1.0, 0.4))  # progress, α
    alpha_reason: str = ""  # needed where α starts below 0.5
    reference_alpha: float = 0.5  # of the reference reward, which monitors watch
    redundancy: float = 0.2  # w
    aggregation: str = "sum_then_normalize"  # or normalize_then_sum
    ensemble: str = "mean"  # or lower: mean − spread_weight · spread
    spread_weight: float = 1.0
    quality_floor: float = 0.3  # below this quality, personalization gains nothing
    quality: str = ""  # run directory of the reward model, or "rules"
    personalization: str = ""
    judge_weight: float = 0.0  # share of a judge in Q; at most 0.5
    judge_url: str = ""  # of an OpenAI-compatible endpoint, up to /v1; the key: PALATE_JUDGE_KEY
    judge_model: str = ""
    phrases: tuple[str, ...] = ()  # stock phrases beside the built-in ones
    force: str = ""  # reason for using reward models that failed their gate
    audit: tuple[str, ...] = ()  # scorers that are logged and train nothing


@dataclass(frozen=True)
class Monitor:
    """Thresholds of the alert rules. They were found with small models: settings, not laws."""

    window: int = 20  # logged steps that a rule looks at
    calibrate: int = 5  # first steps, from which the KL band comes
    kl_factor: float = 5.0  # the band ends at this multiple of the calibrated KL …
    kl_floor: float = 0.5  # … but not below this
    kl_limit: float = 1.0
    entropy_low: float = 0.02
    entropy_rise: float = 2.0
    zero_spread: float = 0.5
    clipped: float = 0.5
    length_rise: float = 0.3
    length_jump: float = 2.0
    length_fall: float = 0.4
    drop: float = 0.1  # of the reference reward below its start, in its own unit
    quality_drop: float = 0.05
    spread_rise: float = 1.5
    conflict: float = -0.5
    alike: float = 0.3  # of the different answers of the first steps
    babble: float = 4.0  # multiple of the entropy of the first steps
    redundancy_rise: float = 0.02
    spread_least: float = 0.08  # below it, disagreement of reward models means nothing
    probe_margin: float = 0.5  # share of the margin of good answers that must stay
    probe_fall: float = 0.15  # of the probes in which the policy prefers the good answer
    sensitivity: float = 0.8  # share of the dependence on the persona that must stay
    persona_turns: int = 10  # that a summary should stand within a dialogue
    unscored: float = 0.1
    slow_step: float = 3.0
    hang: float = 5.0


@dataclass(frozen=True)
class RunConfig:
    kind: str
    preset: str = ""
    seed: int = 1
    note: str = ""
    hardware: Hardware = field(default_factory=Hardware)
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    sft: Sft = field(default_factory=Sft)
    reward_model: RewardModel = field(default_factory=RewardModel)
    gate: Gate = field(default_factory=Gate)
    grpo: Grpo = field(default_factory=Grpo)
    evaluate: Evaluate = field(default_factory=Evaluate)
    predict: Predict = field(default_factory=Predict)
    quantize: Quantize = field(default_factory=Quantize)
    reward: Reward = field(default_factory=Reward)
    monitor: Monitor = field(default_factory=Monitor)
