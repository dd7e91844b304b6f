"""Withdrawn consent erases the texts of items, keeps labels, and empties the queues."""

from __future__ import annotations

import pytest

from annotation.models import Item, ItemText, Label, Lease
from annotation.services import leases
from annotation.services.labels import save_draft
from tests.annotation.factories import label_all, make_desk
from tests.annotation.test_leases import expire_all
from webapp.catalog.services.personas import withdraw_consent

pytestmark = pytest.mark.django_db


def test_texts_go_and_labels_stay() -> None:
    desk = make_desk(people=1, n_items=6)
    label_all(desk, limit=3)
    labels = Label.objects.count()
    leases.serve(user=desk.people[0], project=desk.project)
    withdraw_consent(actor=desk.manager, persona=desk.versions[0].persona)
    gone = Item.objects.filter(persona_version=desk.versions[0])
    assert gone.count() == 3
    assert not ItemText.objects.filter(item__in=gone).exists()
    assert ItemText.objects.count() == 3
    assert Label.objects.count() == labels
    assert set(gone.values_list("state", flat=True)) <= {"done", "dropped"}
    label_all(desk)
    assert not gone.filter(state="open").exists()


def test_drafts_go_too_whatever_became_of_their_leases() -> None:
    desk = make_desk(people=2, n_items=1)
    for user in desk.people:
        lease = leases.serve(user=user, project=desk.project).lease
        assert lease is not None
        save_draft(user=user, token=lease.token, draft={"comment": "of the persona"})
        expire_all()
    assert Lease.objects.exclude(draft={}).count() == 2
    withdraw_consent(actor=desk.manager, persona=desk.versions[0].persona)
    assert not Lease.objects.exclude(draft={}).exists()
