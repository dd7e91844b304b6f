"""V1 and V2 over the whole chain: trained contestants stand in sealed rounds, and nothing tells.

As in `tests/arena/test_blindness.py` two worlds are built from the same secrets, and in the second
the texts are dealt to other contestants: here to a policy that passed its gate, its base, and one
that entered by an override. Everything about runs, gates, lineage, evidence and chains is read.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from arena.enums import RoundState
from arena.models import Round
from arena.selectors import ballots
from arena.services import closing, ratings, screening, sealing
from tests.arena import factories
from tests.arena.factories import World, make_answer, make_prompt, make_world
from tests.arena.makers import finished, start
from tests.arena.test_blindness import (
    DEALT,
    PER_ROUND,
    STRAIGHT,
    Dealing,
    crawl,
    different,
    explain,
    log_lines,
    people,
    repeatable,
    without,
)
from tests.training.chain_factories import ON, chain, recipe, to_the_end
from tests.training.factories import admin
from tests.training.gate_factories import measured, policy
from tests.training.test_gates import plain, worse
from training.models import GateSpec, TrainingRun
from training.services.chains import start_chain
from training.services.promotions import answer_override, ask_override, promote_baseline
from webapp.catalog.models import Contestant

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="ids must repeat after a rollback"),
]

START = [
    "/", "/vote/", "/rounds/", "/leaderboard/", "/leaderboard/history/", "/audit/",
    "/catalog/contestants/", "/training/runs/", "/training/gates/", "/training/edges/",
    "/training/datasets/", "/training/evidence/", "/training/chains/",
    "/api/v1/rounds/", "/api/v1/voting/rounds/",
]  # fmt: skip
LEFT_OUT = ("second admin", "annotator")  # they see no more than those who are asked
NAMES = ("Nightly 1", "Floor", "Let in")
VOICES = (
    "Use the brush, and no more words about it.",
    "First, get the brush. Then paint it. Last, check it.",
    "Tailored for you: something, something, something.",
)


def trained(world: World, folder: Path) -> list[Contestant]:
    """Contestants on all three grounds; the promoted one is what a chain made."""
    nightly = chain(folder, {**ON, "round": "off"}, recipe=recipe(folder, round={}))
    run = to_the_end(start_chain(actor=admin(), chain=nightly))
    assert (run.state, run.stage) == ("done", "round"), run.reason
    spec = GateSpec.objects.get(pk=nightly.recipe["gate"])
    hacked = measured(spec, policy("hacked", spec.baseline, {}), worse, plain)
    asked = ask_override(
        actor=admin(), run=hacked.candidate, gate=hacked, name=NAMES[2], reason="To show it."
    )
    let_in = answer_override(actor=world.second_admin, asked=asked, agreed=True)
    assert let_in is not None
    return [
        Contestant.objects.get(name=NAMES[0]),
        promote_baseline(actor=admin(), run=spec.baseline, name=NAMES[1]),
        let_in,
    ]


def build(dealing: Dealing, folder: Path) -> tuple[World, list[Round]]:
    """An open and a closed round of trained contestants."""
    world = make_world(contestants=0, personas=2, prompts=1, raters=2)
    world.contestants = trained(world, folder)
    found = []
    for n, ends in enumerate((_voted, _closed)):
        prompts = [make_prompt(f"Round {n}, question {q}?") for q in range(2)]
        for style, contestant in zip(dealing, world.contestants, strict=True):
            for p, persona in enumerate(world.personas):
                for q, prompt in enumerate(prompts):
                    text = f"{VOICES[style]} ({p}, {q}, {n})"
                    make_answer(contestant, prompt, persona.versions.get(), text)
        chosen: dict[str, Any] = {"prompts": [p.pk for p in prompts], "name": f"Round {n}"}
        chosen["personas"] = [persona.pk for persona in world.personas]
        draft = factories.draft_round(world, planned_votes=8, **chosen)
        finished(start(world, draft))
        screening.start_screening(actor=world.admin, round_=draft)
        screening.screen_round(draft.pk)
        opened = sealing.open_round(actor=world.admin, round_=Round.objects.get(pk=draft.pk))
        found.append(ends(world, opened))
    return world, found


def _voted(world: World, round_: Round) -> Round:
    factories.vote_all(round_, world.raters, _by_text, limit=4)
    return round_


def _closed(world: World, round_: Round) -> Round:
    factories.vote_all(round_, world.raters, _by_text)
    if Round.objects.get(pk=round_.pk).state == RoundState.OPEN:
        closing.close_round(actor=world.admin, round_=round_, reason="enough for a test")
    ratings.rate_round(round_.pk)
    return round_


def _by_text(row: Any) -> dict[str, str]:
    left, right = ballots.sides(ballots.assignment_parts(row.pk))
    better_side = "left" if len(left) < len(right) else "right"
    return {"quality": better_side, "personalization": better_side}


def observe(
    dealing: Dealing, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> dict[str, str]:
    """What anybody can see while both rounds are sealed, by who and where; rolled back."""
    seen: dict[str, str] = {}
    caplog.clear()
    with transaction.atomic():
        with repeatable(monkeypatch), caplog.at_level(logging.INFO):
            world, states = build(dealing, folder)
            runs = list(TrainingRun.objects.values_list("pk", flat=True))
            for who, user in people(world).items():
                if who in LEFT_OUT:
                    continue
                client = Client()
                if user:
                    client.force_login(user)
                paths = START + [f"/training/runs/{pk}/" for pk in runs]
                paths += [f"/training/evidence/{c.pk}/" for c in world.contestants]
                paths += [path.format(r.pk) for r in states for path in PER_ROUND]
                for url, text in crawl(client, paths, limit=250).items():
                    seen[f"{who} GET {url}"] = text
            boss = Client()
            boss.force_login(world.admin)
            for contestant in world.contestants:
                for round_ in states:
                    url = reverse("training:evidence_predict", args=[contestant.pk])
                    answer = boss.post(url, {"round": round_.pk, "key": "k"}, follow=True)
                    seen[f"predict {contestant.pk} {round_.pk}"] = _tidy(answer.content.decode())
            seen["log"] = log_lines(caplog.records)
            seals = [h for r in states for h in (r.commitment, r.merkle_root)]
        transaction.set_rollback(True)
    return {key: without(_tidy(text), seals) for key, text in seen.items()}


def _tidy(text: str) -> str:
    text = re.sub(r'name="(csrfmiddlewaretoken|key)" value="[^"]*"', "key", text)
    return re.sub(r'"X-CSRFToken": "[^"]*"', "csrf", text)


def test_trained_contestants_in_sealed_rounds_are_linked_to_no_text(
    monkeypatch: pytest.MonkeyPatch, caplog: Any, tmp_path: Path
) -> None:
    one = observe(STRAIGHT, tmp_path, monkeypatch, caplog)
    two = observe(DEALT, tmp_path, monkeypatch, caplog)
    assert len(one) > 150
    assert any(NAMES[0] in text for text in one.values())  # lists of contestants are read
    assert any("Nightly 1 policy" in t for key, t in one.items() if "/training/runs/" in key)
    assert any("That arrow was off" in t for key, t in one.items() if "/chains/" in key)
    assert not different(one, two), explain(one, two)
    for key, text in one.items():  # the plain reading of V1
        told = [name for name in (*NAMES, "hacked") if re.search(rf"\b{name}\b", text)]
        assert not (told and any(voice in text for voice in VOICES)), (key, told)
