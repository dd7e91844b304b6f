"""Which version of the guidelines an annotator says that she has read."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from annotation import policies
from annotation.models import Guideline, Member, Project
from webapp.core import audit
from webapp.core.errors import InvalidInput


def confirm_guidelines(*, user: Any, project: Project, guideline: int) -> Member:
    """Note that she read this version. An older one than she read already changes nothing."""
    policies.check_worker(user)
    with transaction.atomic():
        rows = Member.objects.select_for_update().filter(project=project, user=user)
        pk = rows.values_list("pk", flat=True).first()
        if pk is None:
            raise policies.not_a_member()
        member = Member.objects.select_related("guideline_read").get(pk=pk)
        read = Guideline.objects.filter(pk=guideline, project=project).first()
        if read is None:
            raise InvalidInput("", field="guideline", code="unknown_guideline")
        held = member.guideline_read
        if held is None or held.n < read.n:
            member.guideline_read = read
            member.save(update_fields=["guideline_read"])
            audit.record(actor=user, action="read_guidelines", obj=member, n=read.n)
    return member
