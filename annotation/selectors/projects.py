"""Reading projects, their people, guidelines and strata for managers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from annotation.enums import ItemState, LeaseState, MemberState
from annotation.models import GoldItem, Guideline, Item, Member, Project
from annotation.policies import WORKERS, may_be_set_aside
from annotation.selectors.gold import BY_GATE
from webapp.accounts.models import User

NOT_WANTED = (ItemState.GOLD, ItemState.DROPPED)  # no part of what a project is to come to


@dataclass(frozen=True)
class Overview:
    """A project in the list. `total` leaves gold and dropped items out."""

    project: Project
    done: int
    total: int
    disputed: int
    held: int
    people: int
    percent: int


def projects() -> QuerySet[Project]:
    return Project.objects.order_by("-pk")


def overviews(page: Sequence[Project]) -> list[Overview]:
    """The projects of a page with their numbers, in two statements."""
    ids = [project.pk for project in page]
    states: dict[int, dict[str, int]] = defaultdict(dict)
    rows = Item.objects.filter(project__in=ids).order_by().values_list("project", "state")
    for project, state, n in rows.annotate(n=Count("pk")):
        states[project][state] = n
    members = Member.objects.filter(project__in=ids, user__isnull=False).order_by()
    there = members.exclude(state=MemberState.LEFT).values_list("project")
    people = dict(there.annotate(n=Count("pk")))
    return [_overview(project, states[project.pk], people.get(project.pk, 0)) for project in page]


def _overview(project: Project, states: dict[str, int], people: int) -> Overview:
    total = sum(n for state, n in states.items() if state not in NOT_WANTED)
    done = states.get(ItemState.DONE, 0)
    return Overview(
        project=project,
        done=done,
        total=total,
        disputed=states.get(ItemState.DISPUTED, 0),
        held=states.get(ItemState.HELD, 0),
        people=people,
        percent=100 * done // total if total else 0,
    )


# Strata


@dataclass(frozen=True)
class Stratum:
    """A stratum of the items with its target, if it has one."""

    name: str
    total: int
    done: int
    open: int
    parked: int
    target: int | None


def strata(project: Project) -> list[Stratum]:
    """The strata that the items have, and those that a target names."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    rows = project.items.order_by().exclude(state__in=NOT_WANTED).values_list("stratum", "state")
    for stratum, state, n in rows.annotate(n=Count("pk")):
        counts[stratum][state] = n
    return [
        Stratum(
            name=name,
            total=sum(counts[name].values()),
            done=counts[name][ItemState.DONE],
            open=counts[name][ItemState.OPEN],
            parked=counts[name][ItemState.PARKED],
            target=project.targets.get(name),
        )
        for name in sorted({*counts, *project.targets})
    ]


# Opening


@dataclass(frozen=True)
class Readiness:
    """What an open project would lack. With `no_items` it cannot be opened at all."""

    no_items: bool
    no_members: bool
    no_adjudicator: bool
    no_gold: bool
    no_onboarding: bool
    held: int

    @property
    def complete(self) -> bool:
        lacks = (self.no_items, self.no_members, self.no_gold, self.no_onboarding, self.held)
        return not any(lacks)


def readiness(project: Project) -> Readiness:
    """What to know before a project is opened; three statements."""
    states = dict(project.items.order_by().values_list("state").annotate(n=Count("pk")))
    members = list(
        project.members.filter(user__isnull=False)
        .exclude(state__in=[MemberState.LEFT, MemberState.PAUSED])
        .values_list("adjudicates", flat=True)
    )
    gold = active_gold(project)
    return Readiness(
        no_items=not states,
        no_members=not members,
        no_adjudicator=not any(members),
        no_gold=project.gold_percent > 0 and not gold[0],
        no_onboarding=project.onboarding_size > 0 and not gold[1],
        held=states.get(ItemState.HELD, 0),
    )


def active_gold(project: Project) -> tuple[int, int]:
    """Gold items in use: hidden ones, and those to learn with."""
    later = GoldItem.objects.filter(item=OuterRef("item"), n__gt=OuterRef("n"))
    newest = GoldItem.objects.filter(
        ~Exists(later), item__project=project, item__state=ItemState.GOLD, active=True
    )
    found = dict(newest.order_by().values_list("onboarding").annotate(n=Count("pk")))
    return found.get(False, 0), found.get(True, 0)


# People


@dataclass(frozen=True)
class MemberRow:
    """A member with what she did; `by_gate`: the account on gold paused her."""

    member: Member
    submitted: int
    aside: int
    may_be_set_aside: bool
    last: datetime | None
    by_gate: bool


def member_rows(project: Project) -> list[MemberRow]:
    """Everybody whose labels the project holds; accounts first, then named annotators."""
    done = Q(leases__state=LeaseState.SUBMITTED)
    rows = project.members.select_related("user").annotate(
        submitted=Count("leases", filter=done),
        plain=Count("leases", filter=done & ~Q(leases__item__state=ItemState.GOLD)),
        aside=Count("leases", filter=Q(leases__state=LeaseState.SET_ASIDE)),
        last=Max("leases__submitted_at", filter=done),
    )
    found = [
        MemberRow(
            member=row,
            submitted=row.submitted,
            aside=row.aside,
            may_be_set_aside=row.plain > 0 and may_be_set_aside(row),
            last=row.last,
            by_gate=row.state == MemberState.PAUSED and row.paused_reason.startswith(BY_GATE),
        )
        for row in rows.order_by("pk")
    ]
    return sorted(found, key=lambda entry: (entry.member.user is None, entry.member.pk))


def addable_accounts(project: Project) -> QuerySet[User]:
    """Accounts that may work and are not in the project now."""
    there = project.members.filter(user__isnull=False).exclude(state=MemberState.LEFT)
    rows = User.objects.filter(role__in=WORKERS, is_active=True)
    return rows.exclude(pk__in=there.values("user")).order_by("username")


# Guidelines


def guideline_versions(project: Project) -> list[Guideline]:
    """Every version with its author, the newest first."""
    return list(project.guidelines.select_related("created_by").order_by("-n"))
