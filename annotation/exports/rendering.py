"""How prompt and persona become what a trainer reads: one rule for every format. Pure.

The summary stands in the system turn as "Persona: …", before what the prompt's own system turn
says: what a reward model for personalization learns must be in its input. As plain text every turn
has its role on a line of its own; an answer then begins on a new line, so that tokenizers split the
prompt and the answer at the same place alone and together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Message = dict[str, str]
ROLE_LINES = {"system": "System:", "user": "User:", "assistant": "Assistant:"}


def conversation(messages: Sequence[Mapping[str, str]], summary: str = "") -> list[Message]:
    """The turns of the prompt, with the persona summary in the system turn where there is one."""
    turns = [{"role": m["role"], "content": m["content"]} for m in messages]
    if not summary:
        return turns
    tag = f"Persona: {summary}"
    if turns and turns[0]["role"] == "system":
        return [{"role": "system", "content": f"{tag}\n\n{turns[0]['content']}"}, *turns[1:]]
    return [{"role": "system", "content": tag}, *turns]


def answer(text: str) -> list[Message]:
    return [{"role": "assistant", "content": text}]


def transcript(turns: Sequence[Mapping[str, str]]) -> str:
    """The prompt as plain text, up to where the answer begins."""
    told = "".join(f"{ROLE_LINES[m['role']]}\n{m['content']}\n\n" for m in turns)
    return f"{told}{ROLE_LINES['assistant']}\n"
