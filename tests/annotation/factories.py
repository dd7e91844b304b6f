"""Annotation projects for tests, made through the services."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotation.enums import MemberState, ProjectState
from annotation.models import Item, Lease, Member, Project
from annotation.selectors.tasks import as_shown
from annotation.services import items, labels, leases, projects
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog.models import Persona, PersonaVersion
from webapp.catalog.services.personas import create_persona
from webapp.catalog.services.prompts import get_or_create_prompt

GUIDELINES = "Read both answers. **Accuracy first**, then whether it suits the person."
PLAIN: dict[str, Any] = {
    "base_overlap": 1,
    "max_overlap": 1,
    "gold_percent": 0,
    "repeat_percent": 0,
    "onboarding_size": 0,
}


@dataclass
class Desk:
    """A project with its manager, annotators and persona versions."""

    manager: User
    project: Project
    people: list[User]
    versions: list[PersonaVersion] = field(default_factory=list)

    def member(self, user: User) -> Member:
        return Member.objects.get(project=self.project, user=user)

    def items(self) -> list[Item]:
        return list(self.project.items.order_by("pk"))


def make_desk(
    *, people: int = 2, n_items: int = 4, settings: Mapping[str, Any] | None = None, **options: Any
) -> Desk:
    """An open project with `n_items` pairs for two personas, without gold or repeats."""
    manager = User.objects.filter(username="mara").first() or make_user("mara", Role.ADMIN)
    users = [make_user(f"ann-{n}", Role.ANNOTATOR) for n in range(1, people + 1)]
    project = projects.create_project(
        actor=manager,
        name=options.get("name", "Pairs"),
        guidelines=GUIDELINES,
        settings={**PLAIN, **(settings or {})},
    )
    projects.add_members(actor=manager, project=project, users=users)
    desk = Desk(manager, project, users, make_versions())
    add_pairs(desk, n_items)
    if n_items and options.get("open", True):
        desk.project = projects.move_project(actor=manager, project=project, to=ProjectState.OPEN)
    return desk


def make_versions() -> list[PersonaVersion]:
    """An expert who wants it short and a novice who wants steps."""
    wanted = {
        "expert-1": ("Backend engineer, ten years. Wants the conclusion first.", "expert"),
        "novice-1": ("First week with SQL. Wants every step explained.", "novice"),
    }
    found = []
    for name, (summary, expertise) in wanted.items():
        persona = Persona.objects.filter(pseudonym=name).first() or create_persona(
            actor=None,
            pseudonym=name,
            summary=summary,
            features={"expertise": expertise, "language": "en"},
        )
        found.append(persona.versions.first())
    return [version for version in found if version is not None]


def add_pairs(desk: Desk, n: int, start: int = 0) -> list[items.Added]:
    drafts = []
    for number in range(start, start + n):
        prompt = get_or_create_prompt(messages=f"How do I do thing number {number}?")
        drafts.append(
            items.ItemDraft(
                prompt_id=prompt.pk,
                prompt_digest=prompt.text_hash,
                first=f"Short: run command {number}.",
                second=f"Step by step. First open a window, then think of {number} and go on.",
                persona_version_id=desk.versions[number % 2].pk,
                first_producer="Harbor",
                second_producer="Quarry",
                source=f"pairs.jsonl:{number + 1}",
            )
        )
    return items.add_items(project=desk.project, drafts=drafts)


Choose = Callable[[Lease], str]


def first_is_better(_lease: Lease) -> str:
    return "first"


def label_once(desk: Desk, user: User, choose: Choose = first_is_better, **values: Any) -> Any:
    """Take the next item and label both axes the same. None: nothing is left."""
    lease = leases.serve(user=user, project=desk.project).lease
    return None if lease is None else submit(user, lease, choose(lease), **values)


def submit(user: User, lease: Lease, verdict: str, **values: Any) -> labels.Submitted:
    """Submit a canonical verdict on all axes of the project."""
    shown = as_shown(verdict, lease.first_left)
    verdicts = dict.fromkeys(lease.member.project.axes, shown)
    values = {"active_ms": 4000, **values}
    answer = labels.Answer(verdicts=verdicts, **values)
    return labels.submit_label(user=user, token=lease.token, answer=answer)


def label_all(desk: Desk, choose: Choose = first_is_better, limit: int = 1000) -> int:
    """Let the annotators take turns until nothing is left. Number of labels."""
    given, waiting = 0, list(desk.people)
    while waiting and given < limit:
        user = waiting.pop(0)
        if label_once(desk, user, choose) is not None:
            given += 1
            waiting.append(user)
    return given


def working(desk: Desk) -> None:
    """Let everybody skip the onboarding set."""
    desk.project.members.update(state=MemberState.WORKING)
