"""Pairs that simulated annotators label: gold among them, one annotator careless."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from annotation.enums import ItemState, MemberState, ProjectState, Verdict
from annotation.models import Item, Lease, Member, Project
from annotation.services import gold, projects, statistics
from annotation.services import imports as pair_imports
from annotation.services.items import release_items
from annotation.services.simulated import make_simulated_annotators
from training.demo.loading import GUIDELINES, PERSONALIZATION, QUALITY, import_rows
from training.demo.loop import town
from training.demo.loop.people import Person, label, together
from training.demo.loop.town import Row
from training.demo.world import Corner, Sizes
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token

AXES = {"quality": QUALITY, "personalization": PERSONALIZATION}
ACCURACY = (0.97, 0.96, 0.96, 0.95, 0.95, 0.94, 0.93)
CARELESS = 0.4  # the last annotator: gold finds her
FLOOR, SEEN, GOLD_PERCENT = 50, 10, 12  # paused by gold: below the floor, after so many
OUTCOMES = {"left": Verdict.FIRST, "right": Verdict.SECOND}
# With one label a pair, one in fourteen is wrong: too many for learning rare defects every time.
OVERLAP = (2, 3)
# Splits whose pairs measure. Swaps of the gate's split are what GRPO is watched by.
MEASURED = {
    "quality": ("reward_model_gate", "edge"),
    "personalization": ("reward_model_gate", "edge", "gate"),
}


@dataclass(frozen=True)
class Labelling:
    """The projects of one axis: what is trained on, and what measures."""

    axis: str
    taught: Project
    measured: Project

    @property
    def projects(self) -> list[Project]:
        return [self.taught, self.measured]


def pairs_of(axis: str, corners: list[tuple[Corner, str]], sizes: Sizes, seed: int) -> list[Any]:
    """(split, rows) for every corner whose pairs train or measure a reward model."""
    rng = random.Random(f"{axis} {seed}")  # noqa: S311 - chance with a seed, no secrets
    found = []
    for corner, split in corners:
        measures = split in MEASURED[axis]
        if split == "train" or measures:
            rows = town.pairs(corner, axis, sizes, rng, clean=measures)
            found.append((split, town.distinct(rows)))
    return found


def prepared(
    actor: Any, prefix: str, corners: list[tuple[Corner, str]], sizes: Sizes, seed: int
) -> list[Labelling]:
    """The projects of both axes with their items, gold and members, open. Harmless twice."""
    users = make_simulated_annotators(len(ACCURACY) + 1)
    found = []
    for axis in AXES:
        rows = pairs_of(axis, corners, sizes, seed)
        taught = [row for split, some in rows if split == "train" for row in some]
        measured = [row for split, some in rows if split != "train" for row in some]
        found.append(
            Labelling(
                axis,
                _project(actor, f"{prefix}: {axis}", axis, taught, users),
                _project(actor, f"{prefix}: {axis}, measured", axis, measured, users),
            )
        )
    return found


def _project(actor: Any, name: str, axis: str, rows: list[Row], users: list[User]) -> Project:
    known = Project.objects.filter(name=name).first()
    if known is not None and known.state != ProjectState.DRAFT:
        return known
    base, most = OVERLAP
    settings = {
        "axes": [axis], "base_overlap": base, "max_overlap": most, "repeat_percent": 0,
        "onboarding_size": 0, "gold_percent": GOLD_PERCENT, "gold_floor": FLOOR,
        "gold_minimum": SEEN,
    }  # fmt: skip
    project = known or projects.create_project(
        actor=actor, name=name, guidelines=GUIDELINES[AXES[axis]], settings=settings
    )
    options = pair_imports.check_options(project, {"axis": axis})
    kind = pair_imports.KIND
    import_rows(actor, rows, "palate_pairs", kind=kind, subject=project.pk, options=options)
    give_out(actor, project)
    make_gold(actor, project, axis)
    projects.add_members(actor=actor, project=project, users=users)
    return projects.move_project(actor=actor, project=project, to=ProjectState.OPEN)


def give_out(actor: Any, project: Project) -> None:
    """Pairs that differ in a word are held back until a manager has looked at them: here that word
    is the mistake, and nothing else shows a reward model what it is."""
    held = project.items.filter(state=ItemState.HELD)
    release_items(actor=actor, project=project, items=list(held.values_list("pk", flat=True)))


def make_gold(actor: Any, project: Project, axis: str) -> None:
    """Some items that an expert has judged: enough to find who does not read."""
    wanted = max(4, min(40, project.items.count() // 12))
    rows = project.items.select_related("body", "prompt", "persona_version__text")
    for item in rows.order_by("content_sha256")[:wanted]:
        if item.state == ItemState.OPEN:
            truth = truth_of(axis, item)
            gold.make_gold(actor=actor, item=item, verdicts={axis: truth}, reason="Expert")


def truth_of(axis: str, item: Item) -> str:
    version = item.persona_version
    summary = version.text.summary if version else ""
    question = str(item.prompt.messages[-1]["content"])
    said = town.opinion(axis, summary, question, (item.body.first, item.body.second))
    return str(OUTCOMES.get(said, said))


def annotators(seed: int) -> list[Person]:
    users = make_simulated_annotators(len(ACCURACY) + 1)
    skill = dict(zip([user.pk for user in users], (*ACCURACY, CARELESS), strict=True))
    return [
        Person(user.username, create_api_token(user=user, name="loop"), skill[user.pk], seed)
        for user in users
    ]


def label_all(address: str, people: list[Person], work: list[Labelling]) -> dict[str, int]:
    """Everybody labels over HTTP until nothing is left. New labels by person."""
    given = dict.fromkeys((person.name for person in people), 0)
    for labelling in work:
        for project in labelling.projects:
            while (found := _pass(address, people, project)) is not None:
                for name, count in found.items():
                    given[name] += count
    return given


def _pass(address: str, people: list[Person], project: Project) -> dict[str, int] | None:
    """One turn of everybody; None where nothing is left to do."""
    project.refresh_from_db()
    if project.state != ProjectState.OPEN:
        return None
    found = together(lambda person: label(address, person, project.pk, town.opinion), people)
    return found if any(found.values()) else None


def close(actor: Any, work: list[Labelling]) -> None:
    """Compute the statistics and close the projects."""
    for labelling in work:
        for project in labelling.projects:
            project.refresh_from_db()
            if project.state == ProjectState.OPEN:
                statistics.request_statistics(actor=actor, project=project)
                projects.move_project(actor=actor, project=project, to=ProjectState.CLOSED)


def paused(work: list[Labelling]) -> list[str]:
    """Who was paused by gold, with her account."""
    rows = Member.objects.filter(
        project__in=[p.pk for labelling in work for p in labelling.projects],
        state=MemberState.PAUSED,
    ).select_related("user")
    return [f"{row.user} ({row.gold_right} of {row.gold_seen} gold)" for row in rows if row.user]


def labels_of(work: list[Labelling]) -> int:
    projects_ = [p.pk for labelling in work for p in labelling.projects]
    return Lease.objects.filter(item__project__in=projects_, state="submitted").count()
