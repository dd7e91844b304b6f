"""Disputed items, appeals and reports for tests."""

from __future__ import annotations

from typing import Any

from annotation.enums import ProblemKind
from annotation.models import Appeal, Item, Lease, Problem
from annotation.selectors.tasks import as_shown
from annotation.services import adjudication
from tests.annotation.factories import Desk, label_all, make_desk
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.accounts.models import User

SAID = ("first", "second", "tie")


def disputed_desk(*, n_items: int = 2, **options: Any) -> Desk:
    """Three annotators who never agree on any item."""
    settings = {"base_overlap": 2, "max_overlap": 3, **options.pop("settings", {})}
    desk = make_desk(people=3, n_items=n_items, settings=settings, **options)
    said = dict(zip([user.pk for user in desk.people], SAID, strict=True))
    label_all(desk, lambda lease: said[lease.member.user_id or 0])
    return desk


def adjudicator(desk: Desk, name: str = "judith") -> User:
    """A member who decides and has labelled nothing."""
    from annotation.services.projects import add_members

    user = make_user(name, Role.ANNOTATOR)
    add_members(actor=desk.manager, project=desk.project, users=[user], adjudicates=True)
    return user


def decide(user: User, item: Item, verdict: str = "first", **words: Any) -> Item:
    """Claim, decide blind and decide, all axes with the same canonical verdict."""
    row = adjudication.claim_item(user=user, item=item)
    shown = as_shown(verdict, row.first_left)
    verdicts = dict.fromkeys(item.project.axes, shown)
    adjudication.decide_blind(user=user, token=row.token, verdicts=verdicts)
    words = {"reason": "ambiguous", **words}
    adjudication.decide_item(user=user, token=row.token, verdicts=verdicts, **words)
    return Item.objects.get(pk=item.pk)


def appeal(lease: Lease, text: str = "The first answer is wrong, look at line 2.") -> Appeal:
    return Appeal.objects.create(lease=lease, text=text)


def report(desk: Desk, item: Item, user: User, kind: str = ProblemKind.BROKEN) -> Problem:
    return Problem.objects.create(item=item, member=desk.member(user), kind=kind, note="cut off")
