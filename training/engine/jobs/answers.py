"""Models that answer: transformers on the CPU or one GPU, vLLM where it is installed with a GPU.

The vLLM writer was not run: the machines at hand have no GPU.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from training.engine.config.schema import Model
from training.engine.jobs.models import load_base, with_path

Asked = Mapping[str, Any]
Told = dict[str, Any]
MAX_TOKENS = 512


def from_folder(folder: Path) -> TransformersWriter | VllmWriter:
    if torch.cuda.is_available() and importlib.util.find_spec("vllm"):
        return VllmWriter(folder)
    model, tokenizer = load_base(Model(path=str(folder), dtype=_dtype()), ())
    return TransformersWriter(model, tokenizer)


def from_package(name: str) -> TransformersWriter | VllmWriter:
    return from_folder(Path(with_path(Model(package=name)).path))


def _dtype() -> str:
    return "bfloat16" if torch.cuda.is_available() else "float32"


class TransformersWriter:
    """`generate` on a batch, padded on the left."""

    name = "transformers"

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model, self.tokenizer = model.eval().to(self.device), tokenizer
        self.room = int(getattr(model.config, "max_position_embeddings", 0) or 0)

    @torch.inference_mode()
    def write(self, asked: Sequence[Asked], sampling: Mapping[str, Any]) -> list[Told]:
        """A question that leaves no room for an answer is refused, never cut."""
        most = int(sampling.get("max_tokens", MAX_TOKENS))
        texts = {one["id"]: self._text(one) for one in asked}
        sizes = {key: len(self._encoded([text])["input_ids"][0]) for key, text in texts.items()}
        fitting = [key for key in texts if not self.room or sizes[key] + most <= self.room]
        told: list[Told] = [{"id": k, "error": "too_long"} for k in texts if k not in fitting]
        if not fitting:
            return told
        if "seed" in sampling:
            torch.manual_seed(int(sampling["seed"]))
        inputs = self._encoded([texts[key] for key in fitting]).to(self.device)
        ids = self.model.generate(**inputs, max_new_tokens=most, **_how(sampling))
        new = ids[:, inputs["input_ids"].shape[1] :]
        return told + [
            self._told(key, row, sizes[key]) for key, row in zip(fitting, new, strict=True)
        ]

    def _text(self, asked: Asked) -> str:
        text = self.tokenizer.apply_chat_template(
            asked["messages"], tokenize=False, add_generation_prompt=True
        )
        return str(text)

    def _encoded(self, texts: list[str]) -> Any:
        return self.tokenizer(
            texts,
            return_tensors="pt",
            padding=True,
            padding_side="left",
            add_special_tokens=False,
        )

    def _told(self, key: Any, row: Any, prompt_tokens: int) -> Told:
        ends = self._ends()
        ids = row.tolist()
        stop = next((n for n, token in enumerate(ids) if token in ends), None)
        return {
            "id": key,
            "text": self.tokenizer.decode(ids[:stop], skip_special_tokens=True).strip(),
            "finish_reason": "length" if stop is None else "stop",
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(ids) if stop is None else stop + 1,
        }

    def _ends(self) -> set[int]:
        """The tokens that end an answer."""
        ends = self.model.generation_config.eos_token_id
        found = set(ends) if isinstance(ends, list) else {ends}
        return (found | {self.tokenizer.eos_token_id}) - {None}


def _how(sampling: Mapping[str, Any]) -> dict[str, Any]:
    temperature = float(sampling.get("temperature", 1.0))
    how: dict[str, Any] = {"do_sample": temperature > 0}
    if temperature > 0:
        how["temperature"] = temperature
        how |= {name: sampling[name] for name in ("top_p", "top_k") if name in sampling}
    if "repetition_penalty" in sampling:
        how["repetition_penalty"] = float(sampling["repetition_penalty"])
    return how


class VllmWriter:
    """vLLM's `chat` on a batch. Not run here."""

    name = "vllm"

    def __init__(self, folder: Path) -> None:
        from vllm import LLM

        self.model = LLM(model=str(folder))

    def write(self, asked: Sequence[Asked], sampling: Mapping[str, Any]) -> list[Told]:
        from vllm import SamplingParams

        how = SamplingParams(**{"max_tokens": MAX_TOKENS, **sampling})
        results = self.model.chat([list(one["messages"]) for one in asked], how, use_tqdm=False)
        return [
            {
                "id": one["id"],
                "text": result.outputs[0].text.strip(),
                "finish_reason": result.outputs[0].finish_reason or "",
                "prompt_tokens": len(result.prompt_token_ids or ()),
                "completion_tokens": len(result.outputs[0].token_ids),
            }
            for one, result in zip(asked, results, strict=True)
        ]
