"""What can be known before a run starts: every reason why it would fail, at once, by field."""

from __future__ import annotations

import importlib.util
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.engine.config.load import Problem
from training.engine.config.schema import BRANCHES, KINDS, RunConfig
from training.engine.rundir import RunDir, sha256_file

BITS = (8, 4, 3, 2)
QUANTISED = "quantised.json"  # in a folder of rounded weights
NEEDED = ("torch", "transformers", "trl", "accelerate", "datasets")


@dataclass(frozen=True)
class Machine:
    """What the machine offers; a test describes one, `this_machine` looks."""

    packages: Callable[[str], bool]
    gpus: int = 0
    gpu_memory_gb: float = 0.0
    free_disk_gb: float = math.inf


def this_machine(folder: Path) -> Machine:
    """Looks without importing torch: the web process asks, too."""
    gpus = len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1e9
    return Machine(lambda name: importlib.util.find_spec(name) is not None, gpus, 0.0, free)


def check(config: RunConfig, machine: Machine, run: RunDir | None = None) -> list[Problem]:
    """Every problem of this run on this machine; with a directory, of its snapshots, too."""
    found = list(_values(config))
    found += _batches(config)
    found += _reward(config) if config.kind == "grpo" else []
    found += _machine(config, machine)
    if run is not None:
        found += _snapshots(config, run)
    return found


def warnings(config: RunConfig) -> list[Problem]:
    """What may run but is known to go wrong."""
    g, found = config.grpo, []
    if config.kind != "grpo":
        return []
    if g.temperature > 1.1:
        found.append(Problem("grpo.temperature", "above 1.1 the policy explores nonsense", 0.9))
    if g.beta == 0:
        found.append(Problem("grpo.beta", "nothing holds the policy, no KL is measured"))
    elif g.beta > 0.1:
        found.append(Problem("grpo.beta", "above 0.1 the policy hardly moves", 0.1))
    elif g.beta < 0.02:
        found.append(Problem("grpo.beta", "so little lets the policy cheat", 0.04))
    return found


def reward_sources(config: RunConfig) -> dict[str, float]:
    """The share of the reward, at the reference α, that rules, reward models and a judge give."""
    r = config.reward
    shares = {"rules": 0.0, "reward models": 0.0, "judge": r.reference_alpha * r.judge_weight}
    branches = {
        "quality": r.reference_alpha * (1 - r.judge_weight),
        "personalization": 1 - r.reference_alpha,
    }
    for branch, share in branches.items():
        shares["rules" if getattr(r, branch) == "rules" else "reward models"] += share
    return shares


def _values(config: RunConfig) -> Iterator[Problem]:
    """Ranges and names."""
    yield from _one_of("kind", config.kind, KINDS)
    yield from _one_of("hardware.device", config.hardware.device, ("cpu", "gpu"))
    yield from _one_of("model.dtype", config.model.dtype, ("float32", "bfloat16"))
    positive: dict[str, float] = {"hardware.processes": config.hardware.processes}
    if config.kind == "sft":
        s = config.sft
        positive |= {"sft.batch": s.batch, "sft.learning_rate": s.learning_rate}
        positive |= {"sft.accumulation": s.accumulation, "sft.max_length": s.max_length}
    elif config.kind == "reward_model":
        r = config.reward_model
        yield from _one_of("reward_model.branch", r.branch, BRANCHES)
        positive |= {"reward_model.members": r.members, "reward_model.batch": r.batch}
        positive |= {"reward_model.learning_rate": r.learning_rate}
        positive |= {"reward_model.max_steps": r.max_steps, "reward_model.eval_every": r.eval_every}
        if r.folds < 2:
            yield Problem("reward_model.folds", "a member must leave a fold out", 2)
    elif config.kind == "evaluate":
        e = config.evaluate
        positive |= {"evaluate.draws": e.draws, "evaluate.batch": e.batch}
        positive |= {"evaluate.max_completion": e.max_completion}
        yield from _scorers(config)
    elif config.kind == "quantize":
        z = config.quantize
        positive |= {"quantize.rows": z.rows, "quantize.batch": z.batch}
        yield from _quantize(config)
    elif config.kind == "predict":
        positive |= {"predict.round": config.predict.round, "predict.batch": config.predict.batch}
        yield from _reward_models(config)
    elif config.kind == "grpo":
        g = config.grpo
        positive |= {"grpo.steps": g.steps, "grpo.batch": g.batch, "grpo.group": g.group}
        positive |= {"grpo.accumulation": g.accumulation, "grpo.learning_rate": g.learning_rate}
        positive |= {"grpo.temperature": g.temperature, "grpo.max_completion": g.max_completion}
        yield from _grpo(config)
    for name, value in positive.items():
        if not value > 0 or not math.isfinite(value):
            yield Problem(name, "must be above 0")
    if config.kind == "predict":
        return  # reward models carry their own weights
    if not (config.model.path or config.model.package or config.model.scratch):
        yield Problem("model.path", "no model is named")
    if config.kind != "sft" and not (config.model.path or config.model.package):
        # The reference model of GRPO is loaded again from disk; a reward model starts from the SFT.
        yield Problem("model.path", "needs the folder of a trained model (run SFT first)")


