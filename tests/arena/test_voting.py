"""The voting page over HTTP: every write survives double clicks, two tabs and lost logins."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from arena.models import Assignment, Round, Vote
from arena.services import closing, votes
from tests.arena.factories import World, make_world, open_round
from tests.conftest import PASSWORD, asks_for_login
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db
BOTH = {"quality": "left", "personalization": "both_bad"}


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def round_(world: World) -> Round:
    return open_round(world)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def current_token(client: Client) -> str:
    response = client.get(reverse("arena:vote"))
    assert response.status_code == 200
    return str(response.context["pair"].token)


def cast(client: Client, token: str, htmx: bool = False, **data: Any) -> Any:
    headers = {"HX-Request": "true"} if htmx else {}
    body = {"token": token, "active_ms": "4000", **(data or BOTH)}
    return client.post(reverse("arena:vote"), body, headers=headers)


def undo(client: Client) -> Any:
    """Press the button of the page."""
    last = client.get(reverse("arena:vote")).context["progress"].last
    return client.post(reverse("arena:undo"), {"last": last}, headers={"HX-Request": "true"})


def test_a_vote_is_recorded_and_the_next_battle_follows(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    response = cast(client, token, htmx=True)
    assert response.status_code == 200
    assert response.context["pair"].token != token
    vote = Vote.objects.get()
    assert (vote.quality, vote.personalization, vote.active_ms) == ("left", "both_bad", 4000)
    assert vote.receipt[:16] in response.content.decode()


def test_without_javascript_it_is_post_and_redirect(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    response = cast(client, current_token(client))
    assert response.status_code == 302
    assert response["Location"] == f"{reverse('arena:vote')}?round={round_.pk}"


def test_vote_and_next_take_at_most_twelve_queries(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    client.post(reverse("arena:prefetch"), {"token": token})
    with CaptureQueriesContext(connection) as queries:
        response = cast(client, token, htmx=True)
    assert response.status_code == 200
    statements = [q["sql"] for q in queries if not q["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert len(statements) <= 12, "\n".join(statements)


def test_double_click_and_redelivery_have_effect_once(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    for _ in range(3):
        assert cast(client, token).status_code == 302
    assert Vote.objects.count() == 1


def test_another_choice_for_the_same_battle_is_a_revision(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    cast(client, token)
    cast(client, token, quality="right", personalization="tie")
    assert list(Vote.objects.order_by("revision").values_list("revision", "quality")) == [
        (1, "left"),
        (2, "right"),
    ]
    assert Assignment.objects.get(token=token).head.quality == "right"  # type: ignore[union-attr]


def test_a_missing_verdict_keeps_what_was_chosen(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    response = cast(client, token, quality="left", comment="halb fertig 半")
    assert response.status_code == 422
    assert response.context["pair"].token == token
    assert response.context["errors"].keys() == {"personalization"}
    page = response.content.decode()
    assert "halb fertig 半" in page
    assert not Vote.objects.exists()


def test_undo_brings_the_battle_back_and_keeps_the_history(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    cast(client, token)
    response = undo(client)
    assert response.context["pair"].token == token
    assert [vote.is_undo for vote in Vote.objects.order_by("revision")] == [False, True]
    cast(client, token, quality="tie", personalization="tie")
    assert Vote.objects.count() == 3


def test_undo_goes_back_over_several_votes(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    tokens = []
    for _ in range(2):
        tokens.append(current_token(client))
        cast(client, tokens[-1])
    for token in reversed(tokens):
        response = undo(client)
        assert response.context["pair"].token == token


def test_a_double_click_on_undo_takes_back_one_vote(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    for _ in range(2):
        cast(client, current_token(client))
    last = client.get(reverse("arena:vote")).context["progress"].last
    for _ in range(2):
        client.post(reverse("arena:undo"), {"last": last})
    assert [vote.is_undo for vote in Vote.objects.order_by("pk")] == [False, False, True]


def test_an_expired_login_loses_nothing(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    client.logout()
    assert asks_for_login(cast(client, token))
    assert not Vote.objects.exists()
    client.post(
        reverse("accounts:login"), {"username": world.raters[0].username, "password": PASSWORD}
    )
    assert cast(client, token).status_code == 302
    assert Vote.objects.count() == 1


def test_a_battle_of_somebody_else_is_refused(world: World, round_: Round) -> None:
    token = current_token(browser(world.raters[0]))
    assert cast(browser(world.raters[1]), token).status_code == 403
    response = browser(world.raters[1]).get(reverse("arena:diff"), {"token": token})
    assert response.status_code == 403
    assert not Vote.objects.exists()


def test_a_prefetched_battle_cannot_be_voted_on_before_it_is_shown(
    world: World, round_: Round
) -> None:
    client = browser(world.raters[0])
    client.post(reverse("arena:prefetch"), {"token": current_token(client)})
    hidden = Assignment.objects.get(state="reserved")
    assert cast(client, hidden.token).status_code == 409
    response = client.get(reverse("arena:diff"), {"token": hidden.token})
    assert response.status_code == 403


def test_a_skipped_battle_says_why_it_takes_no_vote(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    client.post(reverse("arena:skip"), {"token": token, "reason": "recognised"})
    response = cast(client, token, htmx=True)
    assert response.status_code == 409
    assert "gave this battle back" in response.content.decode()


def test_votes_after_closing_are_refused_kindly(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    closing.close_round(actor=world.admin, round_=round_, reason="over")
    response = cast(client, token, htmx=True)
    assert response.status_code == 409
    assert 'id="vote"' in response.content.decode()


@pytest.mark.parametrize("role", ["admin", "viewer"])
def test_administrators_and_viewers_do_not_vote(
    world: World, round_: Round, role: str, vera: User
) -> None:
    client = browser(world.admin if role == "admin" else vera)
    assert client.get(reverse("arena:vote")).status_code == 403


def test_votes_by_the_personas_owner_are_marked(world: World) -> None:
    for persona in world.personas:
        persona.owner = world.raters[0]
        persona.save()
    open_round(world)
    client = browser(world.raters[0])
    cast(client, current_token(client))
    other = browser(world.raters[1])
    cast(other, current_token(other))
    assert list(Vote.objects.order_by("pk").values_list("owner", flat=True)) == [True, False]


def test_the_receipt_can_be_recomputed_by_anyone(world: World, round_: Round) -> None:
    import hashlib
    import json

    client = browser(world.raters[0])
    cast(client, current_token(client))
    record = client.get(reverse("arena:receipts"), {"format": "json"}).json()["receipts"][0]
    code = record.pop("receipt")
    assert record.pop("commitment") == round_.commitment
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == code


def test_texts_that_look_like_html_stay_text() -> None:
    payload = '<script>alert(1)</script><img src=x onerror="alert(2)"> {{ 7|add:7 }}'
    world = make_world(text=lambda c, p, q: f"{payload} {c} {p} {q}.")
    open_round(world)
    page = browser(world.raters[0]).get(reverse("arena:vote")).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<img src=x" not in page


def test_drafts_are_kept_on_the_server(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    body = {"token": token, "quality": "right", "comment": "wait", "tags": ["wordy", "odd"]}
    client.post(reverse("arena:draft"), {**body, "active_ms": "900"})
    response = client.get(reverse("arena:vote"))
    assert response.context["draft"] == {
        "quality": "right", "comment": "wait", "tags": ["wordy"], "active_ms": 900,
    }  # fmt: skip
    assert "checked" in response.content.decode()


@pytest.mark.parametrize("name", ["undo", "skip", "heartbeat", "prefetch", "draft"])
def test_writes_need_post(world: World, name: str) -> None:
    assert browser(world.raters[0]).get(reverse(f"arena:{name}")).status_code == 405


def test_keys_can_be_remapped_and_clashes_are_named(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    keys = {"verdicts": "v", "undo": "z", "skip": "z", "diff": "d", "help": "?"}
    response = client.post(reverse("arena:keys"), keys)
    assert response.status_code == 200
    assert "skip" in response.context["errors"]
    client.post(reverse("arena:keys"), {**keys, "skip": "x"})
    page = client.get(reverse("arena:vote")).content.decode()
    assert "&quot;undo&quot;: &quot;z&quot;" in page


def test_the_digits_say_how_much_better_and_cannot_be_taken(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    response = client.post(reverse("arena:keys"), {"skip": "1"})
    assert list(response.context["errors"]) == ["skip"]


def test_keys_that_came_later_have_their_defaults(world: World) -> None:
    user = world.raters[0]
    user.preferences["keys"] = {"skip": "x"}
    user.save()
    rows = {
        row["name"]: row["key"] for row in browser(user).get(reverse("arena:keys")).context["rows"]
    }
    assert (rows["skip"], rows["flag"]) == ("x", "f")


def test_a_comment_that_is_too_long_is_refused_with_the_count(world: World, round_: Round) -> None:
    from webapp.core.errors import InvalidInput

    client = browser(world.raters[0])
    token = current_token(client)
    with pytest.raises(InvalidInput, match="2001"):
        votes.cast_vote(
            user=world.raters[0], token=token, ballot=votes.Ballot(BOTH, comment="x" * 2001)
        )


def test_a_rater_of_two_rounds_sees_both_and_goes_on_where_something_is_left(world: World) -> None:
    first = open_round(world, prompts=[world.prompts[0].pk], planned_votes=2, name="First")
    second = open_round(world, prompts=[world.prompts[1].pk], planned_votes=2, name="Second")
    client = browser(world.raters[0])
    page = client.get(reverse("arena:vote"))
    assert [row for row, _current in page.context["rounds"]] == [first, second]
    for _ in range(2):
        cast(client, current_token(client))
    assert client.get(reverse("arena:vote")).context["rounds"][1][1]
    done = client.get(reverse("arena:vote"), {"round": first.pk})
    assert done.context["reason"] == "done"
    assert done.context["rounds"] == [second]


def test_before_the_first_vote_the_target_is_ones_share(world: World) -> None:
    open_round(world, planned_votes=12)
    progress = browser(world.raters[0]).get(reverse("arena:vote")).context["progress"]
    assert (progress.done, progress.target) == (0, 4)


def test_ones_share_stays_while_one_votes(world: World) -> None:
    open_round(world, planned_votes=12)
    client = browser(world.raters[0])
    for done in range(4):
        progress = client.get(reverse("arena:vote")).context["progress"]
        assert (progress.done, progress.target) == (done, 4)
        cast(client, current_token(client))
    progress = client.get(reverse("arena:vote")).context["progress"]
    assert (progress.done, progress.target) == (4, 7)  # the other 8 are shared by three


def test_the_goal_is_reached_only_when_all_planned_votes_are_in(world: World) -> None:
    open_round(world, planned_votes=6)
    client = browser(world.raters[0])
    for _ in range(5):
        progress = client.get(reverse("arena:vote")).context["progress"]
        assert progress.done < progress.target
        cast(client, current_token(client))
    cast(client, current_token(client))
    assert client.get(reverse("arena:vote")).context["reason"] == "done"


def test_a_changed_vote_is_called_changed(world: World, round_: Round) -> None:
    client = browser(world.raters[0])
    token = current_token(client)
    assert not cast(client, token, htmx=True).context["changed"]
    assert cast(client, token, htmx=True, quality="tie", personalization="tie").context["changed"]
