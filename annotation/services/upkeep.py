"""What a beat task repairs from the rows."""

from __future__ import annotations

from django.utils import timezone

from annotation.enums import HELD
from annotation.models import Lease, Project
from annotation.services.adjudication import release_expired
from annotation.services.decisions import settle_ready
from annotation.services.leases import sweep_expired
from annotation.services.queue import ready_projects


def sweep_leases() -> int:
    """Give back the leases that ran out in every project. Number of leases."""
    late = Lease.objects.filter(state__in=HELD, expires_at__lte=timezone.now())
    projects = Project.objects.filter(pk__in=late.values("member__project").distinct())
    return sum(sweep_expired(project) for project in projects.order_by("pk"))


def settle_all_ready() -> int:
    """Settle what has enough labels since a project asks for fewer. Number of items."""
    return sum(settle_ready(pk=project.pk) for project in ready_projects())


def release_claims() -> int:
    """Give back what adjudicators had in hand for too long. Number of items."""
    return release_expired()
