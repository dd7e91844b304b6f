"""Contestants whose answers are made here: what is refused, what is kept, what trying out says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from tests.catalog.factories import make_answer, seal
from tests.endpoints import Endpoint
from webapp.accounts.models import User
from webapp.catalog.answering.checkpoint import CheckpointSource, environment
from webapp.catalog.answering.messages import messages_for
from webapp.catalog.answering.protocol import AnswerError, Final, Request
from webapp.catalog.models import Contestant
from webapp.catalog.services.contestant_settings import (
    checkpoint_settings,
    endpoint_settings,
    sampling_settings,
)
from webapp.catalog.services.making import (
    Making,
    add_contestant,
    change_contestant,
    try_contestant,
)
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
SECRET = "sk-very-secret-value"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    settings.OUTBOUND_ALLOW = ["127.0.0.1"]
    monkeypatch.setenv("PALATE_KEY_TEST", SECRET)
    with Endpoint(stall=3.0) as made:
        yield made


def making(url: str, **changes: Any) -> Making:
    kept = {name: changes.pop(name) for name in ("key", "timeout") if name in changes}
    return Making("endpoint", endpoint_settings(url=url, model="tiny", **kept), **changes)


def add(actor: User, url: str = "https://example.org/v1", **changes: Any) -> Contestant:
    return add_contestant(actor=actor, name="Harbor", version="1", making=making(url, **changes))


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings_", "field"),
    [
        ({"url": "ftp://example.org"}, "url"),
        ({"url": "https://user:pw@example.org/v1"}, "url"),
        ({"url": "https://example.org/v1?key=abc"}, "url"),
        ({"url": "http://127.0.0.1:9/v1"}, "url"),
        ({"url": "http://[::ffff:10.0.0.1]/v1"}, "url"),
        ({"url": "http://169.254.169.254/latest"}, "url"),
        ({"model": " "}, "model"),
        ({"key": "SECRET_KEY"}, "key"),
        ({"key": "sk-abc"}, "key"),
        ({"key": "PALATE_KEY_NOT_SET"}, "key"),
        ({"timeout": 0}, "timeout"),
        ({"at_once": 65}, "at_once"),
        ({"at_once": True}, "at_once"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_field(
    settings_: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        endpoint_settings(**{"url": "https://example.org/v1", "model": "m", **settings_})
    assert error.value.field == field


@pytest.mark.parametrize(
    ("values", "more", "field"),
    [
        ({"temperature": 2.5}, "", "temperature"),
        ({"temperature": float("nan")}, "", "temperature"),
        ({"max_tokens": 0}, "", "max_tokens"),
        ({"max_tokens": 1.5}, "", "max_tokens"),
        ({"nonsense": 1}, "", "sampling"),
        ({}, "[1]", "sampling"),
        ({}, "{", "sampling"),
        ({}, '{"stream": true}', "sampling"),
        ({}, '{"temperature": 1}', "sampling"),
        ({}, '{"x": NaN}', "sampling"),
    ],
)
def test_sampling_settings_out_of_range_are_refused(
    values: dict[str, Any], more: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        sampling_settings("endpoint", values, more)
    assert error.value.field == field


def test_sampling_settings_are_kept_without_the_empty_ones() -> None:
    found = sampling_settings("endpoint", {"temperature": 0.5, "seed": None}, '{"top_k": 4}')
    assert found == {"temperature": 0.5, "top_k": 4}


def test_the_template_says_where_the_summary_stands(alice: User) -> None:
    for template, uses in (("You are brief.", True), ("For {persona}.", False)):
        with pytest.raises(InvalidInput) as error:
            add(alice, system_prompt=template, uses_persona=uses)
        assert error.value.field == "system_prompt"
    assert add(alice, system_prompt="For {persona}.", uses_persona=True).pk


def test_adding_twice_adds_once_and_other_settings_are_another_version(alice: User) -> None:
    assert add(alice).pk == add(alice).pk
    with pytest.raises(Refused, match="another version"):
        add(alice, sampling={"temperature": 0.1})
    assert Event.objects.filter(action="add_contestant").count() == 1


def test_only_administrators_add_change_and_try(alice: User, bob: User) -> None:
    contestant = add(alice)
    with pytest.raises(Forbidden):
        add(bob)
    with pytest.raises(Forbidden):
        change_contestant(actor=bob, contestant=contestant, making=making("https://a.example/v1"))
    with pytest.raises(Forbidden):
        try_contestant(actor=bob, contestant=contestant)


def test_a_contestant_with_answers_is_fixed_in_every_setting(alice: User) -> None:
    contestant = add(alice)
    other = making("https://other.example/v1", sampling={"temperature": 0.1})
    change_contestant(actor=alice, contestant=contestant, making=other)
    contestant.refresh_from_db()
    assert contestant.endpoint["url"] == "https://other.example/v1/chat/completions"
    make_answer(contestant=contestant)
    with pytest.raises(Refused):
        change_contestant(actor=alice, contestant=contestant, making=making("https://a.example"))
    rows = Contestant.objects.filter(pk=contestant.pk)
    changes: list[dict[str, Any]] = [
        {"sampling": {}}, {"endpoint": {}}, {"uses_persona": True}, {"kind": "x"},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.update(**change)


# --- how it is asked ----------------------------------------------------------------------------

TURNS = [{"role": "user", "content": "Why?"}]


@pytest.mark.parametrize(
    ("template", "uses", "turns", "first"),
    [
        ("", False, TURNS, None),
        ("", True, TURNS, "Likes it short."),
        ("Be kind.", False, TURNS, "Be kind."),
        ("Be kind. {persona}", True, TURNS, "Be kind. Likes it short."),
        ("Be kind.", False, [{"role": "system", "content": "In French."}, *TURNS],
         "Be kind.\n\nIn French."),
    ],
)  # fmt: skip
def test_a_context_becomes_a_conversation(
    template: str, uses: bool, turns: list[dict[str, str]], first: str | None
) -> None:
    found = messages_for(template, uses, turns, "Likes  it short.")
    assert found[-1] == TURNS[0]
    assert [turn["content"] for turn in found if turn["role"] == "system"] == (
        [first] if first else []
    )


# --- trying out ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("refuses", "status 401. It wants another key."),
        ("too_long", "status 400. It does not accept the request"),
        ("redirects", "answers with a redirect, which is not followed"),
        ("broken", "reports an error of its own. The server answers with status 500"),
        ("busy", "asks to try again later"),
        ("garbage", "The answer is not JSON."),
        ("bad_utf8", "The answer is not UTF-8."),
        ("no_choices", "holds no choice with a text"),
        ("blank", "The reply is empty."),
        ("cuts", "The connection broke"),
        ("stalls", "did not answer completely in time"),
    ],
)
def test_trying_out_says_exactly_what_is_wrong(
    server: Endpoint, alice: User, name: str, says: str
) -> None:
    server.plan = lambda n, asked: name
    seconds = 1 if name == "stalls" else 30
    contestant = add(alice, server.url, key="PALATE_KEY_TEST", timeout=seconds)
    trial = try_contestant(actor=alice, contestant=contestant)
    assert (trial.ok, len(server.asked)) == (False, 1)
    assert says in trial.reason
    assert SECRET not in trial.reason + trial.said
    assert name != "refuses" or trial.said == "bad key Bearer ▇▇▇"


def test_what_lies_before_the_call_is_said_too(
    server: Endpoint, alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    contestant = add(alice, server.url, key="PALATE_KEY_TEST")
    monkeypatch.delenv("PALATE_KEY_TEST")
    assert "variable" in try_contestant(actor=alice, contestant=contestant).reason
    monkeypatch.setenv("PALATE_KEY_TEST", SECRET)
    settings.OUTBOUND_ALLOW = []
    assert "private" in try_contestant(actor=alice, contestant=contestant).reason
    assert not server.asked
    contestant.endpoint["url"] = "https://no-such-host.invalid/v1/chat/completions"
    assert "resolved" in try_contestant(actor=alice, contestant=contestant).reason


def test_trying_out_shows_the_reply_unless_answers_are_sealed(
    server: Endpoint, alice: User
) -> None:
    contestant = add(alice, server.url, system_prompt="For {persona}", uses_persona=True)
    trial = try_contestant(actor=alice, contestant=contestant)
    assert trial.ok
    assert "For New to the subject" in trial.reply
    assert trial.made is not None
    assert (trial.made.prompt_tokens, trial.made.completion_tokens) == (21, 7)
    seal(make_answer(contestant=contestant))
    assert (try_contestant(actor=alice, contestant=contestant).reply, trial.ok) == ("", True)
    details = Event.objects.filter(action="try_contestant").values_list("details", flat=True)
    assert list(details) == [{"worked": True}] * 2


# --- pages --------------------------------------------------------------------------------------


def form(address: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": "Harbor", "version": "1", "url": address, "model": "tiny", "key": "PALATE_KEY_TEST",
        "timeout": "5", "at_once": "2", "temperature": "0.5", "max_tokens": "50", **changes,
    }  # fmt: skip


def test_the_form_tries_first_then_saves_and_never_shows_the_key(
    server: Endpoint, alice: User, client: Client
) -> None:
    client.force_login(alice)
    page = reverse("catalog:contestant_add", args=["endpoint"])
    assert client.get(page).status_code == 200
    tried = client.post(page, form(server.url, **{"try": "1"}))
    assert "It answers:" in tried.content.decode()
    assert not Contestant.objects.exists()
    saved = client.post(page, form(server.url, save="1"), follow=True).content.decode()
    contestant = Contestant.objects.get()
    assert contestant.sampling == {"temperature": 0.5, "max_tokens": 50}
    assert "PALATE_KEY_TEST (set)" in saved
    again = client.post(page, form(server.url, save="1"))  # a double click
    assert again.status_code == 302
    server.plan = lambda n, asked: "refuses"
    url = reverse("catalog:contestant_try", args=[contestant.pk])
    failed = client.post(url).content.decode()
    assert "It wants another key." in failed
    for text in (saved, failed, tried.content.decode()):
        assert SECRET not in text
    copied = client.get(f"{page}?copy={contestant.pk}").content.decode()
    assert server.url in copied
    changed = client.post(
        reverse("catalog:contestant_change", args=[contestant.pk]),
        form(server.url, temperature="0.9", name="Another", save="1"),
    )
    assert changed.status_code == 302
    contestant.refresh_from_db()
    assert (contestant.name, contestant.sampling["temperature"]) == ("Harbor", 0.9)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"url": "http://10.0.0.1/v1"}, "private, local or reserved"),
        ({"key": "sk-abc"}, "not the key itself"),
        ({"more": "[]"}, "A JSON object"),
        ({"temperature": "3"}, "A number from"),
        ({"name": ""}, "This field is required"),
    ],
)
def test_the_form_says_what_would_be_right(
    server: Endpoint, alice: User, client: Client, changes: dict[str, str], says: str
) -> None:
    client.force_login(alice)
    page = reverse("catalog:contestant_add", args=["endpoint"])
    response = client.post(page, form(server.url, **changes))
    assert response.status_code == 422
    assert says in response.content.decode()


def test_the_pages_are_for_administrators(alice: User, bob: User, client: Client) -> None:
    contestant = add(alice)
    client.force_login(bob)
    for url in (
        reverse("catalog:contestant_add", args=["endpoint"]),
        reverse("catalog:contestant_change", args=[contestant.pk]),
    ):
        assert client.get(url).status_code == 403
    assert client.post(reverse("catalog:contestant_try", args=[contestant.pk])).status_code == 403
    client.force_login(alice)
    assert client.get(reverse("catalog:contestant_add", args=["imported"])).status_code == 404
    assert client.get(reverse("catalog:contestant_try", args=[contestant.pk])).status_code == 405


# --- checkpoints --------------------------------------------------------------------------------

TINY = """
import sys, torch
from pathlib import Path
from training.engine.config.schema import Scratch
from training.engine.jobs.models import make_model, make_tokenizer
torch.manual_seed(1)
folder = Path(sys.argv[1])
tokenizer = make_tokenizer(["what is a blind tasting of wine and bread"] * 3, 300)
scratch = Scratch(hidden=32, layers=1, heads=2, kv_heads=1, intermediate=64, vocabulary=300)
make_model(scratch, tokenizer).save_pretrained(folder)
tokenizer.save_pretrained(folder)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of base models with one tiny one, made where torch may be imported."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run(
        [sys.executable, "-c", TINY, str(folder / "tiny")],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return folder


