"""Adjudication: one at a time, blind first, by somebody who never labelled the item; kept."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from annotation import policies
from annotation.enums import AdjudicationState, ItemFlag, ItemState, MemberState
from annotation.models import Adjudication, Decision, Item, Lease
from annotation.selectors.review import disputed_queue
from annotation.selectors.tasks import as_shown
from annotation.services import adjudication, labels, leases
from annotation.services.adjudication import contest_item
from annotation.services.decisions import settle_item
from annotation.services.gold import make_gold
from annotation.services.items import remove_flag
from tests.annotation.factories import Desk, label_once, make_desk, submit, working
from tests.annotation.review import adjudicator, decide, disputed_desk
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.catalog.models import Exposure
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db


def shown(row: Adjudication, verdict: str) -> dict[str, str]:
    return dict.fromkeys(row.item.project.axes, as_shown(verdict, row.first_left))


def test_blind_first_then_the_labels_then_the_decision_with_the_posterior_beside_it() -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    row = adjudication.claim_next(user=judith, project=desk.project)
    assert row is not None
    with pytest.raises(Refused):
        adjudication.decide_item(
            user=judith, token=row.token, verdicts=shown(row, "first"), reason="ambiguous"
        )
    adjudication.decide_blind(user=judith, token=row.token, verdicts=shown(row, "second"))
    again = adjudication.decide_blind(user=judith, token=row.token, verdicts=shown(row, "tie"))
    assert again.blind == {"quality": "second", "personalization": "second"}
    adjudication.decide_item(
        user=judith,
        token=row.token,
        verdicts=shown(row, "first"),
        reason="guideline_gap",
        note=" x ",
    )
    item = desk.items()[0]
    held = item.quality_decision
    assert held is not None
    assert (item.state, held.source, held.verdict) == (ItemState.DONE, "adjudicated", "first")
    assert (held.blind_verdict, held.reason, held.note) == ("second", "guideline_gap", "x")
    assert held.decided_by == judith
    assert held.posterior["first"] == held.posterior["second"] > held.posterior["both_bad"]
    assert Event.objects.filter(action="adjudicate_item", object_id=str(item.pk)).count() == 1


def test_sent_twice_it_decides_once() -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    item = decide(judith, desk.items()[0])
    row = Adjudication.objects.get()
    n = Decision.objects.count()
    adjudication.decide_item(
        user=judith, token=row.token, verdicts=shown(row, "second"), reason="ambiguous"
    )
    assert Decision.objects.count() == n
    assert item.quality_decision == Item.objects.get(pk=item.pk).quality_decision


def test_only_the_axis_without_a_verdict_is_asked_and_the_other_keeps_its_decision() -> None:
    desk = make_desk(people=2, n_items=1, settings={"base_overlap": 2, "max_overlap": 2})
    for user, verdict in zip(desk.people, ("first", "second"), strict=True):
        lease = leases.serve(user=user, project=desk.project).lease
        assert lease is not None
        verdicts = {
            "quality": as_shown("first", lease.first_left),
            "personalization": as_shown(verdict, lease.first_left),
        }
        labels.submit_label(user=user, token=lease.token, answer=labels.Answer(verdicts))
    item = desk.items()[0]
    assert item.state == ItemState.DISPUTED
    before = item.quality_decision
    judith = adjudicator(desk)
    row = adjudication.claim_item(user=judith, item=item)
    adjudication.decide_blind(user=judith, token=row.token, verdicts=shown(row, "second"))
    adjudication.decide_item(
        user=judith, token=row.token, verdicts=shown(row, "second"), reason="annotator_error"
    )
    after = desk.items()[0]
    assert row.item.project.axes == ["quality", "personalization"]
    assert after.quality_decision == before
    assert before is not None
    assert before.source == "unanimous"
    assert after.personalization_decision is not None
    assert after.personalization_decision.verdict == "second"


def test_an_item_may_stay_unresolved_for_a_reason() -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    row = adjudication.claim_item(user=judith, item=desk.items()[0])
    adjudication.decide_blind(user=judith, token=row.token, verdicts=shown(row, "first"))
    with pytest.raises(InvalidInput) as caught:
        adjudication.decide_item(user=judith, token=row.token, verdicts={}, reason="because")
    assert caught.value.field == "reason"
    verdicts = {"quality": adjudication.UNRESOLVED, "personalization": "tie"}
    adjudication.decide_item(user=judith, token=row.token, verdicts=verdicts, reason="subjective")
    item = desk.items()[0]
    assert item.quality_decision is not None
    assert item.personalization_decision is not None
    assert (item.state, item.quality_decision.source) == (ItemState.DONE, "unresolved")
    assert item.quality_decision.decided_by == judith
    assert item.personalization_decision.verdict == "tie"


def test_labels_that_change_afterwards_do_not_undo_the_decision() -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    item = decide(judith, desk.items()[0], "tie")
    for user in desk.people:
        lease = Lease.objects.get(item=item, member__user=user)
        submit(user, lease, "second")
    assert labels.undo_label(user=desk.people[0], token=lease_token(desk)) is not None
    after = desk.items()[0]
    assert (after.state, after.quality_decision) == (ItemState.DONE, item.quality_decision)
    assert after.done == 2


def lease_token(desk: Desk) -> str:
    return Lease.objects.get(member__user=desk.people[0]).token


def test_labels_that_agree_meanwhile_wait_until_the_item_is_given_back() -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    row = adjudication.claim_item(user=judith, item=desk.items()[0])
    for user in desk.people[1:]:
        submit(user, Lease.objects.get(member__user=user), "first")
    assert desk.items()[0].state == ItemState.DISPUTED
    for _ in range(2):
        adjudication.give_back(user=judith, token=row.token)
    item = desk.items()[0]
    assert item.state == ItemState.DONE
    assert item.quality_decision is not None
    assert item.quality_decision.source == "unanimous"
    with pytest.raises(Refused):
        adjudication.claim_item(user=judith, item=item)


def test_who_labelled_an_item_never_decides_it_not_even_after_an_undo() -> None:
    desk = disputed_desk(n_items=1)
    one = desk.people[0]
    desk.member(one)
    desk.project.members.filter(user=one).update(adjudicates=True)
    with pytest.raises(Forbidden):
        adjudication.claim_item(user=one, item=desk.items()[0])
    assert adjudication.claim_next(user=one, project=desk.project) is None
    assert disputed_queue(desk.project, one).entries == []
    labels.undo_label(user=one, token=lease_token(desk))
    submit(one, Lease.objects.get(member__user=one), "first")
    with pytest.raises(Forbidden):
        adjudication.claim_item(user=one, item=desk.items()[0])


def test_a_claim_is_one_persons_until_it_runs_out() -> None:
    desk = disputed_desk(n_items=2)
    judith, ruth = adjudicator(desk), adjudicator(desk, "ruth")
    row = adjudication.claim_next(user=judith, project=desk.project)
    assert row is not None
    assert adjudication.claim_next(user=judith, project=desk.project) == row
    with pytest.raises(Refused):
        adjudication.claim_item(user=ruth, item=row.item)
    other = adjudication.claim_next(user=ruth, project=desk.project)
    assert other is not None
    assert other.item != row.item
    adjudication.give_back(user=ruth, token=other.token)
    adjudication.decide_blind(user=judith, token=row.token, verdicts=shown(row, "first"))
    Adjudication.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    taken = adjudication.claim_item(user=ruth, item=row.item)
    with pytest.raises(Refused) as caught:
        adjudication.decide_item(
            user=judith, token=row.token, verdicts=shown(row, "first"), reason="ambiguous"
        )
    assert caught.value.code == "claimed"
    row.refresh_from_db()
    assert (row.state, row.blind["quality"]) == (AdjudicationState.RELEASED, "first")
    assert taken.adjudicator == ruth


def test_a_claim_that_ran_out_still_counts_where_nobody_took_the_item() -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    row = adjudication.claim_item(user=judith, item=desk.items()[0])
    adjudication.decide_blind(user=judith, token=row.token, verdicts=shown(row, "first"))
    Adjudication.objects.update(expires_at=timezone.now() - timedelta(hours=1))
    assert adjudication.release_expired() == 1
    assert adjudication.release_expired() == 0
    adjudication.decide_item(
        user=judith, token=row.token, verdicts=shown(row, "first"), reason="ambiguous"
    )
    assert desk.items()[0].state == ItemState.DONE


def test_the_least_agreement_comes_first() -> None:
    desk = disputed_desk(n_items=3, settings={"axes": ["quality"]})
    some = desk.items()[2]
    for user in desk.people[:1]:
        lease = Lease.objects.get(item=some, member__user=user)
        Item.objects.filter(pk=some.pk).update(flags=["contested"])
        submit(user, lease, "second")
    queue = disputed_queue(desk.project, adjudicator(desk)).entries
    assert [entry.agreement for entry in queue] == [0, 0, 33]
    assert queue[-1].item == some
    assert disputed_queue(desk.project, desk.manager, show="contested").entries[0].item == some


def test_who_decided_about_an_item_never_gets_it_as_work() -> None:
    """Given back, the item may be open again: she has seen its labels."""
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    row = adjudication.claim_item(user=judith, item=desk.items()[0])
    adjudication.give_back(user=judith, token=row.token)
    assert labels.undo_label(user=desk.people[0], token=lease_token(desk)) is not None
    leases.skip(user=desk.people[0], token=lease_token(desk), reason="unsure")
    assert desk.items()[0].state == ItemState.OPEN
    assert label_once(desk, judith) is None
    make_gold(
        actor=desk.manager, item=desk.items()[0], verdicts={"quality": "tie"}, onboarding=True
    )
    desk.project.members.filter(user=judith).update(state=MemberState.ONBOARDING)
    assert label_once(desk, judith) is None


def test_an_adjudicator_has_met_both_answers() -> None:
    from tests.catalog.factories import make_answer

    desk = disputed_desk(n_items=1)
    answer = make_answer(desk.items()[0].body.first)
    judith = adjudicator(desk)
    adjudication.claim_item(user=judith, item=desk.items()[0])
    assert Exposure.objects.filter(user=judith, answer=answer, where="labelled").exists()


@pytest.mark.parametrize(
    ("role", "adjudicates", "state", "allowed"),
    [
        (Role.ADMIN, None, "", True),
        (Role.VIEWER, None, "", False),
        (Role.ANNOTATOR, None, "", False),
        (Role.ANNOTATOR, False, "working", False),
        (Role.ANNOTATOR, True, "working", True),
        (Role.RATER, True, "onboarding", True),
        (Role.ANNOTATOR, True, "paused", False),
        (Role.ANNOTATOR, True, "left", False),
    ],
)
def test_who_adjudicates(role: str, adjudicates: bool | None, state: str, allowed: bool) -> None:
    desk = make_desk(people=1, n_items=0)
    user = make_user("somebody", role)
    member = None
    if adjudicates is not None:
        member = desk.member(desk.people[0])
        member.adjudicates, member.state = adjudicates, state
    assert policies.may_adjudicate(user, member) is allowed


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_twenty_adjudicators_at_once_never_hold_the_same_item() -> None:
    desk = disputed_desk(n_items=6)
    people = [adjudicator(desk, f"judge-{n}") for n in range(20)]
    barrier = threading.Barrier(len(people))
    problems: list[Any] = []

    def work(user: Any) -> None:
        try:
            barrier.wait()
            adjudication.claim_next(user=user, project=desk.project)
        except Exception as error:
            problems.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    held = Adjudication.objects.filter(state="blind").values_list("item", flat=True)
    assert len(held) == len(set(held)) == 6


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_tabs_that_decide_at_once_decide_once() -> None:
    desk = disputed_desk(n_items=1)
    judith = adjudicator(desk)
    row = adjudication.claim_item(user=judith, item=desk.items()[0])
    adjudication.decide_blind(user=judith, token=row.token, verdicts=shown(row, "first"))
    barrier, problems = threading.Barrier(8), []

    def work(verdict: str) -> None:
        try:
            barrier.wait()
            adjudication.decide_item(
                user=judith, token=row.token, verdicts=shown(row, verdict), reason="ambiguous"
            )
        except Exception as error:
            problems.append(error)
        finally:
            connection.close()

    verdicts = ["first", "second"] * 4
    threads = [threading.Thread(target=work, args=(verdict,)) for verdict in verdicts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert Decision.objects.filter(decided_by=judith).count() == 2  # one for each axis


def test_who_may_still_label_an_item_does_not_decide_it() -> None:
    """Else she would send her label with everybody else's before her eyes."""
    desk = make_desk(people=1, n_items=1, settings={"base_overlap": 2, "max_overlap": 2})
    judith = adjudicator(desk)
    lease = leases.serve(user=judith, project=desk.project).lease
    assert lease is not None
    item = lease.item
    assert adjudication.contest_item(actor=desk.manager, item=item, reason="appeal")
    Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now())
    leases.sweep_expired(desk.project)
    assert disputed_queue(desk.project, judith).free == 0
    with pytest.raises(Forbidden) as caught:
        adjudication.claim_item(user=judith, item=item)
    assert caught.value.code == "own_label"


def test_who_decided_an_item_that_she_had_skipped_cannot_fill_a_place_of_it() -> None:
    """Her late label is kept beside the count, and is no gold label either."""
    desk = make_desk(people=1, n_items=1)
    judith = adjudicator(desk)
    working(desk)
    lease = leases.serve(user=judith, project=desk.project).lease
    assert lease is not None
    leases.skip(user=judith, token=lease.token, reason="unsure")
    item = desk.items()[0]
    contest_item(actor=desk.manager, item=item, reason="problem")
    row = adjudication.claim_item(user=judith, item=item)
    adjudication.give_back(user=judith, token=row.token)
    remove_flag([item.pk], ItemFlag.CONTESTED)
    settle_item(item.pk)
    assert desk.items()[0].state == ItemState.OPEN
    assert submit(judith, lease, "first").extra
    assert (desk.items()[0].live, desk.items()[0].done) == (0, 0)
    make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    assert desk.member(judith).gold_seen == 0
