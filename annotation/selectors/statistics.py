"""Reading the newest statistics of a project."""

from __future__ import annotations

from annotation.models import Project, StatisticsSnapshot


def newest_snapshot(project: Project) -> StatisticsSnapshot | None:
    return StatisticsSnapshot.objects.filter(project=project).order_by("-pk").first()
