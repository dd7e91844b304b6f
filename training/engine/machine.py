"""What this machine offers a trainer, as JSON: `python -m training.engine.machine`. No torch."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """packages (as they are imported), gpus, gpu_memory_gb of the smallest GPU."""
    memory = gpu_memory()
    return {
        "packages": sorted(metadata.packages_distributions()),
        "gpus": len(memory) or len(list(Path("/proc/driver/nvidia/gpus").glob("*"))),
        "gpu_memory_gb": round(min(memory, default=0.0), 1),
    }


def gpu_memory() -> list[float]:
    """GB of each GPU, as the driver's own tool says; empty without one."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    asked = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
    lines = done.stdout.split() if done.returncode == 0 else []
    return [float(line) * 1.048576e-3 for line in lines if line.replace(".", "").isdigit()]


if __name__ == "__main__":
    print(json.dumps(facts()))