def checkpoint(models: Path, settings: Any, **changes: Any) -> Contestant:
    settings.PALATE_MODELS = models
    sampling = {"temperature": 0.8, "max_tokens": 6, "seed": 3, **changes}
    kept = checkpoint_settings(place="tiny")
    return Contestant(name="Tiny", kind="checkpoint", endpoint=kept, sampling=sampling)


def test_a_checkpoint_answers_in_a_process_of_its_own(models: Path, settings: Any) -> None:
    source = CheckpointSource(checkpoint(models, settings))
    try:
        made = source.answer(Request([{"role": "user", "content": "what is bread"}]))
        assert made.text
        assert made.prompt_tokens
        assert 1 <= (made.completion_tokens or 0) <= 6
        source.sampling["max_tokens"] = 5000
        with pytest.raises(Final) as error:
            source.answer(Request([{"role": "user", "content": "what is bread"}]))
        assert error.value.code == "too_long"
        engine = source.engine
        assert engine is not None
        engine.process.kill()
        engine.process.wait()
        source.sampling["max_tokens"] = 6
        assert _asked_until_it_answers(source)
    finally:
        source.close()


def _asked_until_it_answers(source: CheckpointSource) -> str:
    """A process that died is started again; who asked in that moment is told to try again."""
    for _n in range(3):
        try:
            return source.answer(Request([{"role": "user", "content": "what is bread"}])).text
        except AnswerError as error:
            assert error.code == "engine_died"  # noqa: PT017 - that is all it may say
    raise AssertionError


