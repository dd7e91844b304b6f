"""V1 and V2: relabel the contestants behind the same texts, and no response changes by a byte.

Two worlds are built from the same secrets; in the second the texts of the contestants are dealt to
other contestants (names, rows and ids stay where they are). While rounds are unsealed, every page,
API answer, file, error page and log line must be the same for everybody in both worlds.
"""

from __future__ import annotations

import difflib
import json
import logging
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Label, Project
from annotation.services import (
    catalog_pairs,
    export_proof,
    exports,
    items,
    labels,
    leases,
    projects,
    statistics,
)
from arena.models import Assignment, Entry, Round
from arena.selectors import ballots
from arena.services import closing, rounds, screening
from arena.services import ratings as rating_services
from arena.services.rounds import RoundPlan
from tests.arena.blind_makers import Voices, made_here
from tests.arena.factories import (
    NAMES,
    World,
    closed_round,
    draft_round,
    make_answer,
    make_prompt,
    make_world,
    open_round,
    screened_round,
    vote_all,
)
from tests.conftest import make_user
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.catalog.answering.sources import SOURCES
from webapp.catalog.blind import BlindPair
from webapp.catalog.models import Answer, Contestant, Prompt

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="ids must repeat after a rollback"),
]

Dealing = tuple[int, ...]
STRAIGHT: Dealing = (0, 1, 2)
DEALT: Dealing = (2, 0, 1)
TEXTS = (
    "Short: rename it in a new migration. I am Harbor, by the way.",
    "As an AI language model I would first of all like to list every step in full detail.",
    "Well, my friend, think of a column as a drawer, and of Quarry as",
)


@contextmanager
def repeatable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Secrets and clock that run the same in both worlds."""
    count = 0

    def number() -> int:
        nonlocal count
        count += 1
        return count

    def token_bytes(n: int = 32) -> bytes:
        return number().to_bytes(n, "big")

    start = datetime(2030, 1, 1, tzinfo=UTC)
    with monkeypatch.context() as patch:
        patch.setattr(secrets, "token_bytes", token_bytes)
        patch.setattr(secrets, "token_hex", lambda n=32: token_bytes(n).hex())
        labelled = Label._meta.get_field("at")  # its default was bound to the real clock
        patch.setattr(labelled, "_get_default", lambda: timezone.now(), raising=False)
        patch.setattr(export_proof, "prove", lambda *_args: {"ok": True, "steps": []})
        patch.setattr(timezone, "now", lambda: start + timedelta(milliseconds=number()))
        patch.setitem(SOURCES, "endpoint", Voices.source)
        yield


def build(dealing: Dealing) -> tuple[World, list[Round]]:
    """A world with one round in each state before unsealing."""

    def text(c: int, p: int, q: int) -> str:
        style = dealing[c]
        return f"{TEXTS[style]} ({p}, {q}, style {style})"

    world = make_world(contestants=3, personas=2, prompts=1, raters=2, text=text)
    project = _project(world)
    states = [
        _with_fresh_prompts(world, text, n, make, (project, dealing))
        for n, make in enumerate(MAKERS)
    ]
    _label(world, project)
    return world, states + made_here(world, dealing, _by_text)


def _project(world: World) -> Project:
    """Annotation of texts that enter sealed rounds later."""
    settings = {"base_overlap": 1, "max_overlap": 1, "onboarding_size": 0, "repeat_percent": 0}
    return projects.create_project(
        actor=world.admin, name="Pairs", guidelines="Read both.", settings=settings
    )


def _add_pairs(world: World, project: Project, prompts: list[Prompt], dealing: Dealing) -> None:
    """The same two texts in both worlds: from the catalog, and from a file that names makers."""
    one, other = (world.contestants[dealing.index(style)] for style in (0, 1))
    for answer in Answer.objects.filter(contestant=one, prompt__in=prompts, draw=0).order_by(
        "prompt", "persona_version"
    ):
        twin = Answer.objects.get(
            contestant=other,
            prompt=answer.prompt,
            persona_version=answer.persona_version,
            draw=0,
        )
        catalog_pairs.add_catalog_pair(
            actor=world.second_admin, project=project, first=answer, second=twin
        )
        draft = items.ItemDraft(
            prompt_id=answer.prompt_id,
            prompt_digest=answer.prompt.text_hash,
            first=answer.body.text,
            second=twin.body.text,
            first_producer=str(one),
            second_producer=str(other),
            source="pairs.jsonl:1",
        )
        items.add_items(project=project, drafts=[draft])


def _label(world: World, project: Project) -> None:
    """Somebody who votes in no round labels the pairs by their texts; an export is written."""
    lena = make_user("lena", Role.ANNOTATOR)
    projects.add_members(actor=world.admin, project=project, users=[lena])
    project = projects.move_project(actor=world.admin, project=project, to="open")
    for _ in range(6):
        lease = leases.serve(user=lena, project=project).lease
        assert lease is not None
        verdicts = dict.fromkeys(project.axes, "left" if lease.first_left else "right")
        answer = labels.Answer(verdicts=verdicts, active_ms=9000)
        labels.submit_label(user=lena, token=lease.token, answer=answer)
    statistics.compute_statistics(pk=project.pk)
    for kind in ("palate_pairs", "palate_csv"):
        run = exports.start_export(
            actor=world.admin, project=project, options={"format": kind}, key=kind, send=False
        )
        exports.run_export(pk=run.pk)


def _with_fresh_prompts(
    world: World,
    text: Callable[[int, int, int], str],
    n: int,
    make: Callable[..., Round],
    annotation: tuple[Project, Dealing],
) -> Round:
    """A round of its own prompts: an answer enters one round only."""
    prompts = [make_prompt(f"Round {n}, question {q}?") for q in range(2)]
    for c, contestant in enumerate(world.contestants):
        for p, persona in enumerate(world.personas):
            for q, prompt in enumerate(prompts):
                version, said = persona.versions.get(), text(c, p, 10 * n + q)
                make_answer(contestant, prompt, version, said)
                if make is not draft_round:  # a further draw that no round takes says it again
                    make_answer(contestant, prompt, version, said, draw=1)
    if make is not draft_round:  # until it is screened, a text may stand beside its maker
        _add_pairs(world, annotation[0], prompts, annotation[1])
    changes = {
        "prompts": [prompt.pk for prompt in prompts],
        "planned_votes": 8,
        "name": f"Round {n}",
        "anchor": world.contestants[0].pk,
    }
    return make(world, **changes)


def _open_with_votes(world: World, **changes: Any) -> Round:
    round_ = open_round(world, **changes)
    vote_all(round_, world.raters, _by_text, limit=4)
    return round_


def _by_text(row: Assignment) -> dict[str, str]:
    """Verdicts that depend on the texts alone, as honest people's do."""
    left, right = ballots.sides(ballots.assignment_parts(row.pk))
    better = "left" if len(left) < len(right) else "right"
    return {"quality": better, "personalization": better}


