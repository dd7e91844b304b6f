"""Prompts, each kept once: two are the same when every role and content is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.catalog.models import Prompt
from webapp.catalog.services.checks import check_messages, check_text
from webapp.catalog.texts import Message, prompt_hash


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A checked prompt. `digest` is its identity."""

    digest: str
    messages: tuple[tuple[str, str], ...]
    category: str = ""
    language: str = ""

    @classmethod
    def of(
        cls, turns: Iterable[tuple[str, str]], category: str = "", language: str = ""
    ) -> PromptSpec:
        turns = tuple(turns)
        return cls(prompt_hash(as_messages(turns)), turns, category, language)


def as_messages(turns: Iterable[tuple[str, str]]) -> list[Message]:
    return [{"role": role, "content": content} for role, content in turns]


def get_or_create_prompt(
    *,
    messages: Sequence[Mapping[str, Any]] | str,
    category: str = "",
    language: str = "",
    source: str = "authored",
) -> Prompt:
    """The prompt with these turns (a text is one turn of the user)."""
    checked = check_messages(messages)
    if category:
        category = check_text(category.strip(), "category", limit=64)
    if language:
        language = check_text(language.strip(), "language", limit=16)
    turns = ((turn["role"], turn["content"]) for turn in checked)
    spec = PromptSpec.of(turns, category, language)
    return Prompt.objects.get(pk=get_or_create_prompts(specs=[spec], source=source)[spec.digest])


def get_or_create_prompts(
    *, specs: Iterable[PromptSpec], source: str = "imported"
) -> dict[str, int]:
    """Ids by digest. Who comes second finds the first one's category and language."""
    wanted = {spec.digest: spec for spec in reversed(list(specs))}
    found = _ids(wanted)
    missing = sorted(set(wanted) - set(found))
    if missing:
        Prompt.objects.bulk_create(
            [
                Prompt(
                    messages=as_messages(wanted[digest].messages),
                    text_hash=digest,
                    category=wanted[digest].category,
                    language=wanted[digest].language,
                    source=source,
                )
                for digest in missing
            ],
            ignore_conflicts=True,
        )
        found.update(_ids(missing))
    return found


def _ids(digests: Iterable[str]) -> dict[str, int]:
    rows = Prompt.objects.filter(text_hash__in=list(digests)).values_list("text_hash", "pk")
    return dict(rows)
