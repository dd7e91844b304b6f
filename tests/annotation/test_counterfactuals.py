"""Counterfactual pairs: both directions or none, synthetic, never in an evaluation set."""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from annotation.enums import Axis, DecisionSource, ItemKind, ItemState, JobState, ReviewState
from annotation.models import CounterfactualJob, Decision, Item, ItemText, Rewrite
from annotation.selectors.counterfactuals import balance_of, next_pair, view_job, view_pair
from annotation.services import counterfactuals, export_proof, exports
from annotation.services.counterfactual_pairs import keep_pair, propose
from annotation.services.gold import make_gold
from annotation.services.items import ItemDraft, add_items, release_items
from annotation.services.leases import serve
from tests.annotation.factories import Desk, make_desk
from webapp.catalog.enums import Split
from webapp.catalog.models import Persona, Prompt
from webapp.catalog.services.personas import create_persona, withdraw_consent
from webapp.catalog.services.prompts import get_or_create_prompt
from webapp.core.errors import Forbidden, InvalidInput, Refused

pytestmark = pytest.mark.django_db
CONCISE = "Use `cp -r a b{n}`. It copies {n} files at once. Check the exit code afterwards."
STEPS = """Sure! Let's go through this step by step.

1. First, open a terminal (you will find it among the other programs of your computer).
2. Then type `cp -r a b{n}`, because that copies everything in the folder at once.
3. Look whether {n} files are there, so that you can be certain that it worked.

I hope this helps!"""
OTHER = "Somebody else would do something quite different here, nobody knows why."


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_proof, "prove", lambda *args: {"ok": True, "steps": []})


def rated(n: int = 4, **options: Any) -> Desk:
    """`n` decided items: experts prefer short answers, novices steps."""
    desk = make_desk(people=1, n_items=0, open=False)
    drafts = []
    for number in range(n):
        prompt = get_or_create_prompt(messages=f"How do I copy folder {number}?")
        text = (STEPS if number % 2 else CONCISE).format(n=number + 3)
        sides = [text, OTHER] if number % 4 < 2 else [OTHER, text]
        drafts.append(
            ItemDraft(
                prompt_id=prompt.pk,
                prompt_digest=prompt.text_hash,
                first=sides[0],
                second=sides[1],
                persona_version_id=desk.versions[number % 2].pk,
            )
        )
    add_items(project=desk.project, drafts=drafts)
    for number, item in enumerate(desk.items()):
        rate(item, "first" if number % 4 < 2 else "second", **options)
    return desk


def rate(item: Item, verdict: str, axis: str = "personalization", posterior: float = 0.95) -> None:
    decision = Decision.objects.create(
        item=item,
        axis=axis,
        n=item.decisions.filter(axis=axis).count() + 1,
        verdict=verdict,
        source=DecisionSource.UNANIMOUS,
        posterior={verdict: posterior},
        labels=3,
    )
    Item.objects.filter(pk=item.pk).update(
        state=ItemState.DONE, **{f"{axis}_decision": decision.pk}
    )


def run(desk: Desk, **options: Any) -> CounterfactualJob:
    job = counterfactuals.start_job(
        actor=desk.manager, project=desk.project, options=options, key="", send=False
    )
    done = counterfactuals.run_job(job.pk)
    assert done is not None
    return done


def made(desk: Desk) -> list[Item]:
    rows = desk.project.items.filter(synthetic=True).order_by("pk")
    return list(rows.select_related("body", "rewrite", "personalization_decision"))


def test_every_answer_makes_two_items_for_opposite_personas() -> None:
    desk = rated(4)
    job = run(desk)
    assert (job.state, job.done, job.refused) == (JobState.DONE, 4, 0), job.report
    items = made(desk)
    assert len(items) == 8
    for one, two in zip(items[::2], items[1::2], strict=True):
        assert one.rewrite.pair == two.rewrite.pair
        assert one.persona_version_id == two.rewrite.opposite_id
        assert two.persona_version_id == one.rewrite.opposite_id
        assert {one.body.first, one.body.second} == {two.body.first, two.body.second}
        assert one.prompt_id == two.prompt_id
        wins = [
            item.body.first
            if item.personalization_decision.verdict == "first"
            else item.body.second
            for item in (one, two)
            if item.personalization_decision
        ]
        assert len(set(wins)) == 2  # the same two texts, the other way round
        source = one.rewrite.source_item
        assert wins[0] in (source.body.first, source.body.second)
        assert wins[0] != OTHER
        for item in (one, two):
            assert (item.kind, item.synthetic, item.state) == (
                ItemKind.COUNTERFACTUAL,
                True,
                ItemState.DONE,
            )
            assert item.personalization_decision is not None
            assert item.personalization_decision.source == DecisionSource.SYNTHETIC
            assert item.quality_decision is None


