"""The demo: complete, labelled, the same when loaded twice, and only where it is asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from arena.demo import loading
from arena.demo.contestants import CONTESTANTS, LEAKS, PLANTED, UNFINISHED, write_all
from arena.demo.people import DEMO_LOGINS, DEMO_PASSWORD, OPEN_ROUND_RATERS, PERSONAS
from arena.demo.topics import load_topics
from arena.enums import AssignmentState, RoundState
from arena.models import Context, Entry, Round, ScreeningHit, Slot, Vote
from arena.selectors.leaderboard import read_board
from arena.services.simulated import recovered
from tools import demo
from webapp.accounts.models import User
from webapp.catalog.models import Answer, Contestant, Persona, Prompt
from webapp.core.audit import verify_chain


@pytest.fixture
def small_demo(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo with fewer simulated votes."""
    settings.DEMO = True
    monkeypatch.setattr(loading, "SIMULATED_VOTES", 600)
    monkeypatch.setattr(loading, "VOTES_PER_BATTLE", 2)


def counts() -> dict[str, int]:
    models = (User, Persona, Prompt, Contestant, Answer, Round, Context, Slot, Vote)
    return {model.__name__: model._default_manager.count() for model in models}


@pytest.mark.django_db
def test_without_the_setting_no_public_password_is_made() -> None:
    with pytest.raises(CommandError, match="PALATE_DEMO"):
        call_command("load_demo")
    assert not User.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("small_demo")
def test_the_demo_has_both_rounds_and_loading_twice_changes_nothing() -> None:
    call_command("load_demo", stdout=io.StringIO())
    before = counts()
    told = Round.objects.get(name=loading.SIMULATED_ROUND)
    assert told.state == RoundState.UNSEALED
    assert told.simulated
    assert "simulated" in told.name
    assert told.approvals.count() == 2
    assert told.assignments.filter(state=AssignmentState.VOTED).count() == 600
    check_leaderboard(told)
    check_open_round(Round.objects.get(name=loading.OPEN_ROUND))
    check_screening(told)
    check_people()
    assert verify_chain() > 0
    call_command("load_demo", stdout=io.StringIO())
    assert counts() == before


def check_leaderboard(round_: Round) -> None:
    """The planted ranking comes out, and every slice has its ratings."""
    board = read_board(round_)
    assert board.simulated
    assert len(board.rows) == len(CONTESTANTS)
    assert all(row.rating is not None and row.votes > 100 for row in board.rows)
    assert len(board.strata) == 5  # all, and four kinds of users
    assert min(recovered(round_, PLANTED).values()) >= 0.9


def check_open_round(round_: Round) -> None:
    assert round_.state == RoundState.OPEN
    assert not round_.simulated
    assert not Vote.objects.filter(assignment__round=round_).exists()
    raters = set(round_.round_raters.values_list("user__username", flat=True))
    assert raters == set(OPEN_ROUND_RATERS)
    languages = Slot.objects.filter(round=round_).values_list("context__prompt__language")
    assert {language for (language,) in languages} == {"en", "zh"}


def check_screening(round_: Round) -> None:
    """The planted leaks are masked, in both languages; the unfinished answer is noticed."""
    leaking = Entry.objects.filter(
        hits__isnull=False, context__round__name__in=[loading.SIMULATED_ROUND, loading.OPEN_ROUND]
    ).distinct()
    assert leaking.count() == len(LEAKS) + len(UNFINISHED)
    assert leaking.exclude(spans=[]).count() == len(LEAKS)
    assert ScreeningHit.objects.filter(rule="unfinished").count() == len(UNFINISHED)
    assert not Slot.objects.filter(x__shown_sha256="").exists()
    assert round_.contexts.exists()


def check_people() -> None:
    for name, role in DEMO_LOGINS:
        assert User.objects.get(username=name).role == role
    assert User.objects.get(username="ada").check_password(DEMO_PASSWORD)
    simulated = User.objects.filter(preferences__simulated=True)
    assert simulated.count() == loading.SIMULATED_RATERS
    assert not any(user.has_usable_password() for user in simulated)
    assert Persona.objects.exclude(owner=None).count() == 1


def test_answers_are_complete_and_each_style_is_its_own() -> None:
    topics = load_topics()
    answers = list(write_all(topics))
    assert len(topics) >= 14
    assert len(PERSONAS) >= 12
    assert {topic.language for topic in topics} == {"en", "zh"}
    assert sum(len(topic.turns) > 1 for topic in topics) >= 1
    blocks = " ".join(topic.block for topic in topics)
    assert all(sign in blocks for sign in ("```", "$$", "|---|"))
    per_context: dict[tuple[str, str], set[str]] = {}
    for answer in answers:
        per_context.setdefault((answer.topic.key, answer.persona.pseudonym), set()).add(answer.text)
    assert all(len(texts) == len(CONTESTANTS) for texts in per_context.values())
    whole = [answer.text for answer in answers if answer.finish_reason == "stop"]
    assert len(answers) - len(whole) == len(UNFINISHED)
    assert all(text.rstrip().endswith((".", "。", "！", "!", "Sam", "小林", "|")) or "```" in text
               or "$$" in text for text in whole)  # fmt: skip


def test_every_topic_and_persona_of_the_plants_exists() -> None:
    topics = {topic.key for topic in load_topics()}
    people = {persona.pseudonym for persona in PERSONAS}
    for name, topic, persona in [*LEAKS, *UNFINISHED]:
        assert name in {contestant.name for contestant in CONTESTANTS}
        assert topic in topics
        assert persona in people


def test_the_folder_of_a_loop_gets_no_demo_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setenv("PALATE_HOME", str(tmp_path))
    monkeypatch.setattr(demo, "load", lambda: called.append("load"))
    monkeypatch.setattr(demo, "compile_messages", lambda: None)
    monkeypatch.setattr(demo, "collect_static", lambda: None)
    monkeypatch.setattr("django.setup", lambda: None)
    monkeypatch.setattr("django.core.management.call_command", lambda *_a, **_o: None)
    (tmp_path / "loop-ports.json").write_text("{}")
    demo.prepare()
    assert not called
    (tmp_path / "loop-ports.json").unlink()
    demo.prepare()
    assert called == ["load"]