def _grpo(config: RunConfig) -> Iterator[Problem]:
    """Names and ranges of GRPO alone."""
    g, path = config.grpo, config.model.path
    yield from _one_of("grpo.sampler", g.sampler, ("transformers", "vllm"))
    yield from _one_of("grpo.vllm_mode", g.vllm_mode, ("colocate", "server"))
    yield from _one_of("grpo.scale", g.scale, ("group", "batch", "none"))
    if g.beta < 0:
        yield Problem("grpo.beta", "cannot be negative", 0.0)
    if any(not 0 < at < 1 for at in g.keep_at):
        yield Problem("grpo.keep_at", "lies between 0 and 1")
    if path and config.model.lora is None and (Path(path) / QUANTISED).is_file():
        yield Problem("model.lora.rank", "a quantised base stays as it is: train an adapter")


def _quantize(config: RunConfig) -> Iterator[Problem]:
    """Bits that there are, and something to measure on."""
    if config.quantize.bits not in BITS:
        yield Problem("quantize.bits", "must be one of 8, 4, 3, 2", 8)
    if not (config.data.swaps or config.data.gate):
        yield Problem("data.swaps", "needs swaps of personas, or prompts, to measure on")


def _reward_models(config: RunConfig) -> Iterator[Problem]:
    """At least one reward model must be there to ask."""
    if not any(getattr(config.reward, branch) not in ("", "rules") for branch in BRANCHES):
        yield Problem("reward.quality", "no reward model is named")


def _scorers(config: RunConfig) -> Iterator[Problem]:
    """Scorers that are known and, where they are reward models, named."""
    known = [*BRANCHES, *(f"{branch}/auditors" for branch in BRANCHES), "rules", "judge", "truth"]
    for name in config.evaluate.scorers:
        branch = name.partition("/")[0]
        if name not in known:
            yield Problem("evaluate.scorers", f"{name} is not one of {', '.join(known)}")
        elif branch in BRANCHES and not getattr(config.reward, branch):
            yield Problem(f"reward.{branch}", "no reward model is named")
        elif name == "judge" and not (config.reward.judge_url and config.reward.judge_model):
            yield Problem("reward.judge_url", "a judge needs an address and a model")


def _batches(config: RunConfig) -> list[Problem]:
    if config.kind != "grpo":
        return []
    g, processes = config.grpo, config.hardware.processes
    if g.group < 2:
        return [Problem("grpo.group", "a group needs at least 2 completions to compare", 2)]
    if min(g.batch, g.accumulation, processes) < 1:
        return []
    total = g.batch * g.accumulation * processes
    if total % g.group == 0:
        return []
    message = (
        f"{g.batch} completions × {g.accumulation} passes × {processes} processes = {total} "
        f"is not a multiple of the group of {g.group}."
    )
    return [
        Problem("grpo.batch", message, nearest_batch(g.batch, g.accumulation * processes, g.group))
    ]


