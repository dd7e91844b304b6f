"""T17: what our own formats write, an import reads, and the next export is equal to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.enums import ItemState
from annotation.models import Item, Label, Lease, Project
from annotation.services import export_proof, exports, leases
from annotation.services.gold import make_gold
from annotation.services.items import ItemDraft, add_items
from tests.annotation.factories import Desk, label_once
from tests.annotation.pairs import import_pairs, make_project, numbers
from tests.annotation.review import adjudicator, decide, disputed_desk
from tests.annotation.test_leases import expire_all
from webapp.catalog.services.prompts import get_or_create_prompt

pytestmark = pytest.mark.django_db
NASTY = '=cmd|"x",\r\n\t+1 👩🏽‍💻 \u2028 <b>&amp; \\n end'
SETTINGS = {"base_overlap": 2, "max_overlap": 2, "axes": ["quality", "personalization"]}


ODD: list[tuple[Any, str]] = [  # prompt, first answer
    (f"'{NASTY}", "'=x"),
    ([{"role": "system", "content": "s"}, {"role": "user", "content": "[1]"}], "'"),
    ("[not, a, list]", ""),
    ("the same twice", f"@{NASTY}"),
    ("gold", "g"),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    fine = {"ok": True, "steps": []}
    monkeypatch.setattr(export_proof, "prove", lambda work, request, beat: fine)


def busy_desk() -> Desk:
    """Labels that agree and disagree, an adjudication, late work, odd texts, held pairs, gold."""
    desk = disputed_desk(n_items=3)
    decide(adjudicator(desk), desk.items()[0], "second", note=NASTY[:200])
    drafts = [
        ItemDraft(
            prompt_id=(prompt := get_or_create_prompt(messages=messages, language="zh")).pk,
            prompt_digest=prompt.text_hash,
            first=first,
            second=f"@{NASTY}",
            first_producer=f"-{NASTY}"[:100],
            details={"a": [1, {"b": None}], "z": NASTY},
            kind="counterfactual",
            synthetic=True,
            source=f"made:{n} {NASTY}",
        )
        for n, (messages, first) in enumerate(ODD)
    ]
    added = add_items(project=desk.project, drafts=drafts)
    make_gold(
        actor=desk.manager,
        item=Item.objects.get(pk=added[-1].item_id),
        verdicts={"quality": "first"},
    )
    lease = leases.serve(user=desk.people[0], project=desk.project).lease
    assert lease is not None
    expire_all()
    for user in desk.people:
        while label_once(desk, user, comment=NASTY, tags=desk.project.tags[:2]) is not None:
            pass
    return desk


def export(project: Project, format: str) -> bytes:
    run = exports.start_export(
        actor=project.created_by,
        project=project,
        options={"format": format, "synthetic": "yes"},
        key="",
        send=False,
    )
    done = exports.run_export(pk=run.pk)
    assert done is not None
    return Path(done.path).read_bytes()


@pytest.mark.parametrize(("format", "ending"), [("palate_pairs", "jsonl"), ("palate_csv", "csv")])
def test_export_import_export_is_equal(tmp_path: Path, format: str, ending: str) -> None:
    """Every pair that is made here says where it is from; an import would say it otherwise."""
    desk = busy_desk()
    first = export(desk.project, format)
    assert first.count(b"Quarry") > 2
    path = tmp_path / f"pairs.{ending}"
    path.write_bytes(first)
    copy = make_project("Copy", tags=desk.project.tags, **SETTINGS)
    run = import_pairs(copy, path)
    assert run.format == format
    gold = desk.project.items.filter(state=ItemState.GOLD).count()
    assert numbers(run) == (desk.project.items.count() - gold, 0, 0)
    assert export(copy, format) == first
    labels = Label.objects.count()
    for project in (copy, desk.project):
        again = import_pairs(project, path)
        assert (again.added, again.refused, again.report["labels_added"]) == (0, 0, 0)
    assert Label.objects.count() == labels
    assert export(copy, format) == first == export(desk.project, format)
    counted = Lease.objects.filter(item__project=copy, counted=True).count()
    assert counted == Lease.objects.filter(item__project=desk.project, counted=True).count()
