"""Labels set aside and taken back at once: nothing is as if it had not been, whatever the item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.enums import LeaseState
from annotation.models import Lease, Member
from annotation.selectors.projects import member_rows
from annotation.services import adjudication, leases, projects
from annotation.services.gold import make_gold
from annotation.services.items import hold_items, release_items
from annotation.services.setting_aside import set_labels_aside, take_labels_back
from tests.annotation.books import mistakes
from tests.annotation.factories import Desk, label_once, make_desk, submit, working
from tests.annotation.pairs import import_pairs, label, row, write
from tests.annotation.review import adjudicator
from tests.annotation.test_setting_aside import (
    aside,
    back,
    careless_desk,
    gold_desk,
    pause,
    verdicts,
)
from webapp.core.errors import Refused

pytestmark = pytest.mark.django_db


def books(desk: Desk) -> list[Any]:
    """Every item with its places and outcome, and every label with whether it counts."""
    columns = ("state", "target", "live", "done", "priority")
    items = list(desk.project.items.order_by("pk").values_list(*columns))
    given = Lease.objects.filter(member__project=desk.project).order_by("pk")
    return [items, verdicts(desk), list(given.values_list("state", "counted", "repeat"))]


def there_and_back(desk: Desk, member: Member) -> list[Any]:
    """The books between the two; afterwards they must be what they were."""
    before, odd = books(desk), mistakes(desk.project)  # an outcome from elsewhere is odd to them
    assert set_labels_aside(actor=desk.manager, member=member, reason="careless")
    between = books(desk)
    assert between != before
    assert odd or mistakes(desk.project) == []
    take_labels_back(actor=desk.manager, member=member)
    assert books(desk) == before
    assert mistakes(desk.project) == odd
    return between


def imported(desk: Desk, folder: Path, *rows: Any) -> Member:
    import_pairs(desk.project, write(folder / "rows.jsonl", list(rows)))
    return Member.objects.filter(project=desk.project, user=None).latest("pk")


def test_more_labels_of_an_import_than_the_project_asks_for(tmp_path: Path) -> None:
    desk = make_desk(people=0, n_items=0, settings={"axes": ["quality"]})
    said = [label("a", "first"), label("b", "second"), label("c", "second")]
    member = imported(desk, tmp_path, row(0, labels=said), row(1, labels=said))
    assert verdicts(desk) == ["second", "second"]
    between = there_and_back(desk, member)
    assert between[1] == ["", ""]  # one against one


def test_a_label_that_holds_no_place(tmp_path: Path) -> None:
    """It says nothing on one of the two axes."""
    desk = make_desk(people=0, n_items=0)
    member = imported(desk, tmp_path, row(0, labels=[label("a")]))
    assert not Lease.objects.get().counted
    there_and_back(desk, member)


def test_an_outcome_by_construction_stays(tmp_path: Path) -> None:
    desk = make_desk(people=0, n_items=0, settings={"axes": ["quality"]})
    outcome = {"verdict": "first", "source": "synthetic", "labels": 0, "posterior": {"first": 1.0}}
    made = row(0, labels=[label("a", "second")], synthetic=True, decisions={"quality": outcome})
    between = there_and_back(desk, imported(desk, tmp_path, made))
    assert between[1] == ["first"]
    assert between[0][0][0] == "done"


def test_a_decision_that_an_import_brought_stays(tmp_path: Path) -> None:
    desk = make_desk(
        people=0, n_items=0, settings={"axes": ["quality"], "base_overlap": 2, "max_overlap": 2}
    )
    outcome = {"verdict": "second", "source": "majority", "labels": 5}
    made = row(0, labels=[label("a", "first")], decisions={"quality": outcome})
    between = there_and_back(desk, imported(desk, tmp_path, made))
    assert between[1] == ["second"]


def test_an_item_that_an_adjudicator_has_in_hand() -> None:
    desk = careless_desk(n_items=1, max_overlap=2)
    judith = adjudicator(desk)
    claim = adjudication.claim_item(user=judith, item=desk.items()[0])
    before = books(desk)
    aside(desk)
    back(desk)
    adjudication.give_back(user=judith, token=claim.token)
    assert books(desk) == before


def test_items_with_targets_by_stratum() -> None:
    desk = make_desk(people=1, n_items=4, settings={"base_overlap": 2, "max_overlap": 2})
    while label_once(desk, desk.people[0]):
        pass
    strata = set(desk.project.items.values_list("stratum", flat=True))
    wanted = {"targets": dict.fromkeys(strata, 1)}
    projects.change_project(actor=desk.manager, project=desk.project, settings=wanted)
    there_and_back(desk, pause(desk, desk.people[0]))


def test_a_majority_that_was_raised() -> None:
    desk = make_desk(people=3, n_items=1, settings={"base_overlap": 2, "max_overlap": 3})
    for user, verdict in zip(desk.people, ("first", "second", "second"), strict=True):
        lease = leases.serve(user=user, project=desk.project).lease
        assert lease is not None
        submit(user, lease, verdict)
    assert verdicts(desk) == ["second"]
    before = books(desk)
    pause(desk, desk.people[2])
    aside(desk, 2)
    assert verdicts(desk) == [""]
    back(desk, 2)
    assert books(desk)[:2] == [[("done", 3, 3, 3, before[0][0][4])], ["second"]]


def test_an_item_that_is_held_meanwhile() -> None:
    desk = careless_desk(n_items=1)
    items = [item.pk for item in desk.items()]
    hold_items(actor=desk.manager, project=desk.project, items=items, flag="same_text")
    aside(desk)
    assert desk.items()[0].target == 2
    back(desk)
    release_items(actor=desk.manager, project=desk.project, items=items)
    assert (desk.items()[0].live, desk.items()[0].done) == (2, 2)
    assert mistakes(desk.project) == []


def test_an_item_that_becomes_gold_meanwhile() -> None:
    desk = careless_desk()
    aside(desk)
    make_gold(actor=desk.manager, item=desk.items()[0], verdicts={"quality": "first"})
    own = Lease.objects.filter(member=desk.member(desk.people[1]))
    for lease in own:
        with pytest.raises(Refused, match="set this label aside"):
            submit(desk.people[1], lease, "tie")
    assert back(desk) == 4
    assert set(own.values_list("state", flat=True)) == {LeaseState.SUBMITTED}
    assert own.get(item__state="gold").counted is False
    assert desk.member(desk.people[1]).gold_seen == 0  # given before it was gold
    for lease in own:
        with pytest.raises(Refused, match="paused"):
            submit(desk.people[1], lease, "tie")
    assert mistakes(desk.project) == []


@pytest.mark.parametrize("expired", [False, True])
def test_what_she_had_in_hand_counts_no_more(expired: bool) -> None:
    desk = make_desk(people=1, n_items=3, settings={"base_overlap": 2, "max_overlap": 2})
    user = desk.people[0]
    label_once(desk, user)
    held = leases.serve(user=user, project=desk.project).lease
    assert held is not None
    if expired:
        leases.expire(held)
    pause(desk, user)
    aside(desk, 0)
    sent = submit(user, Lease.objects.get(pk=held.pk), "first")
    assert (sent.lease.state, sent.lease.counted, sent.extra) == ("submitted", False, False)
    assert mistakes(desk.project) == []


def test_sent_again_none_is_called_an_extra() -> None:
    """Gold is never called one: she could tell it by that."""
    desk = gold_desk()
    aside(desk, 0)
    newcomer = adjudicator(desk, "nadia")
    working(desk)
    while label_once(desk, newcomer):
        pass
    back(desk, 0)
    pause(desk, desk.people[0])
    own = Lease.objects.filter(member=desk.member(desk.people[0]))
    said = {submit(desk.people[0], lease, "first").extra for lease in own}
    assert said == {False}


def test_the_button_goes_when_all_but_gold_is_aside() -> None:
    desk = gold_desk()

    def offered() -> bool:
        (found,) = (r for r in member_rows(desk.project) if r.member.user == desk.people[0])
        return found.may_be_set_aside

    assert offered()
    aside(desk, 0)
    assert not offered()
    back(desk, 0)
    assert offered()
