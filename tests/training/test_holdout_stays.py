"""Holdout contexts never leave (V11): every filter of every kind of dataset, every export.

A round with holdout contexts is unsealed; its held prompts and personas are then planted wherever
rows may come from: pairs of annotation, rewrites, imported files, answers of the catalog. What the
arena publishes of a round is allowed to name a held context only by hash: that proves the round,
and teaches nobody its question, its answers or its person.
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.enums import DecisionSource, ItemKind
from annotation.exports.options import (
    AXES,
    FILE_TYPES,
    STYLES,
    TRL,
    TRL_IMPLICIT,
    TRL_UNPAIRED,
)
from annotation.models import CounterfactualJob, Item, Project, Rewrite
from annotation.services import catalog_pairs, export_proof, exports, items
from arena.models import Context, Round, Vote
from tests.arena.factories import World, make_answer, make_world, unsealed_round
from tests.training.factories import admin, draft, freeze, make_pairs
from tests.training.test_datasets_records import trace
from tests.training.test_datasets_sources import decide
from training import filters, snapshots
from training.enums import Kind
from training.filters import DECIDED, KINDS, PAIRS, SPLITS, Filter
from training.models import DatasetItem, Record
from training.selectors.datasets import check_all_splits
from training.selectors.preview import preview
from training.selectors.round_answers import answers_of
from training.selectors.sources import Chooser, take
from webapp.catalog.enums import Axis, Split
from webapp.catalog.models import Answer, Persona, PersonaVersion, Prompt
from webapp.catalog.services.imports import open_run, run_import
from webapp.core.errors import Refused

pytestmark = pytest.mark.django_db
PUBLISHED = ("leaderboard_csv", "leaderboard_json", "leaderboard_svg", "bundle", "votes_file")
ITEM = {"first": "Run it now.", "second": "Open a window first and then go on step by step."}


@dataclass
class Held:
    """A round with holdout contexts, and everything of them that must stay."""

    world: World
    round: Round
    prompts: list[Prompt]
    versions: list[PersonaVersion]
    project: Project

    @property
    def digests(self) -> set[str]:
        return {prompt.text_hash for prompt in self.prompts}

    @property
    def people(self) -> set[int]:
        return {version.persona_id for version in self.versions}

    @property
    def texts(self) -> list[str]:
        """Questions, summaries, pseudonyms, answers: nothing of this may be read outside."""
        contexts = Context.objects.filter(round=self.round, holdout=True)
        answers = Answer.objects.filter(entries__context__in=contexts).select_related("body")
        return [
            *(f"{prompt.messages[0]['content']}" for prompt in self.prompts),
            *(version.text.summary for version in self.versions),
            *(answer.body.text for answer in answers),
        ]


@pytest.fixture
def held(tmp_path: Path) -> Held:
    world = make_world(contestants=2, personas=6, prompts=6)
    round_ = unsealed_round(world, planned_votes=18, holdout_percent=40)
    contexts = Context.objects.filter(round=round_, holdout=True)
    prompts = list(Prompt.objects.filter(pk__in=contexts.values("prompt")))
    versions = list(
        PersonaVersion.objects.filter(pk__in=contexts.values("persona_version")).select_related(
            "text"
        )
    )
    assert prompts
    assert versions
    assert {p.split for p in prompts} == {Split.HOLDOUT}
    found = Held(world, round_, prompts, versions, make_pairs(people=2, prompts=2).project)
    plant_items(found)
    plant_files(found, tmp_path)
    return found


def plant_items(held: Held) -> None:
    """Decided pairs and rewrites about held prompts, held personas, and both."""
    free = Prompt.objects.exclude(pk__in=[p.pk for p in held.prompts]).first()
    cells: list[tuple[Any, Any]] = [
        (held.prompts[0], held.versions[0]), (held.prompts[0], None), (free, held.versions[0]),
    ]  # fmt: skip
    source = Item.objects.filter(project=held.project).order_by("pk")[0]
    job = CounterfactualJob.objects.create(project=held.project)
    for kind, (prompt, version) in itertools.product(
        (ItemKind.IMPORTED, ItemKind.COUNTERFACTUAL), cells
    ):
        rewritten = kind == ItemKind.COUNTERFACTUAL
        draft_ = items.ItemDraft(
            prompt_id=prompt.pk, prompt_digest=prompt.text_hash, kind=kind, synthetic=rewritten,
            persona_version_id=version.pk if version else None,
            first=ITEM["first"] + (" Rewritten." if rewritten else ""), second=ITEM["second"],
        )  # fmt: skip
        [added] = items.add_items(project=held.project, drafts=[draft_])
        item = Item.objects.get(pk=added.item_id)
        if rewritten and version:
            Rewrite.objects.create(
                job=job, source_item=source, item=item, suited_to=version, opposite=version,
                pair=f"planted-{item.pk}",
            )  # fmt: skip
        for axis in ("quality", "personalization"):
            decide(item, axis, "first", DecisionSource.SYNTHETIC if rewritten else "majority")
    bad = items.ItemDraft(
        prompt_id=held.prompts[0].pk, prompt_digest=held.prompts[0].text_hash,
        first="Both are bad one.", second="Both are bad two.",
        persona_version_id=held.versions[0].pk,
    )  # fmt: skip
    [added] = items.add_items(project=held.project, drafts=[bad])
    decide(Item.objects.get(pk=added.item_id), "quality", "both_bad")


def plant_files(held: Held, folder: Path) -> None:
    """A file of each kind with a held question and a held person, and one row that is free."""
    asked = held.prompts[0].messages[0]["content"]
    person = held.versions[0]
    told = {"pseudonym": person.persona.pseudonym, "summary": person.text.summary}

    def traced(question: str) -> dict[str, Any]:
        whole = trace()
        return {
            **whole,
            "messages": [{"role": "user", "content": question}, *whole["messages"][1:]],
        }

    rows: dict[str, Any] = {
        "instructions": lambda q: {"prompt": q, "completion": "Like this."},
        "tool_traces": traced,
        "counterexamples": lambda q: {"prompt": q, "answer": "Nonsense.", "reason": "wrong fact"},
    }
    for kind, row in rows.items():
        lines = [row(asked), {**row("Something else?"), "persona": told}, row("Something free?")]
        file = folder / f"{kind}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        opened = open_run(path=file, format=kind, kind="records", user=admin(), dry_run=False)
        run_import(pk=opened.pk, take_over=True)
    assert set(Record.objects.values_list("kind", flat=True)) == set(rows)


def adversarial(held: Held) -> dict[str, list[Any]]:
    """For every setting of a filter what would reach for the held rows."""
    return {
        "sources": [[]],  # by kind below
        "axis": ["quality", "personalization"],
        "projects": [[], [held.project.pk]],
        "decided": [list(DECIDED)],
        "minimum": [0],
        "extras": [False, True],
        "rounds": [[], [held.round.pk]],
        "votes": [1],
        "simulated": [True],
        "imports": [[], sorted(Record.objects.values_list("imported_in", flat=True).distinct())],
        "stratum_features": [["expertise"]],
        "strata": [[], [context.stratum for context in held.round.contexts.filter(holdout=True)]],
        "languages": [[], ["en", ""]],
        "categories": [[], ["general", "", held.prompts[0].category]],
        **{split: [0] for split in SPLITS},
        "cut": [False],
        "seed": [1],
    }


def requests(held: Held) -> Iterator[tuple[str, Filter]]:
    """Every kind × every choice of its sources × axis × split, and each setting in each of its
    forms: alone, and all at once. Settings only ever narrow, so that pairs of them add nothing.
    """
    asked = adversarial(held)
    assert set(asked) == {field.name for field in fields(Filter)}, "a new setting must be tried too"
    settings = {n: v for n, v in asked.items() if n not in (*SPLITS, "sources", "axis")}
    plain = {name: values[0] for name, values in settings.items()}
    forms = [plain, {name: values[-1] for name, values in settings.items()}]
    forms += [{**plain, n: value} for n, values in settings.items() for value in values[1:]]
    for kind in Kind.values:
        own = KINDS[kind]
        sources = [s for n in range(len(own)) for s in itertools.combinations(own, n + 1)]
        axes = asked["axis"] if kind in PAIRS else [""]
        for chosen, axis, form in itertools.product(sources, axes, forms):
            for split in SPLITS if form is plain and kind != Kind.COUNTERFACTUALS else ("train",):
                share = {name: 100 if name == split else 0 for name in SPLITS}
                values = {**form, **share, "sources": list(chosen)}
                yield kind, filters.parse(kind, {**values, **({"axis": axis} if axis else {})})


def test_no_filter_of_any_kind_reaches_a_held_row(held: Held) -> None:
    tried, taken, kept_back = 0, Counter[str](), Counter[str]()
    barred = Chooser(filters.parse("preferences", {"axis": "quality"})).barred
    for kind, spec in requests(held):
        tried += 1
        left: Counter[str] = Counter()
        for candidate in take(kind, Chooser(spec, barred), left):
            fact = candidate.fact
            assert fact.prompt_sha256 not in held.digests, (kind, spec)
            assert fact.persona_id not in held.people, (kind, spec)
            taken[f"{kind} {fact.source}"] += 1
        for source in spec.sources if len(spec.sources) == 1 else ():
            kept_back[f"{kind} {source}"] += left["holdout"]
    assert tried > 200
    # The search was no empty one: rows that are free came out, held ones were turned away by name.
    for kind in ("preferences annotation", "preferences arena", "instructions import",
                 "tool_traces import", "counterexamples import"):  # fmt: skip
        assert taken[kind], kind
    for kind in ("preferences annotation", "counterfactuals annotation", "instructions import",
                 "tool_traces import", "counterexamples import",
                 "counterexamples annotation"):  # fmt: skip
        assert kept_back[kind], kind


def test_nothing_held_is_in_a_frozen_dataset_or_its_files(held: Held, tmp_path: Path) -> None:
    """All sources, all settings open: what is written out holds none of the texts."""
    open_to_all = {"decided": list(DECIDED), "simulated": True, "extras": True}
    frozen = 0
    for kind, axis in itertools.product(Kind.values, ("quality", "personalization")):
        if kind not in PAIRS and axis != "quality":
            continue
        values = {**open_to_all, **({"axis": axis} if kind in PAIRS else {})}
        made = freeze(draft(kind, name=f"{kind} {axis}", **values))
        if made.state != "frozen":
            assert kind == Kind.COUNTERFACTUALS, made.report
            continue
        frozen += 1
        for form in (snapshots.ROWS, snapshots.ENGINE):
            folder = tmp_path / f"{kind}-{axis}-{form}"
            snapshots.write_snapshot(made, folder, form=form)
            said = "".join(file.read_text() for file in folder.iterdir())
            assert [text for text in held.texts if text in said] == []
        found = preview(kind, filters.parse(kind, values))
        assert found.rows == made.rows
    assert frozen >= 5
    rows = DatasetItem.objects.all()
    assert not rows.filter(prompt_sha256__in=held.digests).exists()
    assert not rows.filter(persona__in=held.people).exists()
    assert check_all_splits() == []
    assert not Context.objects.filter(holdout=True, retired_at__isnull=False).exists()
    assert Context.objects.filter(holdout=False, retired_at__isnull=False).exists()


def test_answers_of_held_contexts_come_into_no_annotation_project(held: Held) -> None:
    """Neither by two contestants nor by naming the answers; also fresh ones that no round shows."""
    first, second = held.world.contestants
    prompt, version = held.prompts[0], held.versions[0]
    free = Context.objects.filter(round=held.round, holdout=False).first()
    assert free is not None
    mixed = [(prompt, free.persona_version), (free.prompt, version), (prompt, None)]
    pairs = [
        tuple(make_answer(one, p, v, f"Fresh {one.name} {n}", draw=7) for one in (first, second))
        for n, (p, v) in enumerate(mixed)
    ]
    held_pair = [
        Answer.objects.get(contestant=one, prompt=prompt, persona_version=version, draw=0)
        for one in (first, second)
    ]
    for one, other in [*pairs, held_pair]:
        with pytest.raises(Refused) as refused:
            catalog_pairs.add_catalog_pair(
                actor=admin(), project=held.project, first=one, second=other
            )
        assert refused.value.code == "holdout"
    before = held.project.items.count()
    added, rest = catalog_pairs.add_catalog_pairs(
        actor=admin(), project=held.project, first=first, second=second
    )
    assert (added > 0, rest) == (True, 0)
    new = held.project.items.filter(kind=ItemKind.CATALOG)
    assert new.count() == held.project.items.count() - before == added
    assert not new.filter(prompt__in=held.prompts).exists()
    assert not new.filter(persona_version__in=held.versions).exists()


def test_no_export_of_annotation_holds_them(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every format, file, style and axis; pairs of files may have named what a round held out."""
    monkeypatch.setattr(export_proof, "prove", lambda *_a: {"ok": True, "steps": []})
    everything = {
        "sources": ["unanimous", "majority", "adjudicated", "unresolved"], "minimum": 0,
        "unresolved": 0, "synthetic": "yes", "external": True,
        "undecided": True,
    }  # fmt: skip
    ran, written = 0, Counter[str]()
    for name, types in FILE_TYPES.items():
        styles = STYLES if name in (TRL, TRL_IMPLICIT, TRL_UNPAIRED) else STYLES[:1]
        single = "both" if name == TRL_UNPAIRED else "drop"  # of ties and both bad
        for file_type, style, axis in itertools.product(types, styles, AXES):
            options = {**everything, "format": name, "file_type": file_type, "style": style}
            options |= {"ties": single, "both_bad": single}
            run = exports.start_export(
                actor=admin(), project=held.project, options={**options, "axis": axis}, key="",
                send=False,
            )  # fmt: skip
            done = exports.run_export(pk=run.pk)
            assert done is not None
            assert done.report["left_out"].get("holdout"), (name, file_type)
            said = readable(Path(done.path))
            written[name] += len(said)
            assert [t for t in held.texts if t in said] == [], (name, file_type, style)
            ran += 1
    assert all(written[name] for name in FILE_TYPES)
    assert ran == 2 * (2 * 9 + 3)


