"""Loading a project of pairs through the services the pages use. May run again without harm.

The pairs come from answers whose round is unsealed already: sealed texts never become items.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations

from django.conf import settings
from django.db.models import Q

from annotation.enums import Axis, ItemState, ProjectState
from annotation.models import Item, Project
from annotation.services import catalog_pairs, gold, projects
from annotation.services.simulated import make_simulated_annotators, simulate_labels
from annotation.simulation import SimulatedAnnotator, planted_truth
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog.enums import Split
from webapp.catalog.models import Answer
from webapp.core.errors import Refused

PROJECT = "Which answer suits this person?"
PAIRS, ONBOARDING, HIDDEN, LABELS = 72, 3, 6, 90
ACCURACY = (0.93, 0.86, 0.74)
GUIDELINES = """\
# What to look for

Read the summary of the person, the question and **both answers to the end**.

1. **Content.** Which answer is more correct and more useful? Length does not count. An honest
   “I do not know” stands between a right answer and a wrong one.
2. **Fit.** Which answer would *this person* rather get: the words, the depth, the form?

Choose *equal* where you cannot tell after reading both, *both bad* where you would give neither.
"""
WHY = {
    ("en", True): "The person asks for detail; this answer is the one that gives it.",
    ("en", False): "The person asks for brevity; this answer is the one that gives it.",
    ("zh", True): "这个人想要细节；这个回答给出了细节。",
    ("zh", False): "这个人想要简短；这个回答做到了简短。",
}


def load(*, on_label: Callable[[], object] = lambda: None) -> bool:
    """Load what is missing. False: everything was there. Raises Refused outside a demo."""
    if not settings.DEMO:
        raise Refused("Set PALATE_DEMO=1 to load demo data.", code="no_demo")
    if Project.objects.filter(name=PROJECT).exclude(state=ProjectState.DRAFT).exists():
        return False
    manager = User.objects.filter(role=Role.ADMIN).order_by("pk").first()
    if manager is None:
        raise Refused("Load the accounts first: manage.py load_demo.", code="no_accounts")
    project = Project.objects.filter(name=PROJECT).first() or _create(manager)
    _add_pairs(manager, project)
    _make_gold(manager, project)
    people = make_simulated_annotators(len(ACCURACY))
    projects.add_members(actor=manager, project=project, users=[*_annotators(), *people])
    adjudicators = _annotators()[-1:]
    projects.add_members(actor=manager, project=project, users=adjudicators, adjudicates=True)
    project = projects.move_project(actor=manager, project=project, to=ProjectState.OPEN)
    simulate_labels(
        project=project,
        annotators=[
            (user, SimulatedAnnotator(user.username, 1, accuracy))
            for user, accuracy in zip(people, ACCURACY, strict=True)
        ],
        limit=LABELS,
        on_label=on_label,
    )
    return True


def _create(manager: User) -> Project:
    return projects.create_project(
        actor=manager,
        name=PROJECT,
        guidelines=GUIDELINES,
        settings={
            "tags": ["wrong", "incomplete", "wordy", "terse", "off_persona", "depends"],
            "onboarding_size": ONBOARDING,
            "gold_percent": 10,
            "stratum_features": ["expertise", "language"],
            "price_cents": 12,
        },
    )


def _annotators() -> list[User]:
    rows = User.objects.filter(role=Role.ANNOTATOR).order_by("pk")
    return [user for user in rows if not user.preferences.get("simulated")]


def _add_pairs(manager: User, project: Project) -> None:
    """Pairs of different contestants, spread over the questions."""
    readable: dict[tuple[int, int | None], list[Answer]] = defaultdict(list)
    for answer in (
        Answer.objects.filter(seal__released_at__isnull=False, body__isnull=False)
        .exclude(Q(prompt__split=Split.HOLDOUT) | Q(persona_version__persona__split=Split.HOLDOUT))
        .select_related("prompt", "contestant", "body", "seal")
        .order_by("public_id")
    ):
        readable[answer.prompt_id, answer.persona_version_id].append(answer)
    for n, key in enumerate(sorted(readable, key=str)):
        if project.items.count() >= PAIRS:
            return
        pairs = list(combinations(readable[key], 2))
        first, second = pairs[n % len(pairs)] if pairs else (None, None)
        if first is not None and second is not None:
            catalog_pairs.add_catalog_pair(
                actor=manager, project=project, first=first, second=second
            )


def _make_gold(manager: User, project: Project) -> None:
    """Items whose persona says plainly what is wanted."""
    known = project.items.filter(state=ItemState.GOLD).count()
    rows = (
        project.items.filter(
            state=ItemState.OPEN, persona_version__persona__features__detail__in=["low", "high"]
        )
        .select_related("body", "prompt", "persona_version__persona")
        .order_by("shuffle_key")[: ONBOARDING + HIDDEN - known]
    )
    for n, item in enumerate(rows, start=known):
        gold.make_gold(
            actor=manager,
            item=item,
            verdicts={Axis.PERSONALIZATION: _planted(item)},
            explanation=_why(item),
            onboarding=n < ONBOARDING,
            reason="Demonstration",
        )


def _features(item: Item) -> dict[str, str]:
    return dict(item.persona_version.persona.features) if item.persona_version else {}


def _planted(item: Item) -> str:
    body = item.body
    key = item.content_sha256
    return planted_truth(Axis.PERSONALIZATION, _features(item), body.first, body.second, key)


def _why(item: Item) -> str:
    language = "zh" if item.prompt.language.startswith("zh") else "en"
    return WHY[language, _features(item).get("detail") == "high"]
