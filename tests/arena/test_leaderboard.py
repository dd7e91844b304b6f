"""The leaderboard: who may read what and when, and what the pages say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from arena.enums import RoundState, Variant
from arena.models import Assignment, Round
from arena.selectors import history, leaderboard
from tests.arena.factories import (
    NAMES,
    World,
    closed_round,
    draft_round,
    make_answer,
    make_world,
    open_round,
    screened_round,
    unsealed_round,
)
from webapp.accounts.models import User
from webapp.core.errors import InvalidInput, Refused

pytestmark = pytest.mark.django_db

FILES = ("leaderboard_csv", "leaderboard_json", "leaderboard_svg", "bundle", "votes_file")
PAGES = ("heatmap", *FILES)


def signed_in(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def harbor_wins(row: Assignment) -> dict[str, str]:
    """Harbor beats everybody on quality; personalization is mixed. Sides are resolved here."""
    left = row.slot.x if row.battle.left_is_x else row.slot.y
    right = row.slot.y if row.battle.left_is_x else row.slot.x
    if "Harbor" in (left.contestant.name, right.contestant.name):
        better = "left" if left.contestant.name == "Harbor" else "right"
    else:
        better = "tie"
    other = ("left", "right", "tie", "both_bad")[row.pk % 4]
    return {"quality": better, "personalization": other}


@pytest.fixture
def cast(alice: User, anna: User, bob: User, chen: User, vera: User) -> list[User | None]:
    """Every role, and nobody."""
    return [alice, anna, bob, chen, vera, None]


# --- before unsealing -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [draft_round, screened_round, open_round, closed_round])
def test_no_role_sees_results_before_unsealing(make: Any, cast: list[User | None]) -> None:
    world = make_world()
    round_ = make(world)
    for user in [*cast, world.admin, *world.raters]:
        client = signed_in(user)
        for name in PAGES:
            response = client.get(reverse(f"arena:{name}", args=[round_.pk]))
            assert response.status_code == 409, (name, user)
        response = client.get(reverse("arena:leaderboard"), {"round": round_.pk})
        assert response.status_code == 409
        assert client.get(reverse("arena:leaderboard")).status_code == 200


def test_the_readers_refuse_a_sealed_round_themselves() -> None:
    round_ = closed_round(make_world())
    assert round_.snapshots.count() == 2
    with pytest.raises(Refused):
        leaderboard.read_board(round_)
    with pytest.raises(Refused):
        leaderboard.read_boards(round_)
    for simulated in (False, True):
        assert history.read_history("overall", simulated=simulated).rounds == ()


def test_a_closed_round_is_nowhere_on_the_public_pages(vera: User) -> None:
    world = make_world()
    round_ = closed_round(world, name="Still under seal", choose=harbor_wins)
    for user in (None, vera):
        client = signed_in(user)
        for name in ("leaderboard", "history", "methodology"):
            text = client.get(reverse(f"arena:{name}")).content.decode()
            assert "Still under seal" not in text
            assert not any(contestant in text for contestant in NAMES)
    response = signed_in(None).get(reverse("arena:verify", args=[round_.pk]))
    assert response.status_code == 404


def test_the_record_of_a_sealed_round_shows_its_commitment_and_no_result(bob: User) -> None:
    round_ = closed_round(make_world(), choose=harbor_wins)
    text = signed_in(bob).get(reverse("arena:verify", args=[round_.pk])).content.decode()
    assert round_.commitment in text
    assert round_.merkle_root in text
    assert round_.salt not in text
    assert round_.seed not in text
    assert reverse("arena:bundle", args=[round_.pk]) not in text


def test_an_empty_leaderboard_says_so() -> None:
    response = Client().get(reverse("arena:leaderboard"))
    assert response.status_code == 200
    assert "No round is unsealed yet" in response.content.decode()


# --- after unsealing --------------------------------------------------------------------------


def test_everybody_reads_an_unsealed_round(cast: list[User | None]) -> None:
    round_ = unsealed_round(make_world(), choose=harbor_wins, planned_votes=24)
    for user in cast:
        client = signed_in(user)
        page = client.get(reverse("arena:leaderboard"))
        assert page.status_code == 200
        text = page.content.decode()
        assert "Harbor 1" in text
        assert round_.commitment[:12] in text
        for name in (*PAGES, "verify"):
            assert client.get(reverse(f"arena:{name}", args=[round_.pk])).status_code == 200, name
        for name in ("history", "methodology", "verify_script"):
            assert client.get(reverse(f"arena:{name}")).status_code == 200, name


@pytest.mark.parametrize("name", ["leaderboard", "history", "methodology", "verify_script"])
def test_without_the_setting_a_stranger_is_sent_to_the_login(
    settings: Settings, name: str, vera: User
) -> None:
    settings.LEADERBOARD_PUBLIC = False
    response = Client().get(reverse(f"arena:{name}"))
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("accounts:login"))
    assert signed_in(vera).get(reverse(f"arena:{name}")).status_code == 200


def test_without_the_setting_no_file_is_public(settings: Settings, vera: User) -> None:
    settings.LEADERBOARD_PUBLIC = False
    round_ = unsealed_round(make_world())
    for name in (*PAGES, "verify"):
        url = reverse(f"arena:{name}", args=[round_.pk])
        assert Client().get(url).status_code == 302, name
        response = signed_in(vera).get(url)
        assert response.status_code == 200
        assert "public" not in response["Cache-Control"]


def test_a_round_that_does_not_exist_is_not_found(vera: User) -> None:
    client = signed_in(vera)
    for name in (*PAGES, "verify"):
        assert client.get(reverse(f"arena:{name}", args=[999])).status_code == 404
    for wanted in ("999", "x", "9" * 40, "٣"):
        assert client.get(reverse("arena:leaderboard"), {"round": wanted}).status_code == 404


@pytest.mark.parametrize(
    "query", [{"axis": "x"}, {"stratum": "x y"}, {"variant": "x"}, {"axis": "owner"}]
)
def test_a_board_that_does_not_exist_is_refused_with_the_reason(query: dict[str, str]) -> None:
    round_ = unsealed_round(make_world())
    client = Client()
    assert client.get(reverse("arena:leaderboard"), query).status_code == 422
    for name in ("heatmap", "leaderboard_svg"):
        url = reverse(f"arena:{name}", args=[round_.pk])
        assert client.get(url, query).status_code == 422


def test_pages_only_answer_to_reading() -> None:
    round_ = unsealed_round(make_world())
    assert Client().post(reverse("arena:leaderboard")).status_code == 405
    for name in (*PAGES, "verify"):
        assert Client().post(reverse(f"arena:{name}", args=[round_.pk])).status_code == 405


def test_axes_strata_and_exclusions_can_be_chosen() -> None:
    world = make_world()
    unsealed_round(world, choose=harbor_wins, planned_votes=24, exclusions={"too_fast": 6000})
    client = Client()
    for query in (
        {"axis": "quality"},
        {"axis": "personalization", "stratum": "expertise=novice"},
        {"axis": "quality", "variant": "excluded"},
    ):
        response = client.get(reverse("arena:leaderboard"), query)
        assert response.status_code == 200
    text = response.content.decode()
    assert "Left out by the pre-registered rules: 24 of 24 votes" in text
    assert "There are no votes, so nothing is rated." in text


def test_nobody_is_first_unless_separated() -> None:
    world = make_world(contestants=2)
    unsealed_round(world, planned_votes=4)
    text = Client().get(reverse("arena:leaderboard")).content.decode()
    assert "Nobody is first" in text


def test_the_boards_are_those_of_the_snapshot() -> None:
    round_ = unsealed_round(make_world(), choose=harbor_wins, planned_votes=24)
    snapshot = round_.snapshots.get(variant=Variant.ALL)
    boards = leaderboard.read_boards(round_, variant=Variant.ALL)
    assert [board.axis for board in boards[::3]] == ["overall", "quality", "personalization"]
    for board in boards:
        stored = snapshot.details["results"][board.axis][board.stratum]
        assert list(board.names) == stored["order"]
        assert sum(row.votes for row in board.rows) == 2 * stored["votes"]


@pytest.mark.parametrize("axis", ["overall", "quality"])
def test_the_heat_map_counts_votes_and_not_verdicts(axis: str) -> None:
    """A vote on two axes is one vote, overall too."""
    round_ = unsealed_round(make_world(), choose=harbor_wins, planned_votes=24)
    board = leaderboard.read_board(round_, axis=axis)
    given: dict[frozenset[str], int] = {}
    for row in Assignment.objects.filter(slot__round=round_, state="voted"):
        pair = frozenset((str(row.slot.x.contestant), str(row.slot.y.contestant)))
        given[pair] = given.get(pair, 0) + 1
    assert sum(given.values()) == 24
    for i, a in enumerate(board.names):
        for j, b in enumerate(board.names):
            assert board.pair_votes[i][j] == (0 if i == j else given[frozenset((a, b))])
    url = reverse("arena:heatmap", args=[round_.pk])
    text = Client().get(url, {"axis": axis}).content.decode()
    numbers = [int(n) for n in re.findall(r"<td class=\"num\">\d+ % / (\d+)</td>", text)]
    assert sum(numbers) == 2 * 24


@pytest.mark.parametrize("exclusions", [{}, {"late": 1}])
def test_exclusions_are_offered_where_some_were_registered(exclusions: dict[str, int]) -> None:
    unsealed_round(make_world(), planned_votes=12, exclusions=exclusions)
    text = Client().get(reverse("arena:leaderboard")).content.decode()
    assert ('<option value="excluded"' in text) is bool(exclusions)
    assert ("No exclusions were registered" in text) is not bool(exclusions)


def test_a_simulated_round_says_so_everywhere() -> None:
    round_ = unsealed_round(make_world(), simulated=True, choose=harbor_wins, planned_votes=24)
    client = Client()
    page = client.get(reverse("arena:leaderboard")).content.decode()
    assert "no person gave them" in page
    for name in ("heatmap", "verify"):
        text = client.get(reverse(f"arena:{name}", args=[round_.pk])).content.decode()
        assert "no person gave them" in text
    picture = client.get(reverse("arena:leaderboard_svg", args=[round_.pk]))
    assert "SIMULATED VOTES" in picture.content.decode()
    bundle = client.get(reverse("arena:bundle", args=[round_.pk]))
    assert "simulated" in bundle["Content-Disposition"]
    assert "Round one" not in client.get(reverse("arena:history")).content.decode()
    text = client.get(reverse("arena:history"), {"votes": "simulated"}).content.decode()
    assert "no person gave them" in text
    assert "Round one" in text


def test_the_pages_can_be_read_in_chinese() -> None:
    round_ = unsealed_round(make_world(), choose=harbor_wins, planned_votes=24)
    client = Client(headers={"accept-language": "zh-hans"})
    urls = [reverse(f"arena:{name}") for name in ("leaderboard", "history", "methodology")]
    urls += [reverse(f"arena:{name}", args=[round_.pk]) for name in ("heatmap", "verify")]
    for url in urls:
        response = client.get(url)
        assert response.status_code == 200
        assert '<html lang="zh-hans"' in response.content.decode()


def test_no_page_has_inline_style_or_script() -> None:
    round_ = unsealed_round(make_world(), choose=harbor_wins, planned_votes=24)
    urls = [reverse(f"arena:{name}") for name in ("leaderboard", "history", "methodology")]
    urls += [reverse(f"arena:{name}", args=[round_.pk]) for name in ("heatmap", "verify")]
    for url in urls:
        text = Client().get(url).content.decode()
        assert " style=" not in text
        assert "<style" not in text
        assert "<script>" not in text
        assert " onclick=" not in text


# --- verification page ------------------------------------------------------------------------


def test_a_pasted_receipt_is_looked_up() -> None:
    world = make_world()
    round_ = unsealed_round(world, choose=harbor_wins)
    url = reverse("arena:verify", args=[round_.pk])
    receipt = Assignment.objects.filter(round=round_, head__isnull=False)[0].head.receipt  # type: ignore[union-attr]
    ask = Client().get
    assert "and its vote counts" in ask(url, {"receipt": f" {receipt.upper()} "}).content.decode()
    assert "and its vote counts" in ask(url, {"receipt": receipt[:16]}).content.decode()
    assert "is not in the bundle" in ask(url, {"receipt": "0" * 64}).content.decode()
    for wrong in ("", receipt[:15], "%" * 20, "z" * 64):
        assert "and its vote counts" not in ask(url, {"receipt": wrong}).content.decode()


def test_reasons_are_published_and_names_are_for_people_with_an_account(vera: User) -> None:
    round_ = unsealed_round(make_world())
    url = reverse("arena:verify", args=[round_.pk])
    public, inside = Client().get(url).content.decode(), signed_in(vera).get(url).content.decode()
    assert "all votes are in" in public
    assert "ada" not in public.split("all votes are in")[0].split("Who agreed to unseal")[1]
    assert "ada," in inside


# --- history ----------------------------------------------------------------------------------


def second_round(world: World, contestants: list[Any], name: str, **changes: Any) -> Round:
    """Fresh answers to the same questions, for one more round."""
    for model in contestants:
        for p, person in enumerate(world.personas):
            for q, prompt in enumerate(world.prompts):
                text = f"{name}: {model} for {p} on {q}."
                make_answer(model, prompt, person.versions.get(), text, draw=7)
    ids = [row.pk for row in contestants]
    return unsealed_round(world, contestants=ids, name=name, **changes)


def test_rounds_are_joined_through_shared_contestants() -> None:
    world = make_world()
    unsealed_round(world, choose=harbor_wins, planned_votes=24)
    second_round(world, world.contestants[:2], "Round two", choose=harbor_wins, planned_votes=12)
    found = history.read_history("overall")
    assert [row.name for row in found.rounds] == ["Round one", "Round two"]
    assert {row.chain for row in found.rounds} == {0}
    assert len(found.rows) == 5
    page = Client().get(reverse("arena:history")).content.decode()
    assert "<svg" in page
    assert "Scale 2" not in page


def test_rounds_that_share_nobody_stand_apart() -> None:
    from webapp.catalog.models import Contestant

    world = make_world()
    unsealed_round(world, choose=harbor_wins, planned_votes=24)
    others = [Contestant.objects.create(name=name, version="1") for name in NAMES[3:5]]
    second_round(world, others, "Round two", planned_votes=12)
    found = history.read_history("overall")
    assert {row.chain for row in found.rounds} == {0, 1}
    assert [note["code"] for note in found.notes] == ["rounds_not_joined"]
    page = Client().get(reverse("arena:history")).content.decode()
    assert "cannot be put on one scale" in page
    assert "Scale 2" in page


def test_simulated_rounds_join_no_round_of_people() -> None:
    world = make_world()
    unsealed_round(world, simulated=True, planned_votes=12)
    second_round(world, world.contestants, "Round two", planned_votes=12)
    for simulated, name in ((False, "Round two"), (True, "Round one")):
        found = history.read_history("overall", simulated=simulated)
        assert [row.name for row in found.rounds] == [name]


# --- cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "most"), [("leaderboard", 5), ("history", 4), ("methodology", 1)])
def test_pages_need_few_queries(
    name: str, most: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    world = make_world(contestants=6)
    unsealed_round(world, choose=harbor_wins, planned_votes=30)
    second_round(world, world.contestants[:2], "Round two", planned_votes=12)
    with django_assert_max_num_queries(most):
        Client().get(reverse(f"arena:{name}"))


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("heatmap", 3),
        ("leaderboard_csv", 3),
        ("leaderboard_json", 3),
        ("leaderboard_svg", 3),
        ("verify", 4),
        ("bundle", 7),
        ("votes_file", 7),
    ],
)
def test_files_need_few_queries(
    name: str, most: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    round_ = unsealed_round(make_world(contestants=6), choose=harbor_wins, planned_votes=30)
    with django_assert_max_num_queries(most):
        response = Client().get(reverse(f"arena:{name}", args=[round_.pk]))
        assert response.getvalue()


def test_choices_are_refused_by_field() -> None:
    round_ = unsealed_round(make_world())
    for field, value in (("axis", "x"), ("stratum", "x"), ("variant", "x")):
        with pytest.raises(InvalidInput) as caught:
            leaderboard.read_board(round_, **{field: value})
        assert caught.value.field == field


def test_a_round_with_one_axis_has_no_overall_board() -> None:
    world = make_world()
    round_ = unsealed_round(world, axes=["quality"], weights={"quality": 100})
    assert round_.state == RoundState.UNSEALED
    assert leaderboard.read_board(round_).axis == "quality"
    assert Client().get(reverse("arena:leaderboard")).status_code == 200
