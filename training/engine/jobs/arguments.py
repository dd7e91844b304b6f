"""What every trainer of TRL is told alike."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from transformers.trainer_callback import PrinterCallback

from training.engine.config.schema import RunConfig


def quiet(trainer: Any) -> Any:
    """Numbers go to metrics.jsonl; the log is for what a person must read."""
    trainer.remove_callback(PrinterCallback)
    return trainer


def common(config: RunConfig, output: str) -> dict[str, Any]:
    """Arguments for SFTConfig, RewardConfig and GRPOConfig."""
    gpu = config.hardware.device == "gpu"
    # Read when a trainer is made. Without it, what is logged before training begins goes to the
    # folder that the process happens to stand in.
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(Path(output) / "tensorboard")
    return {
        "output_dir": output,
        "seed": config.seed,
        "use_cpu": not gpu,
        "bf16": gpu and config.model.dtype == "bfloat16",
        "fp16": False,
        "gradient_checkpointing": gpu,
        "dataloader_pin_memory": gpu,
        "dataloader_num_workers": 0,  # workers of a detached process are one more thing to reap
        "logging_strategy": "steps",
        "logging_steps": 1,
        "logging_first_step": True,
        "logging_nan_inf_filter": False,  # a loss that is no number must be seen
        "report_to": "tensorboard",
        "disable_tqdm": True,
        "save_strategy": "no",
        "push_to_hub": False,
    }
