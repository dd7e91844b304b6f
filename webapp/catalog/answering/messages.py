"""How a contestant is asked: its system prompt template, the persona summary, the prompt.

A checkpoint is asked by the one renderer of the training engine, so that what is judged is what was
trained. A template may hold `{persona}` once; there the summary stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.engine.persona.render import persona_text, policy_messages

PLACE = "{persona}"


def messages_for(
    template: str, uses_persona: bool, turns: Sequence[Mapping[str, str]], summary: str
) -> list[dict[str, str]]:
    """The conversation for one context; `summary` is empty for a bare prompt."""
    if not template.strip():
        return policy_messages(summary if uses_persona else "", tuple(turns))
    system = template.strip()
    if uses_persona:
        system = system.replace(PLACE, persona_text(summary)).strip()
    rest = [dict(turn) for turn in turns]
    if rest and rest[0]["role"] == "system":
        system = f"{system}\n\n{rest.pop(0)['content']}"
    return [{"role": "system", "content": system}, *rest]
