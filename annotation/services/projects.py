"""Making and changing projects, their guidelines and members."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation import policies
from annotation.assignment import pseudonym
from annotation.enums import Axis, MemberState, ProjectState, WebhookEvent
from annotation.models import Guideline, Label, Member, Project
from annotation.services.project_settings import SETTINGS, check_settings
from annotation.services.queue import refresh_targets, restratify, retarget
from annotation.services.texts import checked_reason
from annotation.services.webhooks import announce
from webapp.catalog.texts import sha256
from webapp.core import audit, jobs
from webapp.core.errors import InvalidInput, Refused
from webapp.core.locking import retry_deadlocks

# What labels mean must not change under the labels.
FIXED_ONCE_LABELLED = ("axes", "ask_strength", "allow_tie", "allow_both_bad")
GUIDELINE_LIMIT = 50_000


def create_project(
    *, actor: Any, name: str, guidelines: str, settings: Mapping[str, Any] | None = None
) -> Project:
    """A draft with version 1 of its guidelines. Raises InvalidInput naming the field."""
    policies.check_manage(actor)
    values = {"axes": list(Axis.values), **(settings or {}), "name": name.strip()}
    check_settings(values)
    _check_guideline(guidelines)
    try:
        with transaction.atomic():
            project = Project.objects.create(seed=secrets.token_hex(32), created_by=actor, **values)
            audit.record(actor=actor, action="create_project", obj=project, **values)
            _append_guideline(actor, project, guidelines)
    except IntegrityError as error:
        raise InvalidInput(
            _("There is a project “%(name)s” already.") % {"name": values["name"]},
            field="name",
            code="taken",
        ) from error
    return project


@retry_deadlocks
def change_project(*, actor: Any, project: Project, settings: Mapping[str, Any]) -> Project:
    """Change settings. What labels mean is fixed as soon as there is one.

    Another overlap reaches the items that are not settled; other features of strata sort all items
    anew and let go of the old targets; other targets open and park items.
    """
    policies.check_manage(actor)
    with transaction.atomic():
        row = locked(project.pk)
        check_settings({**_columns(row), **settings})
        changes = {k: v for k, v in settings.items() if getattr(row, k) != v}
        fixed = [name for name in FIXED_ONCE_LABELLED if name in changes]
        if fixed and is_labelled(row):
            raise Refused(
                _("There are labels already: what is asked cannot change. Make a new project."),
                code="labelled",
            )
        if "stratum_features" in changes:
            changes.setdefault("targets", {})
        if changes:
            for name, value in changes.items():
                setattr(row, name, value)
            row.save(update_fields=list(changes))
            audit.record(actor=actor, action="change_project", obj=row, **changes)
            _apply(row, set(changes))
    return row


def _columns(project: Project) -> dict[str, Any]:
    return {name: getattr(project, name) for name in SETTINGS}


def is_labelled(project: Project) -> bool:
    """Whether the project holds a label, so that what is asked is fixed."""
    return Label.objects.filter(member__project=project).exists()


def _apply(project: Project, changed: set[str]) -> None:
    """What changed settings do to the items, in the same transaction."""
    if changed & {"base_overlap", "max_overlap"}:
        retarget(project)
        jobs.enqueue("settle_ready", project.pk)
    if "axes" in changed:
        _reorder_axes(project)
    if "stratum_features" in changed:
        restratify(project)
    if changed & {"stratum_features", "targets"}:
        refresh_targets(project=project)


def _reorder_axes(project: Project) -> None:
    """Members are asked about the project's axes, every second one in the other order."""
    for n, member in enumerate(project.members.order_by("pk")):
        member.axes = list(project.axes) if n % 2 == 0 else list(reversed(project.axes))
        member.save(update_fields=["axes"])


def locked(pk: int) -> Project:
    """The project with its row locked; call inside a transaction."""
    return Project.objects.select_for_update(no_key=True).get(pk=pk)


def move_project(*, actor: Any, project: Project, to: str, reason: str = "") -> Project:
    """Open, pause or close. Sent twice it moves once."""
    policies.check_manage(actor)
    reason = checked_reason(reason)
    with transaction.atomic():
        row = locked(project.pk)
        if row.state == to:
            return row
        policies.check_move(row, to)
        if to == ProjectState.OPEN and not row.items.exists():
            raise Refused(_("The project has no items yet. Import some first."), code="no_items")
        was, row.state = row.state, to
        row.save(update_fields=["state"])
        audit.record(
            actor=actor, action="move_project", obj=row, before=was, after=to, reason=reason
        )
        announce(row, WebhookEvent.PROJECT_STATE, {"before": was, "after": to})
    return row


