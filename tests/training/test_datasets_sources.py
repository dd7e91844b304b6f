"""What each source gives: votes, counterfactual directions, counter-examples, late labels."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation.enums import DecisionSource, ItemKind, ItemState
from annotation.models import (
    CounterfactualJob,
    Decision,
    Item,
    Label,
    Lease,
    Project,
    Rewrite,
)
from annotation.services import items as item_services
from annotation.services import projects
from annotation.services.gold import make_gold
from arena.models import Context, Entry, Vote
from tests.arena.factories import draft_round, make_world, unsealed_round, vote_all
from tests.arena.factories import open_round as open_arena_round
from tests.conftest import make_user
from tests.training.factories import draft, freeze, frozen, make_pairs, make_people
from training.models import Dataset, RowText
from training.selectors.barred import find_barred
from training.selectors.datasets import check_all_splits
from webapp.accounts.enums import Role
from webapp.catalog.enums import Split as CatalogSplit
from webapp.catalog.models import Prompt
from webapp.catalog.services.prompts import get_or_create_prompt

pytestmark = pytest.mark.django_db
SHORT, LONG = "Run it.", "Open a window first, then think about it, then run it step by step."


def rows_of(dataset: Dataset) -> list[dict[str, Any]]:
    digests = dataset.items.values_list("row_sha256", flat=True)
    return [json.loads(t.line) for t in RowText.objects.filter(sha256__in=list(digests))]


# Arena


def test_votes_of_unsealed_rounds_become_pairs_with_counts() -> None:
    world = make_world(contestants=2, personas=4, prompts=3)
    round_ = unsealed_round(world, planned_votes=12)
    dataset = frozen(sources=["arena"])
    rows = rows_of(dataset)
    votes = Vote.objects.filter(battle__round=round_).count()
    assert sum(row["judgements"] for row in rows) == votes - _ties(dataset)
    for row in rows:
        assert row["decided"] == "votes"
        assert row["agreeing"] >= 1
        assert row["posterior"] == round((row["agreeing"] + 1) / (row["judgements"] + 2), 4)
        assert not row["simulated"]
    assert dataset.lineage["rounds"][0]["vote_digest"] == round_.vote_digest
    used = Context.objects.filter(round=round_, retired_at__isnull=False)
    assert used.count() == len({(r["persona_id"], json.dumps(r["prompt"])) for r in rows})
    assert "Harbor" not in json.dumps(rows)  # no row says who wrote an answer


def _ties(dataset: Dataset) -> int:
    """Votes on pairs that stayed out because as many were for the one as for the other."""
    return 2 * int(dataset.counts["left"].get("tie", 0))


def test_the_winner_is_who_most_votes_are_for() -> None:
    world = make_world(contestants=2, personas=2, prompts=1, raters=3)
    best = world.contestants[1]

    def choose(row: Any) -> dict[str, str]:
        slot = row.battle.slot
        left = slot.x if row.battle.left_is_x else slot.y
        side = "left" if left.contestant_id == best.pk else "right"
        return {"quality": side, "personalization": "tie"}

    unsealed_round(world, planned_votes=6, votes_per_battle=3, choose=choose)
    rows = rows_of(frozen(sources=["arena"]))
    assert {row["chosen"][0]["content"].split(" for ")[0] for row in rows} == {
        "Answer with style 1"
    }
    assert {(row["agreeing"], row["judgements"]) for row in rows} == {(3, 3)}
    assert freeze(draft(sources=["arena"], votes=4)).report["left"] == {"votes": 2}
    assert freeze(draft(sources=["arena"], axis="personalization")).report["left"] == {"tie": 2}


def test_sealed_rounds_and_holdout_contexts_give_nothing() -> None:
    world = make_world(contestants=2, personas=6, prompts=6)
    round_ = unsealed_round(world, planned_votes=12, holdout_percent=40)
    held = set(
        Context.objects.filter(round=round_, holdout=True).values_list(
            "prompt__text_hash", flat=True
        )
    )
    dataset = frozen(sources=["arena"])
    assert held
    assert not held & set(dataset.items.values_list("prompt_sha256", flat=True))
    assert check_all_splits() == []


def test_an_open_round_bars_its_prompts_from_every_source() -> None:
    world = make_world(contestants=2, personas=2, prompts=1)
    round_ = open_arena_round(world, planned_votes=2)
    vote_all(round_, world.raters)
    assert freeze(draft(sources=["arena"])).report["refusal"]["code"] == "empty"
    make_pairs(people=2, prompts=1)
    asked = world.prompts[0]
    project = Project.objects.get()
    item_services.add_items(
        project=project,
        drafts=[
            item_services.ItemDraft(
                prompt_id=asked.pk,
                prompt_digest=asked.text_hash,
                first=SHORT,
                second=LONG,
                persona_version_id=make_people(1)[0].pk,
            )
        ],
    )
    decide(project.items.get(prompt=asked), "quality", "first")
    dataset = frozen()
    assert dataset.counts["left"] == {"sealed": 1}
    assert dataset.rows == 2


def test_simulated_rounds_enter_only_when_asked_and_are_marked() -> None:
    world = make_world(contestants=2, personas=2, prompts=2)
    unsealed_round(world, planned_votes=4, simulated=True)
    assert freeze(draft(sources=["arena"])).state == "draft"
    dataset = frozen(sources=["arena"], simulated=True)
    assert dataset.counts["marks"]["simulated"] == dataset.rows
    assert dataset.lineage["rounds"][0]["simulated"]


def test_a_masked_text_is_nobody_s_example() -> None:
    world = make_world(
        contestants=2,
        personas=2,
        prompts=2,
        text=lambda c, p, q: f"I am {'Harbor' if c == 0 else 'somebody'} and answer {p} {q} {c}.",
    )
    round_ = unsealed_round(world, planned_votes=4)
    assert Entry.objects.filter(context__round=round_).exclude(spans=[]).exists()
    dataset = freeze(draft(sources=["arena"]))
    assert dataset.report["left"]["masked"] == 4


# Annotation


def decide(item: Item, axis: str, verdict: str, source: str = DecisionSource.MAJORITY) -> None:
    decision = Decision.objects.create(
        item=item, axis=axis, n=1, verdict=verdict, source=source, posterior={verdict: 0.9}
    )
    Item.objects.filter(pk=item.pk).update(state=ItemState.DONE, **{f"{axis}_decision": decision})


def make_counterfactuals(n: int, *, both: bool = True, people: int = 2) -> list[Item]:
    """`n` rewrites of short answers for one person, with the reverse for the other if `both`."""
    source = make_pairs(people=people, prompts=1, topic=f"cf{Item.objects.count()}").items()[0]
    project, versions = source.project, make_people(people)
    job = CounterfactualJob.objects.create(project=project)
    made = []
    for number in range(n):
        prompt = get_or_create_prompt(messages=f"Counterfactual {number} of {job.pk}?")
        for direction in range(2 if both else 1):
            person = versions[(2 * number + direction) % people]
            better, worse = (SHORT, LONG) if direction == 0 else (LONG, SHORT)
            [added] = item_services.add_items(
                project=project,
                drafts=[
                    item_services.ItemDraft(
                        prompt_id=prompt.pk,
                        prompt_digest=prompt.text_hash,
                        first=f"{better} {number}",
                        second=f"{worse} {number}",
                        persona_version_id=person.pk,
                        kind=ItemKind.COUNTERFACTUAL,
                        synthetic=True,
                    )
                ],
            )
            item = Item.objects.get(pk=added.item_id)
            Rewrite.objects.create(
                job=job,
                source_item=source,
                item=item,
                suited_to=person,
                opposite=versions[(2 * number + 1 - direction) % people],
                pair=f"pair{job.pk}-{number}",
            )
            decide(item, "personalization", "first", DecisionSource.SYNTHETIC)
            made.append(item)
    return made


def test_counterfactuals_in_both_directions_are_balanced() -> None:
    make_counterfactuals(6)
    dataset = frozen("counterfactuals")
    assert dataset.rows == 12
    length = dataset.counts["balance"][0]
    assert (length["more"], length["less"]) == (6, 6)
    assert {row["pair"] for row in rows_of(dataset)} >= {"pair1-0"}
    assert dataset.counts["marks"]["synthetic"] == 12


def test_rewrites_of_what_is_gold_stay_out() -> None:
    """They have the question and the answer of the gold item (F2)."""
    spoilt = make_counterfactuals(2)
    make_counterfactuals(3)
    source = spoilt[0].rewrite.source_item
    make_gold(actor=make_user("gold", Role.ADMIN), item=source, verdicts={"quality": "first"})
    held = {
        row.split(":")[1] for row in frozen("counterfactuals").items.values_list("ref", flat=True)
    }
    assert len(held) == 6
    assert not held & {str(item.pk) for item in spoilt}


def test_one_direction_alone_is_refused() -> None:
    make_counterfactuals(6, both=False)
    dataset = freeze(draft("counterfactuals"))
    assert dataset.report["refusal"]["code"] == "empty"
    assert dataset.report["left"]["partner"] == 6


def test_a_person_who_never_wants_the_other_style_does_not_hide_in_pairs() -> None:
    """Both directions are there, but both prefer the short answer: refused with the numbers."""
    made = make_counterfactuals(6)
    for item in made[1::2]:
        decision = Decision.objects.create(
            item=item, axis="personalization", n=2, verdict="second", source="synthetic"
        )
        Item.objects.filter(pk=item.pk).update(personalization_decision=decision)
    dataset = freeze(draft("counterfactuals"))
    refusal = dataset.report["refusal"]
    assert refusal["code"] == "one_directional"
    assert refusal["params"]["feature"] == "characters"
    assert (refusal["params"]["more"], refusal["params"]["differing"]) == (0, 12)


def test_synthetic_rows_stay_out_of_splits_for_evaluation() -> None:
    make_counterfactuals(4, people=4)
    make_pairs(people=8, prompts=2, topic="natural", shared=False, prefix="other")
    dataset = frozen(
        axis="personalization",
        decided=["unanimous", "majority", "synthetic"],
        train=60,
        gate=40,
    )
    gate = dataset.items.filter(split="gate")
    assert gate.exists()
    assert not gate.filter(synthetic=True).exists()
    assert check_all_splits() == []


def test_what_reviewers_rejected_and_synthetic_pairs_not_asked_for_stay_out() -> None:
    made = make_counterfactuals(3)
    Rewrite.objects.filter(item__in=made[:2]).update(state="rejected")
    assert frozen("counterfactuals").rows == 4
    dataset = frozen(axis="personalization")
    assert dataset.counts["left"]["synthetic"] == 4


def test_both_bad_answers_become_counter_examples() -> None:
    make_pairs(people=2, prompts=2, choose=lambda _lease: "both_bad")
    dataset = frozen("counterexamples", axis="quality")
    rows = rows_of(dataset)
    assert len(rows) == 8
    assert {row["label"] for row in rows} == {False}
    assert {row["reason"] for row in rows} == {"both_bad"}


def test_screened_out_answers_of_unsealed_rounds_become_counter_examples() -> None:
    world = make_world(
        contestants=3,
        personas=2,
        prompts=2,
        text=lambda c, p, q: f"I am Harbor {c} {p} {q}." if c == 0 and p == 0 else f"So {c}{p}{q}.",
    )
    unsealed_round(
        world,
        planned_votes=6,
        screening_policy={"contestant": "exclude", "self_reference": "exclude"},
    )
    excluded = Entry.objects.exclude(excluded_by="").count()
    assert excluded == 2
    rows = rows_of(frozen("counterexamples", sources=["arena"]))
    assert len(rows) == excluded
    assert all(row["reason"].startswith("screening: ") for row in rows)


def test_late_labels_count_where_the_filter_says_so() -> None:
    desk = make_pairs(people=2, prompts=1)
    item, late = desk.items()[0], make_user("late", Role.ANNOTATOR)
    projects.add_members(actor=desk.manager, project=desk.project, users=[late])
    member = desk.member(late)
    lease = Lease.objects.create(
        item=item, member=member, state="shown", first_left=True, expires_at=item.created_at
    )
    label = Label.objects.create(
        lease=lease, item=item, member=member, revision=1, quality="first",
        personalization="first", first_left=True, late=True,
    )  # fmt: skip
    Lease.objects.filter(pk=lease.pk).update(
        state="submitted", head=label, submitted_at=item.created_at
    )
    plain = {row["persona_id"]: row for row in rows_of(frozen())}
    more = {row["persona_id"]: row for row in rows_of(frozen(extras=True, seed=2))}
    name = item.persona_version.persona.pseudonym if item.persona_version else ""
    assert (plain[name]["judgements"], more[name]["judgements"]) == (1, 2)
    assert more[name]["posterior"] > plain[name]["posterior"]


def test_planned_holdouts_stay_out_before_their_round_opens() -> None:
    world = make_world(contestants=2, personas=6, prompts=6)
    round_ = draft_round(world, holdout_percent=40)
    held = Context.objects.filter(round=round_, holdout=True)
    assert held.exists()
    assert set(Prompt.objects.values_list("split", flat=True)) == {CatalogSplit.NONE}
    barred = find_barred()
    assert set(barred.prompts) == set(held.values_list("prompt__text_hash", flat=True))
    assert set(barred.personas) == set(held.values_list("persona_version__persona", flat=True))
