"""Where models lie that were made from a Python package: one folder each, tied to a hash. No torch.

The folder is `PALATE_MODELS`; without it `models` in `PALATE_HOME`, or in the user's cache.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from training.engine.rundir import read_json, sha256_file

SOURCE = "source.json"


def store() -> Path:
    given = os.environ.get("PALATE_MODELS", "")
    home = os.environ.get("PALATE_HOME", "")
    if given or home:
        return Path(given) if given else Path(home) / "models"
    return Path.home() / ".cache" / "palate" / "models"


def weights_of(package: str) -> Path:
    """The GGUF file that a package carries. The package itself is not imported: it may need more
    than its file does."""
    spec = importlib.util.find_spec(package.replace("-", "_"))
    folders = list(spec.submodule_search_locations or []) if spec else []
    files = sorted(file for folder in folders for file in Path(folder).rglob("*.gguf"))
    if not files:
        raise FileNotFoundError(f"the package {package} holds no .gguf file")
    return files[0]


def folder_for(package: str) -> tuple[Path, str]:
    """Where its converted model lies, made or not, and the SHA-256 that ties it to the file."""
    digest = sha256_file(weights_of(package))
    return store() / f"{package}-{digest[:16]}", digest


def is_whole(folder: Path, digest: str) -> bool:
    source = folder / SOURCE
    return source.exists() and read_json(source)["sha256"] == digest
