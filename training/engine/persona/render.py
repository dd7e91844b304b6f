"""The one renderer: the policy, reward models, the gate and inference all read these messages.

Two programs that render a persona differently train on one distribution and serve another.
So nobody else writes the persona into a conversation; the tokenizer's chat template does the rest.
"""

from __future__ import annotations

from training.engine.contracts import Message, as_messages
from training.engine.persona.redact import redact

SUMMARY_LIMIT = 100  # characters


def policy_messages(persona: str, prompt: str | tuple[Message, ...]) -> list[dict[str, str]]:
    """What the policy is asked: the persona summary as the system's turn, then the prompt."""
    messages = [dict(message) for message in as_messages(prompt)]
    summary = persona_text(persona)
    if not summary:
        return messages
    if messages and messages[0]["role"] == "system":  # one system turn, the summary first
        first = f"{summary}\n\n{messages[0]['content']}"
        return [{"role": "system", "content": first}, *messages[1:]]
    return [{"role": "system", "content": summary}, *messages]


def reward_messages(
    branch: str, persona: str, prompt: str | tuple[Message, ...], answer: str
) -> list[dict[str, str]]:
    """What a reward model judges. Quality never sees the persona; personalization must."""
    seen = persona if branch == "personalization" else ""
    return [*policy_messages(seen, prompt), {"role": "assistant", "content": answer}]


def persona_text(persona: str) -> str:
    """The summary as models see it: redacted, one line, at most 100 characters."""
    text = redact(" ".join(persona.split()))
    return text if len(text) <= SUMMARY_LIMIT else text[: SUMMARY_LIMIT - 1].rstrip() + "…"
