"""Files made once and kept, and how often strangers may fetch them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from django.conf import settings as django_settings
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django import Settings
from rest_framework.request import Request
from rest_framework.settings import APISettings
from rest_framework.throttling import AnonRateThrottle

from arena import exports
from arena.services import closing, ratings
from tests.arena.factories import make_world, open_round, unsealed_round
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Refused
from webapp.core.kept import forget_kept_files, kept_file
from webapp.core.throttle import DownloadThrottle


@pytest.fixture(autouse=True)
def media(settings: Settings, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def kept(media: Path) -> list[str]:
    return sorted(path.name for path in (media / "kept").rglob("*") if path.is_file())


def test_a_file_is_made_once_however_many_ask_at_once(media: Path) -> None:
    calls: list[int] = []
    found: list[bytes] = []

    def write(out: BinaryIO) -> None:
        calls.append(1)
        time.sleep(0.1)
        out.write(b"made")

    def ask() -> None:
        with kept_file("group", "name", write) as file:
            found.append(file.read())

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [b"made"] * 6
    assert len(calls) == 1
    assert kept(media) == ["name"]


def test_a_failure_leaves_nothing_and_a_new_name_replaces_the_old(media: Path) -> None:
    def fail(out: BinaryIO) -> None:
        out.write(b"half")
        raise Refused("no")

    with pytest.raises(Refused):
        kept_file("group", "one", fail)
    assert kept(media) == []
    kept_file("group", "one", lambda out: None).close()
    kept_file("other", "one", lambda out: None).close()
    kept_file("group", "two", lambda out: None).close()
    assert kept(media) == ["one", "two"]
    forget_kept_files()
    assert kept(media) == []


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["bundle", "votes_file"])
def test_a_download_is_built_once_per_round(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = unsealed_round(make_world())
    url = reverse(f"arena:{name}", args=[round_.pk])
    first = Client().get(url)
    body = first.getvalue()
    assert int(first["Content-Length"]) == len(body) > 0
    for part in ("bundle_input", "bundle_votes"):
        monkeypatch.setattr(exports, part, None)  # building again would fail
    assert Client().get(url).getvalue() == body


@pytest.mark.django_db
def test_an_erasure_makes_the_bundle_anew_and_leaves_no_old_one(
    media: Path, django_capture_on_commit_callbacks: Any
) -> None:
    world = make_world()
    round_ = unsealed_round(world)
    before = exports.bundle_file(round_).read()
    with django_capture_on_commit_callbacks(execute=True):
        withdraw_consent(actor=world.admin, persona=world.personas[0])
    assert kept(media) == []
    assert exports.bundle_file(round_).read() != before
    assert len(kept(media)) == 1


@pytest.mark.django_db
def test_the_votes_file_reads_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = unsealed_round(make_world())
    monkeypatch.setattr("arena.selectors.sealed.shown_text", None)
    assert list(exports.vote_lines(round_))


@pytest.mark.django_db
def test_a_bundle_that_cannot_be_built_says_so_in_general(caplog: Any) -> None:
    """The reason is for the log: it is English and names hashes."""
    world = make_world()
    round_ = open_round(world)
    round_ = closing.close_round(actor=world.admin, round_=round_, reason="x")
    ratings.rate_round(round_.pk)
    for actor in (world.admin, world.second_admin):
        round_ = closing.approve_unsealing(actor=actor, round_=round_, reason="x")
    round_.commitment = "0" * 64
    with pytest.raises(Refused) as caught:
        exports.bundle_file(round_)
    assert "stored commitment" not in str(caught.value)
    assert "stored commitment" in caplog.text


# Limits


@pytest.mark.django_db
def test_strangers_may_not_download_without_end(settings: Settings) -> None:
    settings.REST_FRAMEWORK = {
        **django_settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {"downloads": "3/min"},
    }
    world = make_world()
    round_ = unsealed_round(world)
    names = ("bundle", "votes_file", "leaderboard_csv", "leaderboard_json", "leaderboard_svg")
    urls = [reverse(f"arena:{name}", args=[round_.pk]) for name in names]
    stranger, known = Client(), Client()
    known.force_login(world.raters[0])
    assert [stranger.get(url).status_code for url in urls] == [200] * 3 + [429] * 2
    refused = stranger.get(urls[0], headers={"x-forwarded-for": "10.1.1.1"})
    assert refused.status_code == 429
    assert "Wait a minute" in refused.content.decode()
    assert "public" not in refused.get("Cache-Control", "")
    assert [known.get(url).status_code for url in urls] == [200] * 5
    assert Client(REMOTE_ADDR="10.2.2.2").get(urls[0]).status_code == 200
    assert stranger.get(reverse("arena:leaderboard")).status_code == 200


def asking(n: int) -> HttpRequest:
    return RequestFactory().get("/", headers={"x-forwarded-for": f"1.1.1.{n}, 2.2.2.2"})


def test_a_header_does_not_make_somebody_else_of_a_caller() -> None:
    for throttle in (DownloadThrottle(), AnonRateThrottle()):
        assert {throttle.get_ident(Request(asking(n))) for n in range(3)} == {"127.0.0.1"}


def test_behind_a_trusted_proxy_its_word_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    said: Any = {**django_settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    trusted = APISettings(said)
    monkeypatch.setattr("rest_framework.throttling.api_settings", trusted)
    idents = {DownloadThrottle().get_ident(Request(asking(n))) for n in range(3)}
    assert idents == {"2.2.2.2"}
