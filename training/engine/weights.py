"""The weights of a model in a folder: where they are, and what they are."""

from __future__ import annotations

from pathlib import Path

from training.engine.rundir import sha256_file, sha256_json


class NoModel(Exception):
    """Nothing at the place that could answer; the message says what was looked for."""


def model_folder(place: Path) -> Path:
    """The folder with the weights: the place itself, or `model/` of a run. Raises NoModel."""
    for folder in (place, place / "model"):
        if (folder / "config.json").is_file() and weight_files(folder):
            return folder
        if (folder / "adapter_config.json").is_file() and weight_files(folder):
            return folder
    raise NoModel(f"no config.json with *.safetensors in {place} or {place / 'model'}")


def weight_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def weights_digest(folder: Path) -> str:
    """SHA-256 over the names and hashes of the weights: what a contestant was made with."""
    return sha256_json({path.name: sha256_file(path) for path in weight_files(folder)})