def _closed(world: World, **changes: Any) -> Round:
    return closed_round(world, choose=_by_text, **changes)


def _half_agreed(world: World, **changes: Any) -> Round:
    round_ = _closed(world, **changes)
    closing.approve_unsealing(actor=world.admin, round_=round_, reason="I agree")
    return round_


def _cancelled(world: World, **changes: Any) -> Round:
    round_ = _open_with_votes(world, **changes)
    rounds.cancel_round(actor=world.admin, round_=round_, reason="a mistake")
    return round_


def _all_kept(world: World, **changes: Any) -> Round:
    return screened_round(world, screening_policy={"unfinished": "exclude"}, **changes)


MAKERS: list[Callable[..., Round]] = [
    draft_round, screened_round, _all_kept, _open_with_votes, _closed, _half_agreed, _cancelled,
]  # fmt: skip

LINK = re.compile(r'(?:href|action|src|hx-get)="(/[^"#]*)"')
NOISE = [
    (re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"'), "csrf"),
    (re.compile(r'"X-CSRFToken": "[^"]*"'), "csrf"),
    (re.compile(r'name="key" value="[^"]*"'), "form key"),
    (re.compile(r"last_login[^<]*<"), "<"),
    (re.compile(r'"took_s":[\d.]+'), "how long the statistics took"),
]
LEAVE_OUT = ("/static/", "/accounts/logout", "/i18n/")
START = [
    "/", "/vote/", "/vote/receipts/?format=json", "/rounds/", "/leaderboard/",
    "/leaderboard/history/", "/leaderboard/methodology/", "/audit/", "/audit/?check=1",
    "/admin/", "/catalog/", "/catalog/imports/", "/catalog/contestants/", "/api/schema/",
    "/catalog/contestants/add/endpoint/", "/catalog/contestants/add/checkpoint/",
    "/training/runs/", "/training/runs/new/?preset=tiny&kind=grpo", "/training/gates/",
    "/training/runs/new/?preset=tiny&kind=quantize",
    "/training/gates/new/", "/training/chains/", "/training/chains/new/", "/training/edges/",
    "/training/evidence/", "/training/datasets/",
    "/annotation/", "/annotation/work/", "/api/v1/annotation/projects/",
    "/api/v1/rounds/", "/api/v1/voting/rounds/", "/api/v1/voting/receipts/", "/no-such-page/",
]  # fmt: skip
PER_PROJECT = [
    "/annotation/{}/items/", "/annotation/{}/items/add/", "/annotation/{}/exports/",
    "/annotation/{}/label/", "/annotation/{}/adjudicate/",
    "/api/v1/annotation/projects/{}/", "/api/v1/annotation/projects/{}/items/",
    "/api/v1/annotation/projects/{}/exports/", "/api/v1/annotation/projects/{}/agreement/",
]  # fmt: skip
PER_ROUND = [
    "/rounds/{}/", "/rounds/{}/screening/", "/rounds/{}/screening/progress/",
    "/rounds/{}/remarks/", "/rounds/{}/edit/", "/rounds/{}/answers/progress/",
    "/rounds/compose/?copy={}", "/vote/?round={}", "/leaderboard/?round={}",
    "/leaderboard/{}/heatmap/", "/leaderboard/{}/verify/", "/leaderboard/{}/board.csv",
    "/leaderboard/{}/board.json", "/leaderboard/{}/board.svg", "/leaderboard/{}/bundle.zip",
    "/leaderboard/{}/votes.jsonl", "/api/v1/rounds/{}/", "/api/v1/rounds/{}/protocol/",
    "/api/v1/rounds/{}/leaderboard/", "/api/v1/rounds/{}/bundle/",
    "/api/v1/voting/rounds/{}/ballot/",
]  # fmt: skip


def _clean(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    for pattern, replacement in NOISE:
        text = pattern.sub(replacement, text)
    return text


def crawl(client: Client, starts: list[str], limit: int = 400) -> dict[str, str]:
    """Every page reachable by GET from `starts`: status, telling headers and body."""
    found: dict[str, str] = {}
    queue = list(dict.fromkeys(starts))
    while queue and len(found) < limit:
        url = queue.pop(0)
        if url in found or url.startswith(LEAVE_OUT):
            continue
        response = client.get(url)
        body = response.getvalue()
        text = _clean(body)
        headers = {
            name: value
            for name, value in response.items()
            if name
            not in ("Set-Cookie", "Date", "Content-Length", "Last-Modified", "ETag", "Expires")
        }
        assert response.status_code < 500, url
        found[url] = f"{response.status_code} {json.dumps(headers, sort_keys=True)}\n{text}"
        if "html" in response.get("Content-Type", ""):
            links = [link.replace("&amp;", "&") for link in LINK.findall(text)]
            queue.extend(link for link in links if link not in found)
    return found


def posts(client: Client, world: World, states: list[Round]) -> dict[str, str]:
    """What writes answer: import previews and probes, votes, undo, refusals."""
    answers: dict[str, str] = {}
    for round_ in states:
        for name in ("screen", "open", "back_to_draft", "close", "cancel", "approve"):
            if name in ("screen", "back_to_draft", "cancel") or round_.state != "closed":
                continue
            url = reverse(f"arena:{name}", args=[round_.pk])
            answers[url] = _clean(client.post(url, {"reason": ""}, follow=True).content)
    for name, text in (("equal", None), ("different", "Something else entirely.")):
        answers[name] = _probe(client, world, text)
    for contestant in Contestant.objects.order_by("pk"):
        answers[f"answers of {contestant.pk}"] = _read_answers(client, contestant.pk)
    for contestant in Contestant.objects.filter(kind="endpoint").order_by("pk"):
        url = reverse("catalog:contestant_try", args=[contestant.pk])
        answers[f"trial of {contestant.pk}"] = _clean(client.post(url).content)
    for round_ in states:
        for name in ("answers_start", "answers_stop", "answers_resume"):
            url = reverse(f"arena:{name}", args=[round_.pk])
            data = {"failure_limit": "50"}
            answers[url] = _clean(client.post(url, data, follow=True).content)
    return answers


ARTICLE = re.compile(r"<article.*?</article>", re.DOTALL)
UNSEALED = ("Question number", "Round 0,")  # in no round, or in a draft only


def _read_answers(client: Client, contestant: int) -> str:
    """All answers that an administrator may read with their maker, without those never sealed."""
    url = reverse("catalog:contestant_answers", args=[contestant])
    pages, number = [], 1
    while True:
        response = client.post(url, {"page": number})
        pages.append(_clean(response.content))
        if not response.context["page"].has_next():
            break
        number += 1

    def unsealed(article: re.Match[str]) -> str:
        return "" if any(f">{name}" in article[0] for name in UNSEALED) else article[0]

    return "\n".join(ARTICLE.sub(unsealed, page) for page in pages)


def _probe(client: Client, world: World, text: str | None) -> str:
    """An administrator uploads a text of the open round under each contestant's name in turn."""
    row = Assignment.objects.select_related("slot__context__prompt").order_by("pk")[0]
    parts = ballots.assignment_parts(row.pk)
    persona = parts.slot.context.persona_version
    assert persona is not None
    body = "\n".join(
        json.dumps(
            {
                "persona": {
                    "pseudonym": persona.persona.pseudonym,
                    "summary": persona.text.summary,
                },
                "prompt": parts.slot.context.prompt.messages[-1]["content"],
                "contestant": {"name": contestant.name, "version": contestant.version},
                "answer": text or parts.slot.x.answer.body.text,
            }
        )
        for contestant in world.contestants
    )
    upload = SimpleUploadedFile("probe.jsonl", body.encode(), content_type="application/json")
    page = client.get(reverse("catalog:import"))
    key = re.search(r'name="key"[^>]*value="([^"]*)"', page.content.decode())
    data = {"file": upload, "format": "palate", "key": key.group(1) if key else ""}
    response = client.post(reverse("catalog:import"), data, follow=True)
    text_ = _clean(response.content)
    start = re.search(r'action="(/catalog/imports/\d+/start/)"', text_)
    if start:
        text_ += _clean(client.post(start.group(1), follow=True).content)
    return re.sub(r"/catalog/imports/\d+/", "/catalog/imports/N/", text_)


def observe(
    dealing: Dealing, monkeypatch: pytest.MonkeyPatch, caplog: Any, only: str = ""
) -> dict[str, str]:
    """Everything that anybody (or `only` one) can see of a world, by who and where; rolled back."""
    seen: dict[str, str] = {}
    caplog.clear()
    with transaction.atomic():
        with repeatable(monkeypatch), caplog.at_level(logging.INFO):
            world, states = build(dealing)
            for who, user in people(world).items():
                if only and who != only:
                    continue
                client = Client()
                if user:
                    client.force_login(user)
                project = Project.objects.get()
                paths = START + [path.format(project.pk) for path in PER_PROJECT]
                paths += [path.format(r.pk) for r in states for path in PER_ROUND]
                for url, text in crawl(client, paths).items():
                    seen[f"{who} GET {url}"] = text
            admin = Client()
            admin.force_login(world.second_admin)
            for name, text in posts(admin, world, states).items():
                seen[f"admin POST {name}"] = text
            seen["log"] = log_lines(caplog.records)
            seals = [
                h
                for r in Round.objects.exclude(commitment="")
                for h in (r.commitment, r.merkle_root)
            ]
        transaction.set_rollback(True)
    return {key: without(text, seals) for key, text in seen.items()}


def without(text: str, seals: list[str]) -> str:
    """The text without the commitments, which depend on who wrote what and tell it to nobody."""
    for seal in seals:
        for length in (64, 16, 12):
            text = text.replace(seal[:length], "seal")
    return text


STANDARD = set(vars(logging.makeLogRecord({}))) - {"msg", "args", "name", "levelname"}


def log_lines(records: list[logging.LogRecord]) -> str:
    """What the log lines say, without their clocks."""
    leave_out = STANDARD | {"ms", "request", "asctime"}
    return "\n".join(
        str({key: str(value) for key, value in vars(record).items() if key not in leave_out})
        for record in records
    )


def people(world: World) -> dict[str, User | None]:
    return {
        "admin": world.admin,
        "second admin": world.second_admin,
        "rater": world.raters[0],
        "annotator": make_user("chen", Role.ANNOTATOR),
        "viewer": make_user("vera", Role.VIEWER),
        "nobody": None,
    }


def different(one: dict[str, str], two: dict[str, str]) -> list[str]:
    return sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))


