"""Models and tokenizers: from a folder, from a package, or made from scratch."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from training.engine import modelstore
from training.engine.config.schema import Model, Scratch
from training.engine.rundir import RunDir, write_json

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ADAPTER = "adapter_config.json"
START, END, PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"


def dtype_of(model: Model) -> torch.dtype:
    return torch.bfloat16 if model.dtype == "bfloat16" else torch.float32


def load_base(model: Model, texts: Iterable[str]) -> tuple[Any, Any]:
    """Model and tokenizer to start SFT from; `texts` teach a tokenizer made from scratch."""
    if model.path:
        return load_policy(model.path, dtype_of(model)), load_tokenizer(model.path)
    if model.scratch is None:
        raise ValueError("no model is named")
    tokenizer = make_tokenizer(texts, model.scratch.vocabulary)
    return make_model(model.scratch, tokenizer), tokenizer


def load_policy(path: str | Path, dtype: torch.dtype) -> Any:
    """A model from its folder; an adapter becomes one with the model that it was trained on."""
    if not (Path(path) / ADAPTER).exists():
        return AutoModelForCausalLM.from_pretrained(str(path), dtype=dtype)
    from peft import AutoPeftModelForCausalLM

    return AutoPeftModelForCausalLM.from_pretrained(str(path), dtype=dtype).merge_and_unload()


def save_trained(trainer: Any, tokenizer: Any, run: RunDir) -> None:
    """What was trained, ready to be loaded by anybody. Of an adapter, `adapter/` is the adapter
    alone, and model/ computes what base and adapter compute together."""
    adapted = trainer.accelerator.unwrap_model(trainer.model)
    if not hasattr(adapted, "merge_and_unload"):
        trainer.save_model(str(run.model))  # every process takes part
    elif run.main:
        adapted.save_pretrained(str(run.path / "adapter"))
        adapted.merge_and_unload().save_pretrained(str(run.model))
    tokenizer.save_pretrained(str(run.model))


def load_tokenizer(path: str | Path) -> Any:
    """With padding on the left, as generation wants it."""
    tokenizer = AutoTokenizer.from_pretrained(str(path))
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def with_path(model: Model) -> Model:
    """The same model with a folder to load it from, made now where it comes from a package."""
    if model.path or not model.package:
        return model
    return dataclasses.replace(model, path=str(from_package(model.package)))


def from_package(package: str) -> Path:
    """Converted once: GGUF read by transformers, its quantisation undone, saved as float32.

    Made beside the store and moved there whole: two runs may begin at once.
    """
    folder, digest = modelstore.folder_for(package)
    if modelstore.is_whole(folder, digest):
        return folder
    file = modelstore.weights_of(package)
    where, name = str(file.parent), file.name
    loaded = AutoModelForCausalLM.from_pretrained(where, gguf_file=name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
    tokenizer.padding_side = "left"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    for left in ("hf_quantizer", "quantization_method", "is_quantized"):
        if hasattr(loaded, left):
            delattr(loaded, left)
    if hasattr(loaded.config, "quantization_config"):
        del loaded.config.quantization_config
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        made = Path(draft) / "model"
        loaded.save_pretrained(made)
        tokenizer.save_pretrained(made)
        source = {"package": package, "version": version(package), "file": name, "sha256": digest}
        write_json(made / modelstore.SOURCE, source)
        for file in made.iterdir():
            file.chmod(0o644)  # the store is shared between processes of several users
        try:
            made.rename(folder)
        except OSError:
            if not modelstore.is_whole(folder, digest):
                raise
    return folder


def make_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """Byte-level BPE: every text has tokens, also those nobody thought of."""
    bare = Tokenizer(BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )
    tokenizer.chat_template = CHATML
    return tokenizer


def make_model(scratch: Scratch, tokenizer: Any) -> Any:
    """A small Qwen2 with random weights; seeded by the caller."""
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=scratch.hidden,
        intermediate_size=scratch.intermediate,
        num_hidden_layers=scratch.layers,
        num_attention_heads=scratch.heads,
        num_key_value_heads=scratch.kv_heads,
        max_position_embeddings=512,
        initializer_range=scratch.initializer_range,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config)


def placed(model: Any) -> Any:
    """On this process's GPU, where there is one. Trainers place what they train themselves."""
    if torch.cuda.is_available():
        model.to(torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))))
    return model


def load_classifier(path: str | Path, model: Model) -> Any:
    """A model with one output: the logit of a reward."""
    return AutoModelForSequenceClassification.from_pretrained(
        str(path), num_labels=1, dtype=dtype_of(model)
    )


def peft_config(model: Model, task: str) -> Any:
    """LoRA as configured, or None for all weights."""
    if model.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=model.lora.rank,
        lora_alpha=model.lora.alpha,
        target_modules=list(model.lora.targets),
        task_type=task,
    )