def nearest_batch(batch: int, factor: int, group: int) -> int:
    """The batch closest to this one with which whole groups come out; the smaller of two."""
    unit = group // math.gcd(factor, group)
    below = batch // unit * unit
    return below if below and batch - below <= below + unit - batch else below + unit


def accumulation_for(groups: int, *, group: int, batch: int, processes: int) -> int:
    """Passes that keep the groups per step when a recipe moves to another number of GPUs.

    The recipe's 8 × 2 × 8 completions are 16 groups of 8: on one GPU 64 passes of 2.
    """
    return max(1, math.ceil(groups * group / (batch * processes)))


def _reward(config: RunConfig) -> Iterator[Problem]:
    r = config.reward
    yield from _one_of("reward.ensemble", r.ensemble, ("mean", "lower"))
    kinds = ("sum_then_normalize", "normalize_then_sum")
    yield from _one_of("reward.aggregation", r.aggregation, kinds)
    if not r.alpha:
        yield Problem("reward.alpha", "has no points")
        return
    progress = [p for p, _ in r.alpha]
    if progress != sorted(set(progress)) or progress[0] < 0 or progress[-1] > 1:
        yield Problem("reward.alpha", "progress must rise from 0 to 1")
    if any(not 0 <= a <= 1 for _, a in r.alpha):
        yield Problem("reward.alpha", "α lies between 0 and 1")
    elif r.alpha[0][1] < 0.5 and not r.alpha_reason.strip():
        message = "starts below 0.5: personalization before quality; give reward.alpha_reason"
        yield Problem("reward.alpha", message, 0.5)
    if not 0 <= r.judge_weight <= 0.5:
        yield Problem("reward.judge_weight", "a judge may give at most half of the quality", 0.5)
    if r.judge_weight and not (r.judge_url and r.judge_model):
        yield Problem("reward.judge_url", "a judge needs an address and a model")
    if r.redundancy < 0:
        yield Problem("reward.redundancy", "cannot be negative", 0.0)
    for name in BRANCHES:
        if not getattr(r, name):
            yield Problem(f"reward.{name}", "no reward model is named")


def _machine(config: RunConfig, machine: Machine) -> Iterator[Problem]:
    h = config.hardware
    wanted = [*NEEDED, *h.packages]
    wanted += ["vllm"] if config.grpo.sampler == "vllm" and config.kind == "grpo" else []
    wanted += ["peft"] if config.model.lora else []
    wanted += [config.model.package] if config.model.package else []
    for package in dict.fromkeys(name.replace("-", "_") for name in wanted):
        if not machine.packages(package):
            yield Problem("hardware.packages", f"the package {package} is not installed")
    if h.device == "gpu" and machine.gpus < h.processes:
        has = f"{machine.gpus} found" if machine.gpus else "none is found"
        yield Problem("hardware.device", f"needs {h.processes} GPU, {has}", machine.gpus or "cpu")
    if h.device == "gpu" and 0 < machine.gpu_memory_gb < h.memory_gb:
        yield Problem("hardware.memory_gb", f"needs {h.memory_gb:g} GB a GPU")
    if machine.free_disk_gb < h.disk_gb:
        message = f"needs {h.disk_gb:g} GB of free disk, {machine.free_disk_gb:.1f} GB are left"
        yield Problem("hardware.disk_gb", message)


def _snapshots(config: RunConfig, run: RunDir) -> Iterator[Problem]:
    """Files that are named but missing, or are not what was frozen."""
    d = config.data
    named = {"train": d.train, "heldout": d.heldout, "gate": d.gate, "probes": d.probes}
    named |= {"swaps": d.swaps, "labelled": d.labelled, "edges": d.edges}
    named |= {"answers": d.answers}
    for name, file in named.items():
        if file and not (run.path / file).is_file():
            yield Problem(f"data.{name}", f"{file} is not there")
        elif file and (wanted := d.sha256.get(file)) and sha256_file(run.path / file) != wanted:
            yield Problem(f"data.{name}", f"{file} is not the frozen file: its hash differs")


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> Iterator[Problem]:
    if value not in allowed:
        yield Problem(name, f"must be one of {', '.join(allowed)}", allowed[0])