def publish_guidelines(*, actor: Any, project: Project, text: str) -> Guideline:
    """The next version of the guidelines. The same text again is the same version."""
    policies.check_manage(actor)
    _check_guideline(text)
    with transaction.atomic():
        row = locked(project.pk)
        newest = row.guidelines.first()
        if newest is not None and newest.text == text:
            return newest
        return _append_guideline(actor, row, text)


def _check_guideline(text: str) -> None:
    if not text.strip():
        raise InvalidInput(_("Write down what annotators should go by."), field="guidelines")
    if len(text) > GUIDELINE_LIMIT or "\x00" in text:
        raise InvalidInput(
            _("At most %(most)s characters, none of them NUL.") % {"most": GUIDELINE_LIMIT},
            field="guidelines",
        )


def _append_guideline(actor: Any, project: Project, text: str) -> Guideline:
    newest = project.guidelines.first()
    row = Guideline.objects.create(
        project=project,
        n=newest.n + 1 if newest else 1,
        text=text,
        text_sha256=sha256(text),
        created_by=actor,
    )
    audit.record(actor=actor, action="publish_guidelines", obj=project, n=row.n)
    return row


def add_members(
    *, actor: Any, project: Project, users: Iterable[Any], adjudicates: bool = False
) -> list[Member]:
    """Let these accounts work in the project. Who is in already stays as he is."""
    policies.check_manage(actor)
    found = []
    with transaction.atomic():
        row = locked(project.pk)
        for user in users:
            policies.check_worker(user)
            found.append(_member(actor, row, user, adjudicates))
    return found


def _member(actor: Any, project: Project, user: Any, adjudicates: bool) -> Member:
    known = project.members.filter(user=user).first()
    if known is not None and known.state != MemberState.LEFT:
        if known.adjudicates != adjudicates:
            known.adjudicates = adjudicates
            known.save(update_fields=["adjudicates"])
            audit.record(actor=actor, action="set_adjudicator", obj=known, adjudicates=adjudicates)
        return known
    if known is not None:
        known.state, known.adjudicates = MemberState.ONBOARDING, adjudicates
        known.paused_reason = ""
        known.save(update_fields=["state", "adjudicates", "paused_reason"])
        member = known
    else:
        axes = list(project.axes)
        if project.members.count() % 2:
            axes.reverse()  # which axis comes first is balanced over the annotators
        member = Member.objects.create(
            project=project,
            user=user,
            pseudonym=pseudonym(project.seed, user.pk),
            adjudicates=adjudicates,
            axes=axes,
        )
    audit.record(actor=actor, action="add_member", obj=project, member=member.pseudonym)
    return member


def set_member_state(*, actor: Any, member: Member, state: str, reason: str = "") -> Member:
    """Pause a member, let her go on, or let her leave. What she submitted stays.

    Who goes on after a pause begins a new account for the gate: she is paused again only for what
    she does from now on.
    """
    policies.check_manage(actor)
    reason = checked_reason(reason)
    with transaction.atomic():
        row = locked_member_row(member.pk)
        policies.check_member_move(row, state)
        if row.state != state:
            was, row.state, row.paused_reason = row.state, state, reason
            if state == MemberState.WORKING:
                row.gate_from = timezone.now()
            row.save(update_fields=["state", "paused_reason", "gate_from"])
            audit.record(
                actor=actor, action="member_state", obj=row, before=was, after=state, reason=reason
            )
    return row


def set_adjudicates(*, actor: Any, member: Member, adjudicates: bool) -> Member:
    """Let a member decide disputed items, or no longer."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = locked_member_row(member.pk)
        if row.adjudicates != adjudicates:
            row.adjudicates = adjudicates
            row.save(update_fields=["adjudicates"])
            audit.record(actor=actor, action="set_adjudicator", obj=row, adjudicates=adjudicates)
    return row


def locked_member_row(pk: int) -> Member:
    """The member with the row locked; call inside a transaction."""
    return Member.objects.select_for_update(of=("self",), no_key=True).get(pk=pk)