def test_other_weights_than_the_contestants_are_refused(models: Path, settings: Any) -> None:
    contestant = checkpoint(models, settings)
    contestant.endpoint["weights"] = "0" * 64
    source = CheckpointSource(contestant)
    with pytest.raises(Final) as error:
        source.answer(Request([{"role": "user", "content": "what is bread"}]))
    source.close()
    assert (error.value.code, error.value.blame) == ("weights_changed", True)


@pytest.mark.parametrize(
    "place", ["nowhere", "../tiny", "/etc", ".", "package:os", "package:llm-x"]
)
def test_places_without_a_model_are_refused(models: Path, settings: Any, place: str) -> None:
    settings.PALATE_MODELS = models
    with pytest.raises(InvalidInput) as error:
        checkpoint_settings(place=place)
    assert error.value.field == "place"


def test_the_process_of_a_model_knows_neither_keys_nor_the_database() -> None:
    given = {
        "SECRET_KEY": "s", "DATABASE_URL": "d", "REDIS_URL": "r", "PALATE_KEY_A": "k", "PATH": "p",
    }  # fmt: skip
    known = environment(given.items())
    assert known["PATH"] == "p"
    assert not set(given) & set(known) - {"PATH"}


def test_a_base_model_enters_as_a_baseline_and_is_marked(
    models: Path, settings: Any, alice: User, client: Client
) -> None:
    settings.PALATE_MODELS = models
    client.force_login(alice)
    page = reverse("catalog:contestant_add", args=["checkpoint"])
    values = {"name": "Tiny", "version": "1", "place": "tiny", "at_once": "4", "max_tokens": "8"}
    shown = client.post(page, {**values, "save": "1"}, follow=True).content.decode()
    contestant = Contestant.objects.get()
    assert contestant.provenance == {"baseline": True}
    assert len(contestant.endpoint["weights"]) == 64
    assert "baseline" in shown
