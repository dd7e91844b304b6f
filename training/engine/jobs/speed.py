"""How fast a model on disk writes: with transformers, and with vLLM where there is a GPU."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from training.engine.jobs.models import load_tokenizer
from training.engine.jobs.texts import policy_text

QUESTION = "How do I clean the lamp?"


@torch.inference_mode()
def transformers_speed(model_path: Path, *, batch: int = 16, new: int = 64) -> float:
    """Tokens per second of sampling; every answer is as long as it may be. The first round warms
    up."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = load_tokenizer(model_path)
    model = AutoModelForCausalLM.from_pretrained(str(model_path)).to(device).eval()
    texts = [policy_text(tokenizer, "", QUESTION)] * batch
    inputs = tokenizer(texts, return_tensors="pt", add_special_tokens=False).to(device)
    seconds = 0.0
    for _ in range(2):
        began = time.monotonic()
        model.generate(**inputs, do_sample=True, min_new_tokens=new, max_new_tokens=new)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds = time.monotonic() - began
    return batch * new / seconds


def vllm_speed(model_path: Path, *, batch: int = 64, new: int = 64) -> float:
    """The same through vLLM's continuous batching. Needs a GPU."""
    from vllm import LLM, SamplingParams

    model = LLM(model=str(model_path), gpu_memory_utilization=0.3, max_model_len=512)
    wanted = SamplingParams(temperature=0.9, max_tokens=new, min_tokens=new)
    texts = [policy_text(load_tokenizer(model_path), "", QUESTION)] * batch
    seconds = 0.0
    for _ in range(2):
        began = time.monotonic()
        model.generate(texts, wanted, use_tqdm=False)
        seconds = time.monotonic() - began
    return batch * new / seconds
