"""Things of the catalog, made by its services."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from webapp.catalog.models import Answer, Contestant, ImportRun, Persona, Prompt, Seal
from webapp.catalog.services import answers, contestants, personas, prompts
from webapp.catalog.services.answers import Draft, Outcome
from webapp.catalog.services.imports import open_run, run_import


def make_persona(
    pseudonym: str = "mei", summary: str = "Novice, wants examples.", **more: Any
) -> Persona:
    return personas.create_persona(actor=None, pseudonym=pseudonym, summary=summary, **more)


def make_prompt(text: Any = "How do I begin?", **more: Any) -> Prompt:
    return prompts.get_or_create_prompt(messages=text, **more)


def make_contestant(name: str = "aurora", **more: Any) -> Contestant:
    return contestants.get_or_create_contestant(name=name, **more)


def make_answer(
    text: str = "Begin small.",
    *,
    contestant: Contestant | None = None,
    prompt: Prompt | None = None,
    persona: Persona | None = None,
    draw: int = 0,
) -> Answer:
    version = persona.versions.order_by("-n").first() if persona else None
    draft = Draft(
        contestant_id=(contestant or make_contestant()).pk,
        prompt_id=(prompt or make_prompt()).pk,
        persona_version_id=version.pk if version else None,
        text=text,
        draw=draw,
    )
    assert answers.write_answers(drafts=[draft]) == [Outcome.ADDED]
    return Answer.objects.latest("pk")


def seal(answer: Answer) -> Seal:
    return Seal.objects.create(answer=answer, holder="round:1")


def row(**changes: Any) -> dict[str, Any]:
    """A good row of the palate format."""
    return {
        "prompt": "How do I begin?",
        "contestant": "aurora",
        "answer": "Begin small.",
        **changes,
    }


def persona(**changes: Any) -> dict[str, Any]:
    return {"pseudonym": "mei", "summary": "Novice, wants examples.", **changes}


def write_jsonl(path: Path, rows: Sequence[dict[str, Any] | str | bytes]) -> Path:
    """Rows as lines; texts and bytes stand for themselves."""
    lines = []
    for entry in rows:
        if isinstance(entry, dict):
            entry = json.dumps(entry, ensure_ascii=False)
        lines.append(entry.encode() if isinstance(entry, str) else entry)
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def import_file(path: Path, *, user: Any = None, dry_run: bool = False) -> ImportRun:
    run = open_run(path=path, user=user, dry_run=dry_run)
    done = run_import(pk=run.pk, take_over=True)
    assert done is not None
    return done