def explain(one: dict[str, str], two: dict[str, str]) -> str:
    """The first differing lines of a few differing answers."""
    shown = []
    for key in different(one, two)[:12]:
        a, b = one.get(key, "(missing)").splitlines(), two.get(key, "(missing)").splitlines()
        lines = [line[:300] for line in difflib.unified_diff(a, b, n=0, lineterm="")][3:9]
        shown.append("\n".join([key, *lines]))
    return "\n\n".join(shown)


def test_relabelling_the_contestants_changes_no_byte(
    monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    one = observe(STRAIGHT, monkeypatch, caplog)
    two = observe(DEALT, monkeypatch, caplog)
    assert len(one) > 250
    assert not different(one, two), explain(one, two)


def test_the_crawler_would_notice_a_leak(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """A name beside a text, a count per contestant, a rating: each must show as a difference."""

    def leaky(row: Assignment) -> str:
        return str(row.slot.x.contestant if row.battle.left_is_x else row.slot.y.contestant)

    honest = ballots.blind_pair

    def telling(row: Assignment) -> BlindPair:
        pair = honest(row)
        return type(pair)(**{**pair.__dict__, "persona_summary": f"{leaky(row)} is on the left"})

    monkeypatch.setattr(ballots, "blind_pair", telling)
    one = observe(STRAIGHT, monkeypatch, caplog, only="rater")
    two = observe(DEALT, monkeypatch, caplog, only="rater")
    assert any(key.startswith("rater GET /vote/") for key in different(one, two))


def test_the_probe_of_an_importer_learns_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The answer to an upload is the same whether it guesses right or wrong who wrote a text."""
    seen = observe(STRAIGHT, monkeypatch, caplog, only="no crawl at all")
    assert seen["admin POST equal"] != ""
    replace = re.compile(r"Something else entirely\.|Short: [^<]*|As an AI [^<]*|Well, my [^<]*")
    tidy = {name: replace.sub("…", seen[f"admin POST {name}"]) for name in ("equal", "different")}
    assert _numbers(tidy["equal"]) == _numbers(tidy["different"])


def _numbers(page: str) -> list[str]:
    """The counts that a page shows."""
    return re.findall(r"<d[dt]>[^<]*</d[dt]>|class=\"num\">[^<]*<", page)


def test_a_vote_page_holds_no_name_id_or_number_of_an_answer() -> None:
    world = make_world()
    open_round(world)
    client = Client()
    client.force_login(world.raters[0])
    page = client.get(reverse("arena:vote")).content.decode()
    row = ballots.assignment_parts(Assignment.objects.get().pk)
    for secret in (
        *NAMES,
        row.battle.public_id,
        row.slot.x.answer.public_id,
        row.slot.x.public_id,
        row.slot.x.shown_sha256,
        row.round.seed,
        row.round.salt,
    ):
        assert secret not in page


def test_ratings_exist_after_closing_and_nobody_is_told() -> None:
    """V2, positively: the snapshot is there, and no page of the round holds one of its numbers."""
    world = make_world()
    round_ = closed_round(world, choose=_by_text)
    values = [
        f"{value:.0f}"
        for value in round_.snapshots.values_list("ratings__rating", flat=True)
        if value is not None and abs(value - 1000) > 1
    ]
    rating_services.rate_round(round_.pk)
    client = Client()
    client.force_login(world.admin)
    pages = [client.get(path.format(round_.pk)).content.decode() for path in PER_ROUND]
    for value in values:
        assert all(f">{value}<" not in page for page in pages)


def test_screening_says_nothing_of_the_contestant() -> None:
    world = make_world(text=lambda c, p, q: f"I am {NAMES[c]}, hello {p} {q}.")
    round_ = screened_round(world)
    client = Client()
    client.force_login(world.admin)
    page = client.get(reverse("arena:screening", args=[round_.pk])).content.decode()
    assert "▇▇▇" in page
    for name in NAMES[:3]:
        assert name not in page


def test_screening_is_symmetric_and_uses_the_names_of_the_round_only() -> None:
    world = make_world(text=lambda c, p, q: f"Ask Harbor or Quarry instead, {p} {q} {c}.")
    round_ = screened_round(world)
    spans = {len(entry.spans) for entry in Entry.objects.filter(context__round=round_)}
    assert len(spans) == 1


def test_composing_reads_no_text() -> None:
    """The composer and the forecast know counts, never answers."""
    world = make_world()
    plan = RoundPlan(
        name="x", contestants=[c.pk for c in world.contestants], raters=[world.raters[0].pk]
    )
    round_ = rounds.compose_round(actor=world.admin, plan=plan)
    client = Client()
    client.force_login(world.admin)
    page = client.get(reverse("arena:round_detail", args=[round_.pk])).content.decode()
    assert "Answer with style" not in page
    assert screening.restart_stalled() == 0
