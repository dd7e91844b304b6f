"""Messages to tokens: one way for the policy, the training of reward models, and their use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from training.engine.contracts import Message
from training.engine.persona.render import policy_messages, reward_messages


def policy_text(tokenizer: Any, persona: str, prompt: str | tuple[Message, ...]) -> str:
    messages = policy_messages(persona, prompt)
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return str(text)


def reward_text(
    tokenizer: Any, branch: str, persona: str, prompt: str | tuple[Message, ...], answer: str
) -> str:
    """The whole conversation; begins with `policy_text` of what this branch sees."""
    messages = reward_messages(branch, persona, prompt, answer)
    return str(tokenizer.apply_chat_template(messages, tokenize=False)).rstrip("\n")


def encode(tokenizer: Any, text: str, max_length: int) -> list[int]:
    """Tokens without further special ones; too long a text loses its beginning, not the answer."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids[-max_length:]


def reward_ids(
    tokenizer: Any,
    branch: str,
    rows: Sequence[tuple[str, str | tuple[Message, ...], str]],
    max_length: int,
) -> list[list[int]]:
    """Tokens for many (persona, prompt, answer)."""
    return [
        encode(tokenizer, reward_text(tokenizer, branch, persona, prompt, answer), max_length)
        for persona, prompt, answer in rows
    ]
