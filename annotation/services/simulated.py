"""Simulated labels: through the same services as people's, by accounts without a password."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth.hashers import make_password
from django.db import transaction

from annotation.enums import LeaseState, Shown
from annotation.models import Lease, Project
from annotation.policies import allowed_outcomes
from annotation.selectors.tasks import as_canonical, as_shown
from annotation.services import labels, leases
from annotation.services.leases import Served
from annotation.simulation import SimulatedAnnotator, planted_truth
from webapp.accounts.enums import Role
from webapp.accounts.models import User

NAME = "sim-annotator-{n:02d}"
Truth = Callable[[str, Lease], str]


def make_simulated_annotators(n: int) -> list[User]:
    """Accounts without a password, marked as simulated."""
    names = [NAME.format(n=number) for number in range(1, n + 1)]
    known = set(User.objects.filter(username__in=names).values_list("username", flat=True))
    User.objects.bulk_create(
        User(
            username=name,
            role=Role.ANNOTATOR,
            password=make_password(None),
            preferences={"simulated": True},
        )
        for name in names
        if name not in known
    )
    return list(User.objects.filter(username__in=names, preferences__simulated=True).order_by("pk"))


def taste_of_item(axis: str, lease: Lease) -> str:
    """The planted verdict of an item on an axis, from its persona and texts."""
    item = lease.item
    version = item.persona_version
    features = version.persona.features if version else {}
    return planted_truth(axis, features, item.body.first, item.body.second, item.content_sha256)


def simulate_labels(
    *,
    project: Project,
    annotators: Sequence[tuple[User, SimulatedAnnotator]],
    limit: int,
    truth: Truth = taste_of_item,
    on_label: Callable[[], object] = lambda: None,
) -> int:
    """Let the annotators take turns until `limit` labels stand or nothing is left. New labels.

    Goes on where an interrupted run stopped.
    """
    standing = Lease.objects.filter(
        member__project=project, member__user__preferences__simulated=True
    ).filter(state=LeaseState.SUBMITTED)
    missing, given = limit - standing.count(), 0
    waiting = deque(annotators)
    while waiting and given < missing:
        user, person = waiting.popleft()
        if _label_once(project, user, person, truth):
            given += 1
            waiting.append((user, person))
            on_label()
    return given


def _label_once(project: Project, user: User, person: SimulatedAnnotator, truth: Truth) -> bool:
    """Take the next item and label it. False: nothing is left for this annotator."""
    with transaction.atomic():
        served: Served = leases.serve(user=user, project=project)
        lease = served.lease
        if lease is None:
            return False
        answer = _answer(project, lease, person, truth)
        labels.submit_label(user=user, token=lease.token, answer=answer)
    return True


def _answer(
    project: Project, lease: Lease, person: SimulatedAnnotator, truth: Truth
) -> labels.Answer:
    key = lease.item.content_sha256
    verdicts: dict[str, str] = {}
    strengths: dict[str, int] = {}
    for axis in project.axes:
        verdict = person.verdict(axis, truth(axis, lease), key, allowed_outcomes(project))
        if person.says_left(axis, key):
            verdict = as_canonical(Shown.LEFT, lease.first_left)
        verdicts[axis] = as_shown(verdict, lease.first_left)
        strengths[axis] = 2
    values: dict[str, Any] = {"verdicts": verdicts, "active_ms": person.active_ms(key)}
    if project.ask_strength:
        values["strengths"] = strengths
    return labels.Answer(**values)
