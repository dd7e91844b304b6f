"""Making and changing projects, their guidelines and members."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from annotation import policies
from annotation.assignment import pseudonym
from annotation.enums import Axis, MemberState, ProjectState
from annotation.models import Guideline, Member, Project
from webapp.catalog.enums import STRATUM_FEATURES
from webapp.catalog.texts import sha256
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused

PERCENT_COLUMNS = ("gold_percent", "gold_floor", "repeat_percent")
SETTINGS = (
    "name",
    "axes",
    "ask_strength",
    "allow_tie",
    "allow_both_bad",
    "tags",
    "base_overlap",
    "max_overlap",
    "gold_percent",
    "gold_floor",
    "gold_minimum",
    "repeat_percent",
    "onboarding_size",
    "lease_minutes",
    "stratum_features",
    "targets",
    "price_cents",
    "currency",
)
# What labels mean must not change under the labels.
FIXED_ONCE_LABELLED = ("axes", "ask_strength", "allow_tie", "allow_both_bad")
GUIDELINE_LIMIT = 50_000


def create_project(
    *, actor: Any, name: str, guidelines: str, settings: Mapping[str, Any] | None = None
) -> Project:
    """A draft with version 1 of its guidelines. Raises InvalidInput naming the field."""
    policies.check_manage(actor)
    values = {"axes": list(Axis.values), **(settings or {}), "name": name.strip()}
    _check_settings(values)
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


def change_project(*, actor: Any, project: Project, settings: Mapping[str, Any]) -> Project:
    """Change settings. What labels mean is fixed as soon as there is one."""
    policies.check_manage(actor)
    _check_settings(settings)
    with transaction.atomic():
        row = locked(project.pk)
        changes = {k: v for k, v in settings.items() if getattr(row, k) != v}
        fixed = [name for name in FIXED_ONCE_LABELLED if name in changes]
        if fixed and row.items.filter(labels__isnull=False).exists():
            raise Refused(
                _("There are labels already: what is asked cannot change. Make a new project."),
                code="labelled",
            )
        if changes:
            for name, value in changes.items():
                setattr(row, name, value)
            _check_overlap(row.base_overlap, row.max_overlap)
            row.save(update_fields=list(changes))
            audit.record(actor=actor, action="change_project", obj=row, **changes)
    return row


def _check_settings(values: Mapping[str, Any]) -> None:
    unknown = sorted(set(values) - set(SETTINGS))
    if unknown:
        raise InvalidInput(
            _("There is no setting “%(name)s”.") % {"name": unknown[0]}, field=unknown[0]
        )
    if "name" in values and not values["name"].strip():
        raise InvalidInput(_("Give the project a name."), field="name")
    axes = values.get("axes", Axis.values)
    if not axes or set(axes) - set(Axis.values) or len(set(axes)) != len(axes):
        raise InvalidInput(_("Choose one axis or both."), field="axes")
    for name in PERCENT_COLUMNS:
        if not 0 <= values.get(name, 0) <= 100:
            raise InvalidInput(_("A percentage from 0 to 100."), field=name)
    if values.get("gold_percent", 0) + values.get("repeat_percent", 0) > 50:
        raise InvalidInput(
            _("Gold and repeated items together are at most half of the work."),
            field="gold_percent",
        )
    strange = sorted(set(values.get("stratum_features", [])) - set(STRATUM_FEATURES))
    if strange:
        raise InvalidInput(
            _("“%(name)s” is not a feature of a persona.") % {"name": strange[0]},
            field="stratum_features",
        )
    if "base_overlap" in values and "max_overlap" in values:
        _check_overlap(values["base_overlap"], values["max_overlap"])


def _check_overlap(base: int, most: int) -> None:
    if not 1 <= base <= most <= 50:
        raise InvalidInput(
            _("At least 1 label per item, and the maximum not below it (at most 50)."),
            field="max_overlap",
        )


def locked(pk: int) -> Project:
    """The project with its row locked; call inside a transaction."""
    return Project.objects.select_for_update().get(pk=pk)


def move_project(*, actor: Any, project: Project, to: str, reason: str = "") -> Project:
    """Open, pause or close. Sent twice it moves once."""
    policies.check_manage(actor)
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
        known.save(update_fields=["state", "adjudicates"])
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
    """Pause a member, let her go on, or let her leave. What she submitted stays."""
    policies.check_manage(actor)
    with transaction.atomic():
        row = Member.objects.select_for_update().get(pk=member.pk)
        if row.state != state:
            was, row.state, row.paused_reason = row.state, state, reason[:300]
            row.save(update_fields=["state", "paused_reason"])
            audit.record(
                actor=actor, action="member_state", obj=row, before=was, after=state, reason=reason
            )
    return row