def test_both_directions_are_equal_in_number() -> None:
    desk = rated(6)
    job = run(desk)
    found = {balance.style: balance.kept for balance in balance_of(job)}
    assert {str(name): n for name, n in found.items()} == {"concise": 6, "step by step": 6}
    first = Counter(item.personalization_decision.verdict for item in made(desk))  # type: ignore[union-attr]
    assert set(first) == {"first", "second"}


def test_what_does_not_qualify_is_counted_with_its_reason() -> None:
    desk = rated(4)
    items = desk.items()
    rate(items[0], "first", posterior=0.6)
    body = "Yes."
    prompt = get_or_create_prompt(messages="Is it?")
    add_items(
        project=desk.project,
        drafts=[ItemDraft(prompt.pk, prompt.text_hash, body, OTHER, desk.versions[0].pk)],
    )
    rate(desk.items()[4], "first")
    job = run(desk)
    assert job.report["refusals"] == {"posterior": 1, "content_length": 1}
    assert (job.done, job.refused, len(made(desk))) == (5, 2, 6)


def test_gold_and_what_is_held_out_are_never_rewritten() -> None:
    desk = rated(4)
    items = desk.items()
    make_gold(actor=desk.manager, item=items[0], verdicts={"personalization": "first"})
    Prompt.objects.filter(pk=items[1].prompt_id).update(split=Split.HOLDOUT)
    job = run(desk)
    assert job.done == 2


def test_without_an_opposite_in_the_same_language_nothing_is_made() -> None:
    desk = rated(2)
    Persona.objects.filter(pseudonym="novice-1").update(
        features={"expertise": "novice", "language": "zh"}
    )
    job = run(desk)
    assert job.report["refusals"] == {"no_opposite": 2}
    assert not made(desk)


def test_a_second_job_makes_nothing_again() -> None:
    desk = rated(4)
    run(desk)
    again = run(desk)
    assert again.report["refusals"] == {"known": 4}
    assert len(made(desk)) == 8


def test_the_same_key_is_one_job_and_only_managers_start_one() -> None:
    desk = rated(2)
    start: dict[str, Any] = {"project": desk.project, "key": "k", "send": False}
    one = counterfactuals.start_job(actor=desk.manager, **start)
    assert counterfactuals.start_job(actor=desk.manager, **start) == one
    with pytest.raises(Forbidden):
        counterfactuals.start_job(actor=desk.people[0], **start)


def test_a_project_without_personalization_makes_none() -> None:
    desk = make_desk(people=1, n_items=0, open=False, settings={"axes": ["quality"]})
    with pytest.raises(InvalidInput):
        run(desk, axis="quality")


def test_highly_rated_may_mean_quality() -> None:
    desk = rated(2, axis="quality")
    assert run(desk).done == 0
    assert run(desk, axis=Axis.QUALITY).refused == 0
    assert len(made(desk)) == 4


