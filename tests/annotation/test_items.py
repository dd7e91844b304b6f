"""Items for their manager: what may be named, what is found, what is held back."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.enums import ItemFlag, ItemState
from annotation.models import Item, ItemText
from annotation.selectors import items as select
from annotation.selectors.items import Filters, item_page, sealed_items
from annotation.services import catalog_pairs, items
from annotation.services.gold import make_gold
from annotation.services.projects import change_project, locked
from tests.annotation.factories import Desk, add_pairs, label_all, label_once, make_desk
from tests.annotation.review import adjudicator, decide, disputed_desk, report
from tests.catalog.factories import make_answer, make_contestant, make_prompt, seal
from tests.threads import at_once
from webapp.accounts.models import User
from webapp.catalog.models import Exposure
from webapp.catalog.services.personas import withdraw_consent
from webapp.catalog.services.prompts import get_or_create_prompt
from webapp.core.errors import InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
SAME = "These very words stand on either side, and nothing but one sign tells them apart"
XSS = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def url(desk: Desk, name: str, *more: Any) -> str:
    return reverse(f"annotation:{name}", args=[desk.project.pk, *more])


def html(answer: Any) -> str:
    return str(answer.content.decode())


def draft(desk: Desk, first: str, second: str, n: int = 900) -> items.ItemDraft:
    prompt = get_or_create_prompt(messages=f"Question {n}?")
    return items.ItemDraft(prompt.pk, prompt.text_hash, first, second)


# What may be named (V1)


def test_an_item_with_a_text_under_a_live_seal_names_no_producer() -> None:
    desk = make_desk(n_items=3)
    rows = desk.items()
    live = seal(make_answer(rows[1].body.second))
    released = seal(make_answer(rows[2].body.first, draw=1))
    released.released_at = released.sealed_at
    released.save()
    assert sealed_items(item.pk for item in rows) == {rows[1].pk}
    live.released_at = live.sealed_at
    live.save()
    assert sealed_items(item.pk for item in rows) == set()


def test_a_search_for_a_source_finds_no_sealed_text() -> None:
    """Else the name of a file could be tried out on a text whose maker is secret (V1)."""
    desk = make_desk(n_items=2)
    sealed, other = desk.items()
    live = seal(make_answer(sealed.body.first))
    of_file = Filters(source="pairs.jsonl")
    assert item_page(desk.project, of_file).items == [other]
    assert item_page(desk.project, Filters()).items == [sealed, other]
    live.released_at = live.sealed_at
    live.save()
    assert item_page(desk.project, of_file).items == [sealed, other]


def test_the_page_of_an_item_names_its_producers_unless_a_round_holds_a_text(
    admin: Client, alice: User
) -> None:
    desk = make_desk(n_items=1)
    item = desk.items()[0]
    answer = make_answer(item.body.first)
    page = html(admin.get(url(desk, "item", item.pk)))
    assert "Harbor" in page
    assert "pairs.jsonl:1" in page
    assert Exposure.objects.filter(user=alice, answer=answer, where="audited").exists()
    seal(answer)
    for address in (url(desk, "item", item.public_id), url(desk, "items")):
        page = html(admin.get(address))
        assert "Harbor" not in page
        assert "Quarry" not in page
        assert "pairs.jsonl" not in page


def test_no_page_with_sealed_texts_changes_when_the_producers_do(admin: Client) -> None:
    """Relabel the producers behind the same texts: no byte of the pages changes."""
    desk = make_desk(n_items=2)
    item = desk.items()[0]
    seal(make_answer(item.body.first))
    addresses = [url(desk, "item", item.pk), url(desk, "items"), url(desk, "disputes")]

    def pages() -> list[str]:
        shown = (html(admin.get(address)) for address in addresses)
        return [
            "\n".join(line for line in page.splitlines() if "csrf" not in line.lower())
            for page in shown
        ]

    before = pages()
    item.origin.first_producer, item.origin.second_producer = "Quarry", "Harbor"
    item.origin.details = {"model_a": "Quarry"}
    item.origin.save()
    assert pages() == before


# Finding


def test_filters_find_what_they_say() -> None:
    desk = disputed_desk(n_items=3, settings={"stratum_features": ["expertise"]})
    one, two, three = desk.items()
    decide(adjudicator(desk), one)
    add_pairs(desk, 2, start=10)
    items.add_items(project=desk.project, drafts=[draft(desk, "", "x")])

    def found(**filters: Any) -> set[int]:
        return {item.pk for item in item_page(desk.project, Filters(**filters)).items}

    everything = {item.pk for item in desk.items()}
    assert found() == everything
    assert found(state="disputed") == {two.pk, three.pk}
    assert found(outcome="adjudicated") == {one.pk}
    assert found(outcome="unresolved") == {two.pk, three.pk}
    assert found(outcome="raised") == {one.pk, two.pk, three.pk}
    assert len(found(stratum="expertise=expert")) == 3
    assert found(flag="empty_side") == found(state="held")
    assert len(found(flag="empty_side")) == 1
    assert found(kind="catalog") == set()
    assert len(found(source="pairs.jsonl:1")) == 3
    assert found(text="NUMBER 1?") == {two.pk}
    assert found(text=one.public_id) == {one.pk}


def test_chinese_text_is_found() -> None:
    desk = make_desk(n_items=2)
    added = items.add_items(project=desk.project, drafts=[draft(desk, "先说结论。", "一步一步来")])
    page = item_page(desk.project, Filters(text="结论"))
    assert [item.pk for item in page.items] == [added[0].item_id]


def test_pages_go_on_and_back_without_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "PAGE_SIZE", 3)
    desk = make_desk(n_items=8)
    order = [item.pk for item in desk.items()]
    first = item_page(desk.project, Filters())
    second = item_page(desk.project, Filters(), after=first.after)
    third = item_page(desk.project, Filters(), after=second.after)
    seen = [item.pk for page in (first, second, third) for item in page.items]
    assert seen == order
    assert (first.before, third.after) == (None, None)
    back = item_page(desk.project, Filters(), before=third.before)
    assert [item.pk for item in back.items] == [item.pk for item in second.items]
    start = item_page(desk.project, Filters(), before=back.before)
    assert [item.pk for item in start.items] == order[:3]
    assert start.before is None


def test_a_text_is_looked_for_in_bounded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "SEARCH_WINDOW", 4)
    desk = make_desk(n_items=9)
    page = item_page(desk.project, Filters(text="thing number 8"))
    assert (page.items, page.looked, page.more) == ([], 4, True)
    page = item_page(desk.project, Filters(text="thing number 8"), after=page.after)
    page = item_page(desk.project, Filters(text="thing number 8"), after=page.after)
    assert [item.pk for item in page.items] == [desk.items()[-1].pk]
    assert not page.more


# Held back, given out, dropped


def test_held_items_are_given_out_or_dropped_in_bulk(admin: Client) -> None:
    desk = make_desk(n_items=1, settings={"axes": ["quality"]})
    drafts = [draft(desk, "", f"x {n}", n) for n in range(3)]
    drafts.append(draft(desk, SAME + ".", SAME + "!", 9))
    items.add_items(project=desk.project, drafts=drafts)
    change_project(actor=desk.manager, project=desk.project, settings={"max_overlap": 3})
    page = html(admin.get(url(desk, "items"), {"state": "held"}))
    assert "an answer is empty" in page
    assert "Give all of these out" in page
    for _ in range(2):
        admin.post(url(desk, "items_change"), {"flag": "empty_side", "do": "release"})
    assert desk.project.items.filter(state=ItemState.OPEN).count() == 4
    assert Event.objects.filter(action="release_items").count() == 1
    same = desk.project.items.get(state=ItemState.HELD)
    for _ in range(2):
        admin.post(url(desk, "items_change"), {"item": [same.pk], "do": "drop"})
    same.refresh_from_db()
    assert same.state == ItemState.DROPPED
    assert Event.objects.filter(action="drop_items").count() == 1


def test_what_is_given_out_again_has_the_targets_of_today_and_its_labels() -> None:
    desk = make_desk(n_items=1)
    label_all(desk)
    item = desk.items()[0]
    assert item.state == ItemState.DONE
    items.drop_items(actor=desk.manager, project=desk.project, items=[item.pk])
    change_project(
        actor=desk.manager, project=desk.project, settings={"base_overlap": 2, "max_overlap": 2}
    )
    items.release_items(actor=desk.manager, project=desk.project, items=[item.pk])
    item = desk.items()[0]
    assert (item.state, item.target, item.done, item.quality_decision) == ("open", 2, 1, None)


def test_what_a_person_decided_is_done_again_when_it_is_given_out_again() -> None:
    desk = disputed_desk(n_items=1)
    decided = decide(adjudicator(desk), desk.items()[0], "second")
    pks = [decided.pk]
    items.drop_items(actor=desk.manager, project=desk.project, items=pks)
    items.release_items(actor=desk.manager, project=desk.project, items=pks)
    item = desk.items()[0]
    assert (item.state, item.quality_decision) == (ItemState.DONE, decided.quality_decision)


def test_an_erased_item_is_not_given_out_again() -> None:
    desk = make_desk(n_items=1)
    item = desk.items()[0]
    items.drop_items(actor=desk.manager, project=desk.project, items=[item.pk])
    ItemText.objects.filter(item=item).delete()
    assert items.release_items(actor=desk.manager, project=desk.project, items=[item.pk]) == 0


def test_items_of_another_project_are_out_of_reach(admin: Client) -> None:
    desk = make_desk(n_items=1)
    from annotation.services.projects import create_project

    other = create_project(actor=desk.manager, name="Other", guidelines="x")
    admin.post(
        reverse("annotation:items_change", args=[other.pk]),
        {"item": [desk.items()[0].pk], "do": "drop"},
    )
    assert desk.items()[0].state == ItemState.OPEN
    assert (
        admin.get(reverse("annotation:item", args=[other.pk, desk.items()[0].pk])).status_code
        == 404
    )


# The page of one item


def test_labels_of_a_disputed_item_are_folded_away(admin: Client) -> None:
    desk = disputed_desk(n_items=1)
    item = desk.items()[0]
    pseudonym = desk.member(desk.people[0]).pseudonym
    assert pseudonym not in html(admin.get(url(desk, "item", item.pk)))
    assert pseudonym in html(admin.get(url(desk, "item", item.pk), {"labels": "1"}))
    decide(adjudicator(desk), item, note="Both fit; line 2 decides.")
    page = html(admin.get(url(desk, "item", item.pk)))
    assert pseudonym in page
    assert "Both fit; line 2 decides." in page
    assert "Earlier decisions" in page


def test_hostile_text_stays_text(admin: Client) -> None:
    desk = make_desk(n_items=1, people=1)
    added = items.add_items(
        project=desk.project,
        drafts=[
            items.ItemDraft(
                *_prompt(XSS), XSS + "1", XSS + "two", first_producer=XSS, source=XSS,
                details={XSS: XSS},
            )
        ],
    )  # fmt: skip
    item = Item.objects.get(pk=added[0].item_id)
    report(desk, item, desk.people[0])
    make_gold(
        actor=desk.manager, item=item, verdicts={"quality": "tie"}, explanation=XSS, reason=XSS
    )
    for address in ("item", "items", "gold", "problems"):
        args = [item.pk] if address == "item" else []
        page = html(admin.get(url(desk, address, *args)))
        assert "<img src=x" not in page
        assert "onerror=alert(1)" in page


def _prompt(text: str) -> tuple[int, str]:
    prompt = get_or_create_prompt(messages=text)
    return prompt.pk, prompt.text_hash


def test_the_page_of_an_item_needs_few_statements(
    admin: Client, django_assert_max_num_queries: Any
) -> None:
    desk = disputed_desk(n_items=1)
    item = desk.items()[0]
    report(desk, item, desk.people[0])
    decide(adjudicator(desk), item)
    with django_assert_max_num_queries(14):
        admin.get(url(desk, "item", item.pk))


# Pairs from the catalog


def test_two_answers_become_an_item_once(admin: Client) -> None:
    desk = make_desk(n_items=0, people=0)
    prompt = make_prompt()
    one = make_answer("Begin small.", prompt=prompt)
    two = make_answer("Begin with a plan.", prompt=prompt, contestant=make_contestant("borealis"))
    address = url(desk, "add_pairs")
    assert "borealis" in html(admin.get(address, {"prompt": prompt.pk}))
    for said in ("The item is added.", "The project had this pair already."):
        answer = admin.post(address, {"prompt": prompt.pk, "answer": [two.pk, one.pk]}, follow=True)
        assert said in html(answer)
    item = desk.items()[0]
    assert (item.first_answer, item.second_answer, item.kind) == (two, one, "catalog")
    assert "Choose two answers." in html(admin.post(address, {"answer": [one.pk]}, follow=True))


def test_all_pairs_of_two_contestants_without_what_a_round_holds(admin: Client) -> None:
    desk = make_desk(n_items=0, people=0)
    a, b = make_contestant("aurora"), make_contestant("borealis")
    for n in range(4):
        prompt = make_prompt(f"How do I do {n}?")
        first = make_answer(f"First {n}.", prompt=prompt, contestant=a)
        make_answer(f"Something else entirely {n}.", prompt=prompt, contestant=b)
        if n == 0:
            sealed = first
    seal(sealed)
    address = url(desk, "add_pairs")
    sent = {"contestants": "1", "first": a.pk, "second": b.pk}
    assert "Items added: 3." in html(admin.post(address, sent, follow=True))
    sent = {"contestants": "1", "first": b.pk, "second": a.pk}
    assert "Items added: 0." in html(admin.post(address, sent, follow=True))
    assert desk.project.items.count() == 3
    assert admin.post(address, {**sent, "first": a.pk}).status_code == 422
    assert (
        "aurora" not in html(admin.get(address, {"prompt": sealed.prompt_id})).split("One pair")[1]
    )


def test_an_answer_with_a_text_that_a_round_holds_is_refused() -> None:
    """Another draw may repeat the sealed text."""
    desk = make_desk(n_items=0, people=0)
    prompt = make_prompt()
    seal(make_answer("Begin small.", prompt=prompt))
    again = make_answer("Begin small.", prompt=prompt, draw=1)
    other = make_answer("Plan.", prompt=prompt, contestant=make_contestant("borealis"))
    with pytest.raises(Refused) as caught:
        catalog_pairs.add_catalog_pair(
            actor=desk.manager, project=desk.project, first=other, second=again
        )
    assert caught.value.code == "sealed"


def test_two_answers_must_be_to_the_same_question() -> None:
    desk = make_desk(n_items=0, people=0)
    one, two = make_answer("a"), make_answer("b", prompt=make_prompt("Another?"))
    for second in (one, two):
        with pytest.raises(InvalidInput):
            catalog_pairs.add_catalog_pair(
                actor=desk.manager, project=desk.project, first=one, second=second
            )


def test_flags_come_and_go() -> None:
    desk = make_desk(n_items=1)
    pk = desk.items()[0].pk
    for _ in range(2):
        items.add_flag([pk], ItemFlag.REPORTED)
    items.add_flag([pk], ItemFlag.CONTESTED)
    items.remove_flag([pk], ItemFlag.REPORTED)
    assert desk.items()[0].flags == ["contested"]
    label_once(desk, desk.people[0])
    assert desk.items()[0].flags == ["contested"]


def test_pairs_of_two_models_do_not_tell_who_wrote_which_text() -> None:
    """Neither the order nor the log nor the source says it; who chose the models is exposed."""
    desk = make_desk(n_items=0)
    aurora, brook = make_contestant("aurora"), make_contestant("brook")
    for n in range(6):
        prompt = make_prompt(f"Question {n}?")
        make_answer(f"Aurora's answer {n}.", contestant=aurora, prompt=prompt)
        make_answer(f"What Brook says to {n}.", contestant=brook, prompt=prompt)
    catalog_pairs.add_catalog_pairs(
        actor=desk.manager, project=desk.project, first=aurora, second=brook
    )
    rows = list(desk.project.items.select_related("body"))
    assert {row.body.first.startswith("Aurora") for row in rows} == {True, False}
    assert {row.source for row in rows} == {"catalog"}
    event = Event.objects.filter(action="add_catalog_pairs").get()
    assert "aurora" not in str(event.details)
    met = Exposure.objects.filter(user=desk.manager, where="audited")
    assert met.count() == 12


def test_who_names_two_answers_has_met_them_at_once() -> None:
    desk = make_desk(n_items=0, people=0)
    prompt = make_prompt()
    one = make_answer("Begin small.", prompt=prompt)
    two = make_answer("Plan.", prompt=prompt, contestant=make_contestant("borealis"))
    catalog_pairs.add_catalog_pair(actor=desk.manager, project=desk.project, first=one, second=two)
    met = Exposure.objects.filter(user=desk.manager, where="audited")
    assert set(met.values_list("answer", flat=True)) == {one.pk, two.pk}


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("many", [True, False])
def test_a_consent_withdrawn_while_pairs_are_added_leaves_no_text_behind(
    many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V14: the withdrawal comes when the pairs are chosen and before they are written."""
    desk = make_desk(n_items=0, people=0)
    version = desk.versions[0]
    prompt = make_prompt()
    aurora, brook = make_contestant("aurora"), make_contestant("brook")
    one, two = (
        make_answer(f"{n}", prompt=prompt, persona=version.persona, contestant=by)
        for n, by in enumerate((aurora, brook))
    )
    chosen, withdrawn = threading.Event(), threading.Event()

    def wait(pk: int) -> Any:
        chosen.set()
        withdrawn.wait(10)
        return locked(pk)

    def withdraw() -> None:
        chosen.wait(10)
        withdraw_consent(actor=desk.manager, persona=version.persona)
        withdrawn.set()

    def add() -> Any:
        boss, project = desk.manager, desk.project
        if many:
            return catalog_pairs.add_catalog_pairs(
                actor=boss, project=project, first=aurora, second=brook
            )
        return catalog_pairs.add_catalog_pair(actor=boss, project=project, first=one, second=two)

    monkeypatch.setattr(catalog_pairs, "locked", wait)
    added = at_once([add, withdraw])[0]
    assert added == (0, 0) if many else added.code == "erased"
    assert not ItemText.objects.exists()