def readable(path: Path) -> str:
    """All texts of a file, unpacked; Parquet and Arrow as Python values."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return "".join(_text(name, archive.read(name)) for name in archive.namelist())
    return _text(path.name, path.read_bytes())


def _text(name: str, body: bytes) -> str:
    if name.endswith(".parquet"):
        import pyarrow.parquet as pq

        return str(pq.read_table(io.BytesIO(body)).to_pylist())
    if name.endswith(".arrow"):
        import pyarrow as pa

        with pa.ipc.open_stream(io.BytesIO(body)) as rows:
            return str(rows.read_all().to_pylist())
    return body.decode("utf-8", "replace")


def test_what_the_arena_publishes_names_them_by_hash_alone(held: Held) -> None:
    """A published round is proved by hashes (V5); counts and ratings may include holdout."""
    client = Client()
    for name in PUBLISHED:
        response = client.get(reverse(f"arena:{name}", args=[held.round.pk]))
        body = response.getvalue()
        if zipfile.is_zipfile(io.BytesIO(body)):
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                body = b"".join(archive.read(entry) for entry in archive.namelist())
            assert held.prompts[0].text_hash in body.decode("utf-8", "replace")
        said = body.decode("utf-8", "replace")
        assert [text for text in held.texts if text in said] == [], name
    for path in ("", "leaderboard/", "protocol/"):
        said = client.get(f"/api/v1/rounds/{held.round.pk}/{path}").getvalue().decode()
        assert [text for text in held.texts if text in said] == []
    shown = json.dumps(list(answers_of(held.round)), ensure_ascii=False)
    assert shown != "[]"
    assert [text for text in held.texts if text in shown] == []


def test_axes_and_people_of_this_file_are_those_of_the_house(held: Held) -> None:
    """The search above stands on these lists: a new axis or kind has to be looked at here."""
    assert set(Axis.values) == {"quality", "personalization"}
    assert set(KINDS) == set(Kind.values)
    assert Vote.objects.filter(battle__slot__context__holdout=True).exists()
    assert Persona.objects.filter(split=Split.HOLDOUT).count() == len(held.people)
