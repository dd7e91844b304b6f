"""The audit log: chained, append-only, readable by those who may."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse

from webapp.accounts.models import User
from webapp.core import audit
from webapp.core.models import Event
from webapp.core.views import ACTIONS

pytestmark = pytest.mark.django_db


def test_lines_are_chained(alice: User) -> None:
    for n in range(3):
        audit.record(actor=alice, action="test", obj=alice, n=n)
    assert audit.verify_chain() == 3
    hashes = list(Event.objects.order_by("n").values_list("previous_hash", "hash"))
    assert hashes[1][0] == hashes[0][1]


def test_a_line_can_be_neither_changed_nor_removed(alice: User) -> None:
    event = audit.record(actor=alice, action="test", obj=alice)
    with pytest.raises(IntegrityError), transaction.atomic():
        Event.objects.filter(pk=event.pk).update(action="other")
    with pytest.raises(IntegrityError), transaction.atomic():
        Event.objects.filter(pk=event.pk).delete()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="drops a trigger by its SQLite name")
def test_whoever_gets_past_the_triggers_is_found_out(alice: User) -> None:
    for n in range(3):
        audit.record(actor=alice, action="test", obj=alice, n=n)
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER core_event_no_update")
        cursor.execute("UPDATE core_event SET action = 'forged' WHERE n = 2")
    page = Client()
    page.force_login(alice)
    text = page.get(reverse("core:audit"), {"check": "1"}).content.decode()
    assert "The chain is broken" in text
    assert "line 2" not in text  # that sentence is English and for the log
    with pytest.raises(ValueError, match="line 2"):
        audit.verify_chain()


def test_administrators_and_viewers_read_it(alice: User, vera: User, bob: User) -> None:
    audit.record(actor=alice, action="test_action", obj=alice)
    for user, status in ((alice, 200), (vera, 200), (bob, 403)):
        client = Client()
        client.force_login(user)
        response = client.get(reverse("core:audit"), {"check": "1"})
        assert response.status_code == status
    client = Client()
    client.force_login(alice)
    page = client.get(reverse("core:audit"), {"check": "1"}).content.decode()
    assert "test_action" in page
    assert "1 line checked" in page


@pytest.mark.skipif(connection.vendor != "sqlite", reason="drops a trigger by its SQLite name")
def test_a_tail_that_was_cut_off_is_missed(alice: User) -> None:
    for n in range(3):
        audit.record(actor=alice, action="test", obj=alice, n=n)
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER core_event_no_delete")
        cursor.execute("DELETE FROM core_event WHERE n = 3")
    with pytest.raises(ValueError, match="after 2"):
        audit.verify_chain()


def test_actions_are_said_in_words_and_an_empty_reason_is_not_said(alice: User) -> None:
    audit.record(actor=alice, action="round_closed", obj=alice, reason="", was="open")
    client = Client()
    client.force_login(alice)
    text = client.get(reverse("core:audit")).content.decode()
    assert "<td>closed a round</td>" in text
    assert "was: open" in text
    assert "reason" not in text


def test_every_action_has_its_words() -> None:
    root = Path(__file__).resolve().parents[2]
    sources = [
        path.read_text()
        for name in ("annotation", "arena", "training", "webapp")
        for path in root.glob(f"{name}/**/*.py")
    ]
    written = {name for text in sources for name in re.findall(r'\baction="([a-z_]{4,})"', text)}
    assert written - {"store_true", "append"} <= set(ACTIONS)
