"""What a changed setting does to the items that wait: their target, their stratum, their place."""

from __future__ import annotations

from collections import defaultdict

from django.db import transaction
from django.db.models import Count, F
from django.db.models.functions import Greatest

from annotation.enums import ItemState
from annotation.models import Item, Project
from annotation.services.chunks import chunks
from webapp.catalog.models import PersonaVersion
from webapp.catalog.strata import stratum_of

UNSETTLED = (ItemState.OPEN, ItemState.HELD, ItemState.PARKED)


def retarget(project: Project) -> None:
    """Give waiting items the project's number of labels; call in the transaction that changed it.

    Items that disagreement has raised keep their larger number, and nothing falls below the places
    that are taken (`live`). What has enough labels by then is settled by `settle_ready`.
    """
    waiting = project.items.filter(state__in=UNSETTLED)
    plain = waiting.filter(priority=0).exclude(target=project.base_overlap)
    plain.update(target=Greatest(project.base_overlap, F("live")))
    raised = waiting.filter(priority__gt=0, target__lt=project.base_overlap)
    raised.update(target=project.base_overlap)


def ready_projects() -> list[Project]:
    """Projects with items that are ready to be settled."""
    ready = Item.objects.filter(state=ItemState.OPEN, done__gte=F("target"))
    return list(Project.objects.filter(pk__in=ready.values("project").distinct()).order_by("pk"))


def ready_items(project: Project, limit: int) -> list[int]:
    """Open items that have all the labels they want, which only a lower overlap can bring about."""
    rows = project.items.filter(state=ItemState.OPEN, done__gte=F("target"))
    return list(rows.order_by("pk").values_list("pk", flat=True)[:limit])


def restratify(project: Project) -> None:
    """Put every item into its stratum by the features that the project names now.

    Allowed at any time: strata only group items, no label means anything else afterwards. One
    statement per stratum and 500 persona versions, however many items there are.
    """
    used = project.items.exclude(persona_version=None).order_by()
    versions = PersonaVersion.objects.filter(pk__in=used.values("persona_version").distinct())
    groups: dict[str, list[int]] = defaultdict(list)
    for pk, features in versions.order_by("pk").values_list("pk", "persona__features"):
        groups[stratum_of(features, project.stratum_features)].append(pk)
    for stratum, members in sorted(groups.items()):
        for chunk in chunks(members):
            rows = project.items.filter(persona_version__in=chunk)
            rows.exclude(stratum=stratum).update(stratum=stratum)


def refresh_targets(*, project: Project) -> None:
    """Open as many items of each stratum as it is to have, and park the others.

    Strata without a target are open whole. Items that somebody works on stay open.
    """
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        parked = row.items.filter(state=ItemState.PARKED)
        parked.exclude(stratum__in=list(row.targets)).update(state=ItemState.OPEN)
        if not row.targets:
            return
        settled = row.items.filter(state__in=[ItemState.DONE, ItemState.DISPUTED], synthetic=False)
        used = dict(settled.order_by().values_list("stratum").annotate(n=Count("pk")))
        for stratum, wanted in sorted(row.targets.items()):
            _fill(row, stratum, max(wanted - used.get(stratum, 0), 0))


def _fill(project: Project, stratum: str, places: int) -> None:
    """Open the first of the queue up to the number of places, park those behind."""
    rows = project.items.filter(stratum=stratum)
    busy = rows.filter(state=ItemState.OPEN, live__gt=0).count()
    idle = rows.filter(state__in=[ItemState.OPEN, ItemState.PARKED], live=0)
    free = max(places - busy, 0)
    keys = idle.order_by("shuffle_key").values_list("shuffle_key", flat=True)
    border = next(iter(keys[free : free + 1]), None)
    if border is None:
        idle.filter(state=ItemState.PARKED).update(state=ItemState.OPEN)
        return
    idle.filter(state=ItemState.OPEN, shuffle_key__gte=border).update(state=ItemState.PARKED)
    idle.filter(state=ItemState.PARKED, shuffle_key__lt=border).update(state=ItemState.OPEN)
