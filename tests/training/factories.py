"""Labelled worlds for datasets, made through the services."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from annotation.enums import ProjectState
from annotation.models import Project
from annotation.services import items, projects
from tests.annotation.factories import GUIDELINES, PLAIN, Choose, Desk, label_all
from tests.conftest import make_user
from training.models import Dataset
from training.services.datasets import create_dataset, freeze_dataset
from training.services.freezing import run_freeze
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog.models import Persona, PersonaVersion
from webapp.catalog.services.personas import create_persona
from webapp.catalog.services.prompts import get_or_create_prompt

Texts = Callable[[int, int], tuple[str, str]]


def admin() -> User:
    return User.objects.filter(username="mara").first() or make_user("mara", Role.ADMIN)


def make_people(n: int, prefix: str = "person") -> list[PersonaVersion]:
    """`n` personas, experts and novices by turns."""
    found = []
    for number in range(n):
        name, expertise = f"{prefix}-{number}", "novice" if number % 2 else "expert"
        known = Persona.objects.filter(pseudonym=name).first()
        persona = known or create_persona(
            actor=None,
            pseudonym=name,
            summary=f"{name}: {expertise}, in a hurry.",
            features={"expertise": expertise, "language": "en"},
        )
        found.append(persona.versions.get())
    return found


def short_and_long(prompt: int, person: int) -> tuple[str, str]:
    """The first answer is longer for novices, so that what people like balances out."""
    short = f"Run it {prompt}-{person}."
    long = f"First open a window, then think of {prompt}-{person} and go on step by step."
    return (long, short) if person % 2 else (short, long)


def make_pairs(
    *,
    people: int = 4,
    prompts: int = 3,
    prefix: str = "person",
    topic: str = "thing",
    texts: Texts = short_and_long,
    shared: bool = True,
    choose: Choose | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Desk:
    """A project whose pairs are all labelled "first is better" unless `choose` says otherwise.

    `shared`: every prompt for every person; else each person has prompts of their own.
    """
    manager = admin()
    name = f"Pairs about {topic} {Project.objects.count()}"
    people_ = make_people(people, prefix)
    users = [make_user(f"ann-{Project.objects.count()}-{n}", Role.ANNOTATOR) for n in range(2)]
    project = projects.create_project(
        actor=manager, name=name, guidelines=GUIDELINES, settings={**PLAIN, **(settings or {})}
    )
    projects.add_members(actor=manager, project=project, users=users)
    drafts = []
    for person, version in enumerate(people_):
        for number in range(prompts):
            own = "" if shared else f" of {prefix} {person}"
            prompt = get_or_create_prompt(
                messages=f"How do I do {topic} {number}{own}?", category=topic, language="en"
            )
            first, second = texts(number, person)
            drafts.append(
                items.ItemDraft(
                    prompt_id=prompt.pk,
                    prompt_digest=prompt.text_hash,
                    first=first,
                    second=second,
                    persona_version_id=version.pk,
                )
            )
    items.add_items(project=project, drafts=drafts)
    project = projects.move_project(actor=manager, project=project, to=ProjectState.OPEN)
    desk = Desk(manager, project, users, people_)
    label_all(desk, choose) if choose else label_all(desk)
    return desk


def draft(kind: str = "preferences", name: str = "", **values: Any) -> Dataset:
    if kind == "preferences":
        values.setdefault("axis", "quality")
    return create_dataset(
        actor=admin(), name=name or f"Set {Dataset.objects.count()}", kind=kind, values=values
    )


def freeze(dataset: Dataset) -> Dataset:
    """Freeze to the end, whatever comes of it."""
    freeze_dataset(actor=admin(), dataset=dataset)
    run_freeze(pk=dataset.pk)
    dataset.refresh_from_db()
    return dataset


def frozen(kind: str = "preferences", **values: Any) -> Dataset:
    dataset = freeze(draft(kind, **values))
    assert dataset.state == "frozen", dataset.report
    return dataset
