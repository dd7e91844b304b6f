"""Freezing pairs of annotation: what enters, the hash, splits over all sets, refusals, repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from annotation.services.gold import make_gold
from tests.training.factories import admin, draft, freeze, frozen, make_pairs, make_people
from training import spool
from training.models import Dataset, DatasetItem, RowText, SplitClaim
from training.selectors.datasets import check_all_splits
from training.services import collecting
from training.services.datasets import create_dataset, discard_dataset, freeze_dataset
from training.services.freezing import repair_freezes, run_freeze
from training.services.sealing import keep_claimed_from_holdout
from webapp.catalog.enums import Split as CatalogSplit
from webapp.catalog.models import Persona, Prompt
from webapp.core.errors import Forbidden, InvalidInput, Refused
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
GATES: dict[str, Any] = {"train": 70, "reward_model_gate": 15, "gate": 15}


def test_decided_pairs_become_a_dataset() -> None:
    make_pairs()
    dataset = frozen()
    assert dataset.rows == 12
    assert dataset.counts["groups"]["split"] == {"train": 12}
    assert dataset.counts["groups"]["stratum"] == {
        "expertise=expert, language=en": 6,
        "expertise=novice, language=en": 6,
    }
    assert dataset.lineage["projects"][0]["rows"] == 12
    assert dataset.lineage["projects"][0]["guidelines"] == [1]
    text = RowText.objects.order_by("sha256").first()
    assert text is not None
    assert '"axis":"quality"' in text.line
    assert Event.objects.filter(action="dataset_frozen").count() == 1
    assert not spool.folder(dataset.pk).exists()


def test_the_same_rows_have_the_same_hash_and_texts_are_kept_once() -> None:
    make_pairs()
    one, two = frozen(**GATES), frozen(**GATES)
    assert one.content_sha256 == two.content_sha256
    assert one.split_sha256 == two.split_sha256
    assert RowText.objects.count() == one.rows
    assert one.rows + one.counts["left"]["between"] == 12


def test_freezing_twice_is_once() -> None:
    make_pairs()
    dataset = frozen()
    freeze_dataset(actor=admin(), dataset=dataset)
    assert run_freeze(pk=dataset.pk) is None
    assert Event.objects.filter(action="freeze_dataset").count() == 1


def test_a_killed_freeze_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    make_pairs()
    whole = frozen()
    dataset = draft()
    freeze_dataset(actor=admin(), dataset=dataset)
    monkeypatch.setattr("training.services.freezing.BATCH", 5)

    def killed(*_args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("training.services.freezing._finish", killed)
        with pytest.raises(KeyboardInterrupt):
            run_freeze(pk=dataset.pk)
    dataset.refresh_from_db()
    assert (dataset.state, dataset.rows_done) == ("freezing", 12)
    assert run_freeze(pk=dataset.pk) is None  # the other may still live
    monkeypatch.setattr(collecting, "collect", killed)
    assert run_freeze(pk=dataset.pk, take_over=True) is not None
    dataset.refresh_from_db()
    assert dataset.content_sha256 == whole.content_sha256


def test_repair_sends_freezes_whose_process_is_gone(
    django_capture_on_commit_callbacks: Any,
) -> None:
    make_pairs()
    dataset = draft()
    freeze_dataset(actor=admin(), dataset=dataset)
    with django_capture_on_commit_callbacks(execute=True):
        assert repair_freezes() == 1
    dataset.refresh_from_db()
    assert dataset.state == "frozen"


def test_a_frozen_dataset_cannot_be_changed_even_by_raw_statements() -> None:
    make_pairs()
    dataset = frozen()
    item = dataset.items.first()
    assert item is not None
    attempts: list[Callable[[], object]] = [
        lambda: Dataset.objects.filter(pk=dataset.pk).update(content_sha256="0" * 64),
        lambda: Dataset.objects.filter(pk=dataset.pk).update(filter={}),
        lambda: Dataset.objects.filter(pk=dataset.pk).update(state="draft"),
        lambda: Dataset.objects.filter(pk=dataset.pk).delete(),
        lambda: DatasetItem.objects.filter(pk=item.pk).update(split="gate"),
        lambda: DatasetItem.objects.filter(pk=item.pk).delete(),
        lambda: DatasetItem.objects.create(
            dataset=dataset, row_sha256="f" * 64, prompt_sha256="e" * 64, split="train",
            source="import", ref="x",
        ),
        lambda: RowText.objects.filter(sha256=item.row_sha256).update(line="{}"),
        lambda: SplitClaim.objects.update(split="gate"),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(IntegrityError), transaction.atomic():
            attempt()
    Dataset.objects.filter(pk=dataset.pk).update(erased_rows=1)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("gold", ""),
        ("holdout_prompt", "holdout"),
        ("holdout_persona", "holdout"),
        ("tie", "tie"),
        ("erased", "erased"),
    ],
)
def test_what_must_not_enter_stays_out(spoil: str, reason: str) -> None:
    choose = (lambda _lease: "tie") if spoil == "tie" else None
    desk = make_pairs(people=2, prompts=2, choose=choose)
    if spoil == "tie":
        make_pairs(people=2, prompts=1, topic="other")
    item = desk.items()[0]
    if spoil == "gold":
        make_gold(actor=desk.manager, item=item, verdicts={"quality": "first"})
    if spoil == "holdout_prompt":
        Prompt.objects.filter(pk=item.prompt_id).update(split=CatalogSplit.HOLDOUT)
    if spoil == "holdout_persona":
        Persona.objects.filter(versions=item.persona_version).update(split=CatalogSplit.HOLDOUT)
    if spoil == "erased":
        item.body.delete()
    dataset = frozen()
    held = set(dataset.items.values_list("ref", flat=True))
    assert f"item:{item.pk}:quality" not in held
    assert held
    if reason:
        assert dataset.counts["left"][reason] >= 1


def test_the_filter_says_what_enters() -> None:
    make_pairs(people=4, prompts=2)
    make_pairs(people=2, prompts=2, topic="other")
    assert frozen(categories=["other"]).rows == 4
    assert frozen(strata=["expertise=novice, language=en"]).rows == 6
    only_other = frozen(projects=[Dataset.objects.latest("pk").lineage["projects"][0]["id"]])
    assert only_other.counts["groups"]["category"] == {"thing": 8}
    assert freeze(draft(minimum=99)).report["refusal"]["code"] == "empty"
    assert freeze(draft(decided=["adjudicated"])).report["left"] == {"decided": 12}


def test_a_split_once_given_stays_over_all_sets() -> None:
    make_pairs(people=6, prompts=6)
    first = frozen(**GATES)
    gates = dict(first.items.values_list("prompt_sha256", "split"))
    make_pairs(people=6, prompts=6, topic="other")
    second = frozen(**GATES, seed=7, name="second")
    for prompt, split in second.items.values_list("prompt_sha256", "split"):
        assert gates.get(prompt, split) == split
    assert check_all_splits() == []


def test_where_everything_belongs_elsewhere_the_freeze_is_refused_with_examples() -> None:
    make_pairs(people=6, prompts=6)
    frozen(**GATES)
    make_pairs(people=6, prompts=2, topic="other")
    dataset = freeze(draft(cut=False))
    assert dataset.state == "draft"
    assert dataset.report["refusal"]["code"] == "clash"
    assert dataset.report["clashes"][0]["persona_split"]
    assert not dataset.items.exists()
    assert not spool.folder(dataset.pk).exists()


def test_a_split_that_would_be_empty_is_refused() -> None:
    make_pairs(people=2, prompts=2)
    frozen()
    dataset = freeze(draft(**GATES))
    refusal = dataset.report["refusal"]
    assert (refusal["code"], refusal["params"]["split"]) == ("empty_split", "reward_model_gate")


def test_pairs_that_teach_only_a_style_are_refused_with_numbers() -> None:
    always_short = lambda p, u: (f"Short {p}-{u}.", f"A much longer answer for {p}-{u} here.")  # noqa: E731
    make_pairs(people=6, prompts=6, texts=always_short)
    dataset = freeze(draft(axis="personalization"))
    refusal = dataset.report["refusal"]
    assert refusal["code"] == "one_directional"
    assert (refusal["params"]["more"], refusal["params"]["differing"]) == (0, 36)
    assert frozen(axis="quality").rows == 36  # a longer answer may well be the worse one
    make_pairs(people=6, prompts=6, topic="other")
    assert frozen(axis="personalization").rows == 72


def test_an_overtaken_freeze_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between collecting and freezing a persona is held out."""
    make_pairs(people=4, prompts=3, shared=False)
    real, people = collecting.collect, make_people(4)

    def collect(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        monkeypatch.setattr(collecting, "collect", real)
        Persona.objects.filter(versions=people[0]).update(split=CatalogSplit.HOLDOUT)

    monkeypatch.setattr(collecting, "collect", collect)
    dataset = frozen()
    assert dataset.rows == 9
    assert dataset.counts["rows"] == 9


def test_rounds_never_hold_out_what_a_dataset_holds() -> None:
    make_pairs(people=2, prompts=2)
    frozen()
    assert set(Persona.objects.values_list("split", flat=True)) == {CatalogSplit.ROTATING}
    assert set(Prompt.objects.values_list("split", flat=True)) == {CatalogSplit.ROTATING}


def test_a_prompt_that_comes_later_is_not_held_out_either() -> None:
    make_pairs(people=2, prompts=1)
    dataset = frozen()
    prompt = Prompt.objects.get()
    Prompt.objects.filter(pk=prompt.pk).update(split=CatalogSplit.NONE)
    assert dataset.items.filter(prompt_sha256=prompt.text_hash).exists()
    assert [keep_claimed_from_holdout() for _ in range(2)] == [1, 0]
    prompt.refresh_from_db()
    assert prompt.split == CatalogSplit.ROTATING


def test_drafts_are_made_once_and_may_be_discarded(bob: Any) -> None:
    one = create_dataset(
        actor=admin(), name="A", kind="preferences", values={"axis": "quality"}, key="k"
    )
    two = create_dataset(
        actor=admin(), name="A", kind="preferences", values={"axis": "quality"}, key="k"
    )
    assert one == two
    discard_dataset(actor=admin(), dataset=one)
    with pytest.raises(Refused):
        freeze_dataset(actor=admin(), dataset=one)
    create_dataset(actor=admin(), name="A", kind="preferences", values={"axis": "quality"})
    with pytest.raises(Forbidden):
        create_dataset(actor=bob, name="B", kind="preferences", values={"axis": "quality"})
    with pytest.raises(InvalidInput):
        create_dataset(actor=admin(), name="A", kind="preferences", values={"axis": "quality"})


@pytest.mark.parametrize(
    ("kind", "values", "field"),
    [
        ("preferences", {}, "axis"),
        ("preferences", {"axis": "quality", "train": 90}, "train"),
        ("preferences", {"axis": "quality", "sources": ["import"]}, "sources"),
        ("preferences", {"axis": "quality", "oops": 1}, "oops"),
        ("preferences", {"axis": "quality", "projects": ["1"]}, "projects"),
        ("preferences", {"axis": "quality", "minimum": 101}, "minimum"),
        ("counterfactuals", {"train": 90, "gate": 10}, "train"),
        ("poems", {}, "kind"),
    ],
)
def test_a_filter_that_does_not_fit_names_its_field(
    kind: str, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        create_dataset(actor=admin(), name="A", kind=kind, values=values)
    assert caught.value.field == field
