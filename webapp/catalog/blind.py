"""What a comparison page may know of two answers: an object that has no identity field (V1–V3)."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.catalog.models import PersonaVersion, Prompt
from webapp.core.markdown import render
from webapp.core.worddiff import diff, nearly_identical


@dataclass(frozen=True)
class Turn:
    role: str
    html: str


@dataclass(frozen=True)
class BlindPair:
    """All that a comparison page knows of two answers. Nothing here depends on who wrote what."""

    token: str
    persona_summary: str
    persona_lang: str
    messages: tuple[Turn, ...]
    left_html: str
    right_html: str
    near_identical: bool
    lang: str


def rendered_pair(
    token: str, prompt: Prompt, version: PersonaVersion | None, left: str, right: str
) -> BlindPair:
    """The two texts rendered, with question and persona summary (erased: empty)."""
    alike = nearly_identical(left, right)
    return _pair(token, prompt, version, str(render(left)), str(render(right)), alike)


def difference_pair(
    token: str, prompt: Prompt, version: PersonaVersion | None, left: str, right: str
) -> BlindPair:
    """The same with the word-level difference in place of the rendered answers."""
    marked_left, marked_right = diff(left, right)
    return _pair(token, prompt, version, str(marked_left), str(marked_right), False)


def _pair(
    token: str, prompt: Prompt, version: PersonaVersion | None, left: str, right: str, alike: bool
) -> BlindPair:
    text = getattr(version, "text", None) if version else None
    return BlindPair(
        token=token,
        persona_summary=text.summary if text else "",
        persona_lang=version.persona.features.get("language", "") if version else "",
        messages=tuple(
            Turn(turn["role"], str(render(turn["content"]))) for turn in prompt.messages
        ),
        left_html=left,
        right_html=right,
        near_identical=alike,
        lang=prompt.language,
    )
