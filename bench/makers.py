"""A round whose answers are made by endpoints, for the benchmark of making them, and the truth.

    python -m bench.makers make URL --contestants 24 --personas 25 --prompts 20
    python -m bench.makers progress
    python -m bench.makers check

Prints JSON. Works on the database that the environment names.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

import django

django.setup()

from django.contrib.auth.hashers import make_password  # noqa: E402

from arena.models import AnswerJob, WantedAnswer  # noqa: E402
from arena.services.answering import start_answering  # noqa: E402
from arena.services.answering_lanes import request_for, summary_of  # noqa: E402
from arena.services.rounds import RoundPlan, compose_round  # noqa: E402
from tests.endpoints import reply_to  # noqa: E402
from webapp.accounts.enums import Role  # noqa: E402
from webapp.accounts.models import User  # noqa: E402
from webapp.catalog.models import Answer, AnswerCost, AnswerText, Contestant, Seal  # noqa: E402
from webapp.catalog.services.contestant_settings import endpoint_settings  # noqa: E402
from webapp.catalog.services.making import Making, add_contestant  # noqa: E402
from webapp.catalog.services.personas import create_persona  # noqa: E402
from webapp.catalog.services.prompts import get_or_create_prompt  # noqa: E402

TEMPLATE = "You answer briefly. The reader: {persona}"


def make(url: str, contestants: int, personas: int, prompts: int) -> dict[str, Any]:
    """Contestants at one address each (a path of their own), contexts, and the job, started."""
    boss = User.objects.create(username="ada", role=Role.ADMIN, password=make_password("x" * 20))
    rater = User.objects.create(username="bob", role=Role.RATER, password=make_password("x" * 20))
    for n in range(personas):
        create_persona(
            actor=None,
            pseudonym=f"person-{n}",
            summary=f"Person {n} wants it {'short' if n % 2 else 'step by step'}.",
            features={"expertise": "expert" if n % 2 else "novice"},
        )
    for n in range(prompts):
        get_or_create_prompt(messages=f"How do I do number {n}?", language="en")
    made = [_contestant(boss, n, url) for n in range(contestants)]
    plan = RoundPlan(
        name="Benchmark", contestants=[row.pk for row in made], raters=[rater.pk], planned_votes=100
    )
    round_ = compose_round(actor=boss, plan=plan)
    job = start_answering(actor=boss, round_=round_, failure_limit=50)
    return {"round": round_.pk, "wanted": job.total}


def _contestant(boss: User, n: int, url: str) -> Contestant:
    settings = endpoint_settings(url=f"{url}/{n}", model=f"model-{n}", timeout=2, at_once=4)
    making = Making("endpoint", settings, {"temperature": 0.7}, TEMPLATE, True)
    return add_contestant(actor=boss, name=f"Contestant {n}", version="1", making=making)


def progress() -> dict[str, Any]:
    job = AnswerJob.objects.get()
    return {"state": job.state, "made": job.made, "failed": job.failed, "total": job.total}


def check() -> dict[str, Any]:
    """Whether every slot holds one answer or one recorded failure, and the right one."""
    job = AnswerJob.objects.get()
    rows = WantedAnswer.objects.select_related(
        "contestant", "context__prompt", "context__persona_version__persona",
        "context__persona_version__text", "answer__body",
    )  # fmt: skip
    found = Counter({"waiting": 0, "made": 0, "failed": 0, "no_reason": 0, "wrong_text": 0})
    reasons: Counter[str] = Counter()
    answers: Counter[int] = Counter()
    for row in rows.iterator(chunk_size=500):
        found[row.state] += 1
        if row.state == "failed":
            reasons[row.code] += 1
            found["no_reason"] += not row.code
        if row.answer is not None:
            answers[row.answer.pk] += 1
            request = request_for(row.contestant, row, summary_of(row) or "")
            model = row.contestant.endpoint["model"]
            expected = reply_to({"messages": list(request.messages), "model": model})
            found["wrong_text"] += row.answer.body.text != expected
    made = found["made"]
    return {
        **found,
        "reasons": dict(reasons),
        "slots": sum(found[state] for state in ("waiting", "made", "failed")),
        "answers": Answer.objects.count(),
        "twice": sum(n > 1 for n in answers.values()) + Answer.objects.exclude(draw=0).count(),
        "counters_differ": int((job.made, job.failed) != (made, found["failed"])),
        "without_text_seal_or_cost": 3 * Answer.objects.count()
        - AnswerText.objects.exclude(text="").count()
        - Seal.objects.count()
        - AnswerCost.objects.count(),
        "tries": sum(AnswerCost.objects.values_list("tries", flat=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("url")
    for name, default in (("contestants", 24), ("personas", 25), ("prompts", 20)):
        making.add_argument(f"--{name}", type=int, default=default)
    commands.add_parser("progress")
    commands.add_parser("check")
    given = parser.parse_args()
    if given.command == "make":
        result = make(given.url, given.contestants, given.personas, given.prompts)
    else:
        result = progress() if given.command == "progress" else check()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
