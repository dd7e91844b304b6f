"""Whether a project's books are right, whatever happened at the same time."""

from __future__ import annotations

from collections import Counter

from annotation.enums import Axis, ItemState, LeaseState
from annotation.models import Item, Label, Lease, Project
from annotation.overlap import Action, next_step

BY_LABELS = (ItemState.OPEN, ItemState.DONE, ItemState.DISPUTED)
STATE = {
    Action.WAIT: ItemState.OPEN,
    Action.SETTLE: ItemState.DONE,
    Action.DISPUTE: ItemState.DISPUTED,
}


def mistakes(project: Project) -> list[str]:
    """Everything that does not fit, in words. Empty: the books are right."""
    found: list[str] = []
    for item in project.items.select_related("quality_decision", "personalization_decision"):
        leases = list(item.leases.select_related("head").order_by("pk"))
        found += _places(item, leases) + _outcome(project, item, leases)
    for lease in Lease.objects.filter(member__project=project).select_related("head"):
        found += _revisions(lease)
    return found


def _places(item: Item, leases: list[Lease]) -> list[str]:
    counted = [lease for lease in leases if lease.counted]
    done = [lease for lease in counted if lease.state == LeaseState.SUBMITTED]
    found = []
    if (item.live, item.done) != (len(counted), len(done)):
        found.append(f"{item.pk}: {item.live}/{item.done}, really {len(counted)}/{len(done)}")
    if len(counted) > item.target:
        found.append(f"{item.pk}: {len(counted)} places, {item.target} wanted")
    people = Counter(lease.member_id for lease in counted)
    if people and max(people.values()) > 1:
        found.append(f"{item.pk}: somebody holds two places")
    return found


def _outcome(project: Project, item: Item, leases: list[Lease]) -> list[str]:
    if item.state not in BY_LABELS:
        return []
    labels = [
        {axis: getattr(lease.head, axis) for axis in Axis.values}
        for lease in leases
        if lease.counted and lease.state == LeaseState.SUBMITTED
    ]
    most = max(project.max_overlap, item.target)
    step = next_step(labels, project.axes, item.target, most)
    if item.state != STATE.get(step.action):
        return [f"{item.pk}: {item.state}, but the labels say {step.action}"]
    found = []
    for axis in project.axes:
        decision = getattr(item, f"{axis}_decision")
        wanted = None if step.action == Action.WAIT else step.outcomes[axis].verdict
        have = None if decision is None else decision.verdict
        if have != wanted:
            found.append(f"{item.pk}: {axis} is {have}, the labels say {wanted}")
    return found


def _revisions(lease: Lease) -> list[str]:
    """The head is the newest of an unbroken row of revisions, and fits the lease's state."""
    rows = list(Label.objects.filter(lease=lease).order_by("revision"))
    if [row.revision for row in rows] != list(range(1, len(rows) + 1)):
        return [f"lease {lease.pk}: revisions {[row.revision for row in rows]}"]
    if (rows[-1].pk if rows else None) != lease.head_id:
        return [f"lease {lease.pk}: the head is not the newest label"]
    submitted = bool(rows) and not rows[-1].is_undo
    if (lease.state in (LeaseState.SUBMITTED, LeaseState.SET_ASIDE)) != submitted:
        return [f"lease {lease.pk}: {lease.state}, but its labels say otherwise"]
    return []
