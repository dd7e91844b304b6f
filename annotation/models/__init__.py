"""The tables of annotation, by noun."""

from annotation.models.items import GoldItem, Item, ItemOrigin, ItemText
from annotation.models.jobs import (
    CounterfactualJob,
    Delivery,
    ExportRun,
    Rewrite,
    Webhook,
)
from annotation.models.projects import Guideline, Member, Project
from annotation.models.quality import (
    Adjudication,
    Appeal,
    Decision,
    Problem,
    SoftLabel,
    StatisticsSnapshot,
)
from annotation.models.work import Label, Lease

__all__ = [
    "Adjudication",
    "Appeal",
    "CounterfactualJob",
    "Decision",
    "Delivery",
    "ExportRun",
    "GoldItem",
    "Guideline",
    "Item",
    "ItemOrigin",
    "ItemText",
    "Label",
    "Lease",
    "Member",
    "Problem",
    "Project",
    "Rewrite",
    "SoftLabel",
    "StatisticsSnapshot",
    "Webhook",
]
