"""Weights rounded to few bits: symmetric, one scale for each row, weights only.

Every weight of a linear layer or an embedding becomes a whole number times the scale of its row
(its output channel, or its token); the number lies between −(2^(bits−1) − 1) and 2^(bits−1) − 1.
Norms and biases stay. The model keeps floats that are exactly these products, so that whatever
loads a model loads it; a kernel of few bits would compute the same from numbers and scales.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.engine.config.preflight import QUANTISED

MARK = QUANTISED  # in a folder of weights: they are rounded, and how
Named = tuple[str, torch.Tensor]


def top(bits: int) -> int:
    """The largest whole number of so many bits; with 2 bits a weight is −1, 0 or 1."""
    return int(2 ** (bits - 1)) - 1


def rounded(model: Any) -> Iterator[Named]:
    """The weights that are rounded, each once: tied ones are the same tensor."""
    seen: set[int] = set()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding) and module.weight.data_ptr() not in seen:
            seen.add(module.weight.data_ptr())
            yield f"{name}.weight", module.weight


@torch.no_grad()
def round_weights(model: Any, bits: int) -> dict[str, torch.Tensor]:
    """Round in place; the scales by name, one a row."""
    scales = {}
    for name, weight in rounded(model):
        rows = weight.detach().float()
        scale = (rows.abs().amax(dim=1) / top(bits)).clamp(min=torch.finfo(torch.float32).tiny)
        weight.copy_(codes(rows, scale, bits) * scale[:, None])
        scales[name] = scale.contiguous()
    return scales


def codes(weight: torch.Tensor, scale: torch.Tensor, bits: int) -> torch.Tensor:
    """The whole numbers behind weights."""
    return (weight.float() / scale[:, None]).round().clamp(-top(bits), top(bits))


@torch.no_grad()
def error(model: Any, before: dict[str, torch.Tensor]) -> float:
    """Root mean square of what rounding changed, as a share of that of the weights."""
    gaps = total = 0.0
    for name, weight in rounded(model):
        gaps += float((weight - before[name]).double().square().sum())
        total += float(before[name].double().square().sum())
    return (gaps / total) ** 0.5 if total else 0.0


def is_quantised(folder: str | Path) -> bool:
    return (Path(folder) / MARK).is_file()


def frozen_digest(model: Any) -> str:
    """SHA-256 over all weights that are not trained, by name and value."""
    found = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        if not weight.requires_grad:
            found.update(f"{name}\n{weight.dtype}\n{tuple(weight.shape)}\n".encode())
            plain = weight.detach().cpu().contiguous()
            found.update(plain.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