def test_a_killed_job_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = rated(4)
    job = counterfactuals.start_job(actor=desk.manager, project=desk.project, key="", send=False)
    calls: list[int] = []

    def dies(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return keep_pair(*args)

    monkeypatch.setattr(counterfactuals, "keep_pair", dies)
    with pytest.raises(KeyboardInterrupt):
        counterfactuals.run_job(job.pk)
    assert len(made(desk)) == 4
    assert counterfactuals.run_job(job.pk) is None  # it may still be alive
    CounterfactualJob.objects.filter(pk=job.pk).update(
        heartbeat_at=timezone.now() - timedelta(minutes=5)
    )
    sent: list[int] = []
    monkeypatch.setattr(counterfactuals, "enqueue", lambda name, pk: sent.append(pk))
    assert (counterfactuals.repair_jobs(), sent) == (1, [job.pk])
    done = counterfactuals.run_job(job.pk)
    assert done is not None
    assert (done.state, done.done, len(made(desk))) == (JobState.DONE, 4, 8)


def test_a_cancelled_job_stops_and_keeps_whole_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = rated(4)
    job = counterfactuals.start_job(actor=desk.manager, project=desk.project, key="", send=False)

    def cancelled(*args: Any) -> Any:
        if len(made(desk)) == 2:
            counterfactuals.cancel_job(actor=desk.manager, job=job)
        return propose(*args)

    monkeypatch.setattr(counterfactuals, "propose", cancelled)
    done = counterfactuals.run_job(job.pk)
    assert done is not None
    assert (done.state, len(made(desk))) == (JobState.CANCELLED, 2)


def test_where_one_direction_fails_the_other_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in one transaction: half a pair cannot stand, whatever happens in between."""
    desk = rated(1)
    job = counterfactuals.start_job(actor=desk.manager, project=desk.project, key="", send=False)
    real, calls = Rewrite.objects.create, []

    def second_fails(**values: Any) -> Rewrite:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("gone")
        return real(**values)

    monkeypatch.setattr(Rewrite.objects, "create", second_fails)
    with pytest.raises(ValueError, match="gone"):
        counterfactuals.run_job(job.pk)
    assert len(calls) == 2
    assert not made(desk)
    job.refresh_from_db()
    assert job.state == JobState.FAILED  # else it would be sent for ever
    assert "log of the worker" in view_job(job).failure


def test_nobody_is_given_a_synthetic_item() -> None:
    desk = rated(2)
    run(desk)
    desk.project.state = "open"
    desk.project.save()
    assert serve(user=desk.people[0], project=desk.project).lease is None


# Export


def export(desk: Desk, **options: Any) -> Any:
    started = exports.start_export(
        actor=desk.manager,
        project=desk.project,
        options={"axis": "personalization", "synthetic": "yes", **options},
        key="",
        send=False,
    )
    done = exports.run_export(pk=started.pk)
    assert done is not None
    return done


def rows(done: Any) -> Iterator[dict[str, Any]]:
    if not done.path.endswith(".zip"):
        yield from map(json.loads, Path(done.path).read_text().splitlines())
        return
    with zipfile.ZipFile(done.path) as archive:
        for name in archive.namelist():
            yield from map(json.loads, archive.read(name).decode().splitlines())


def test_synthetic_pairs_leave_only_when_asked_for_and_are_marked() -> None:
    desk = rated(4)
    run(desk)
    assert export(desk, synthetic="no").report["left_out"] == {"synthetic": 8}
    found = [row for row in rows(export(desk)) if row["synthetic"]]
    assert len(found) == 8
    assert all(row["outcome"] == "synthetic" for row in found)
    pairs = Counter(row["counterfactual_pair"] for row in found)
    assert set(pairs.values()) == {2}


def many_personas(n: int) -> Desk:
    """Groups that share no prompt and no persona, some of them with synthetic pairs."""
    desk = rated(4)
    for number in range(n):
        persona = create_persona(actor=None, pseudonym=f"q{number}", summary="Wants facts.")
        version = persona.versions.get()
        prompt = get_or_create_prompt(messages=f"Question {number}?")
        text = f"Fact number {number}."
        draft = ItemDraft(prompt.pk, prompt.text_hash, text, OTHER, version.pk)
        add_items(project=desk.project, drafts=[draft])
    for item in desk.items():
        if item.state != ItemState.DONE:
            rate(item, "first")
    return desk


@pytest.mark.parametrize("seed", range(5))
def test_no_synthetic_row_stands_in_a_set_for_evaluation(seed: int) -> None:
    desk = many_personas(12)
    run(desk)
    done = export(desk, train=40, validation=30, test=30, seed=seed)
    found = list(rows(done))
    assert {row["split"] for row in found} == {"train", "validation", "test"}
    assert {row["split"] for row in found if row["synthetic"]} <= {"train"}
    people: dict[str, set[str]] = {}
    for row in found:
        people.setdefault(row["persona"], set()).add(row["split"])
    assert all(len(splits) == 1 for splits in people.values())
    left = done.report["left_out"].get("evaluation", 0)
    assert left + sum(row["synthetic"] for row in found) == 8


def test_a_direction_never_leaves_alone() -> None:
    desk = rated(4)
    run(desk)
    lonely = made(desk)[0]
    Item.objects.filter(pk=lonely.pk).update(state=ItemState.DROPPED)
    done = export(desk)
    assert done.report["left_out"] == {"dropped": 1, "partner": 1}
    assert lonely.rewrite.pair not in {row["counterfactual_pair"] for row in rows(done)}


def test_a_rewrite_of_what_became_gold_stays_inside() -> None:
    desk = rated(2)
    run(desk)
    source = desk.items()[0]
    make_gold(actor=desk.manager, item=source, verdicts={"personalization": "first"})
    assert export(desk).report["left_out"] == {"gold": 3}


def test_withdrawn_consent_erases_both_directions() -> None:
    desk = rated(4)
    run(desk)
    withdraw_consent(actor=desk.manager, persona=Persona.objects.get(pseudonym="expert-1"))
    items = [item.pk for item in made(desk)]
    assert not ItemText.objects.filter(item__in=items).exists()
    assert not any(list(rows(export(desk)))[n]["synthetic"] for n in range(2))


# Review


def test_consent_withdrawn_while_a_text_is_rewritten_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = rated(1)
    persona = Persona.objects.get(pseudonym="expert-1")

    def slow(*args: Any) -> Any:
        found = propose(*args)
        withdraw_consent(actor=desk.manager, persona=persona)
        return found

    monkeypatch.setattr(counterfactuals, "propose", slow)
    job = run(desk)
    assert job.report["refusals"] == {"withdrawn": 1}
    assert made(desk) == []
    assert not ItemText.objects.filter(item__project=desk.project).exists()


def test_rejecting_takes_both_directions_out_and_accepting_brings_them_back() -> None:
    desk = rated(4)
    job = run(desk)
    pair = next_pair(job)
    review: dict[str, Any] = {"actor": desk.manager, "project": desk.project, "pair": pair}
    counterfactuals.review_pair(**review, accept=False, note="not its style")
    both = list(Rewrite.objects.filter(pair=pair).select_related("item"))
    assert [row.state for row in both] == [ReviewState.REJECTED] * 2
    assert [row.item.state for row in both] == [ItemState.DROPPED] * 2
    assert [row.item.flags for row in both] == [["rejected"]] * 2
    assert export(desk).report["left_out"] == {"rejected": 2}
    assert next_pair(job) != pair
    assert {balance.rejected for balance in balance_of(job)} == {1}
    counterfactuals.review_pair(**review, accept=True)
    assert export(desk).report["left_out"] == {}
    assert export(desk, synthetic="reviewed").report["left_out"] == {"not_reviewed": 6}


def test_a_rejected_pair_that_is_given_out_asks_nobody_and_still_does_not_leave() -> None:
    desk = rated(4)
    pair = next_pair(run(desk))
    review: dict[str, Any] = {"actor": desk.manager, "project": desk.project, "pair": pair}
    pks = [row.item_id for row in counterfactuals.review_pair(**review, accept=False)]
    release_items(actor=desk.manager, project=desk.project, items=pks)
    assert {item.state for item in made(desk)} == {ItemState.DONE}
    assert export(desk).report["left_out"] == {"rejected": 2}


def test_what_was_made_gold_stays_gold_when_its_pair_is_accepted() -> None:
    desk = rated(4)
    pair = next_pair(run(desk))
    item = Rewrite.objects.filter(pair=pair)[0].item
    make_gold(actor=desk.manager, item=item, verdicts={"personalization": "first"})
    counterfactuals.review_pair(actor=desk.manager, project=desk.project, pair=pair, accept=True)
    item.refresh_from_db()
    assert item.state == ItemState.GOLD


def test_only_managers_review_and_only_their_projects_pairs() -> None:
    desk = rated(2)
    job = run(desk)
    pair = next_pair(job)
    with pytest.raises(Forbidden):
        counterfactuals.review_pair(
            actor=desk.people[0], project=desk.project, pair=pair, accept=True
        )
    with pytest.raises(Refused):
        counterfactuals.review_pair(
            actor=desk.manager, project=desk.project, pair="0" * 32, accept=True
        )


def test_the_reviewer_sees_the_original_as_a() -> None:
    desk = rated(4)
    job = run(desk)
    for pair in set(Rewrite.objects.values_list("pair", flat=True)):
        shown = view_pair(job, pair, diff=False)
        assert shown is not None
        source = Rewrite.objects.filter(pair=pair).first()
        assert source is not None
        wanted = "terminal" if shown.people[0][0] != "expert-1" else "exit code"
        assert wanted in shown.shown.left_html
        assert [person[3] for person in shown.people] == ["A", "B"]


# Options


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"minimum": 101}, "minimum"),
        ({"limit": 0}, "limit"),
        ({"seed": -1}, "seed"),
        ({"axis": "taste"}, "axis"),
        ({"url": "ftp://example.org"}, "url"),
        ({"url": "http://127.0.0.1/v1", "model": "m"}, "url"),
        ({"url": "http://user:pw@example.org/v1", "model": "m"}, "url"),
        ({"url": "https://example.org/v1", "model": ""}, "model"),
        ({"url": "https://example.org/v1", "model": "m", "key": "SECRET_KEY"}, "key"),
        ({"url": "https://example.org/v1", "model": "m", "key": "PALATE_KEY_NOT_SET"}, "key"),
    ],
)
def test_options_that_cannot_be_used_are_named(options: dict[str, Any], field: str) -> None:
    kind = "endpoint" if {"url", "model", "key"} & set(options) else "rules"
    with pytest.raises(InvalidInput) as error:
        counterfactuals.read_options(kind, options)
    assert error.value.field == field


def test_the_key_is_only_ever_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PALATE_KEY_TEST", "very-secret")
    said = counterfactuals.read_options(
        "endpoint", {"url": "https://example.org/v1/", "model": "m", "key": "PALATE_KEY_TEST"}
    )
    assert said["url"] == "https://example.org/v1/chat/completions"
    assert "very-secret" not in json.dumps(said)
