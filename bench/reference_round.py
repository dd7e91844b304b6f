"""A round of the reference size: 200 personas × 30 prompts × 24 contestants, 6,000 planned votes.

Writes 144,000 answers, composes, screens and seals the round, and hands out battles from it.
Prints seconds per step and the peak memory, as JSON. Runs on SQLite in a folder of its own.

    python -m bench.reference_round [--personas 200 --prompts 30 --contestants 24 --votes 6000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any


def set_up(home: str) -> None:
    os.environ.update(
        PALATE_HOME=home,
        SECRET_KEY=secrets.token_urlsafe(40),
        DJANGO_SETTINGS_MODULE="webapp.settings",
        LOG_LEVEL="ERROR",
        DATABASE_URL="",
        REDIS_URL="",
    )
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def text(c: int, p: int, q: int) -> str:
    """About a kilobyte that names nobody."""
    line = f"Advice {c}-{p}-{q}: take one small step today, write down what changed, and go on. "
    return line * 12


def write_world(options: argparse.Namespace) -> tuple[Any, list[Any], list[int]]:
    from webapp.accounts.enums import Role
    from webapp.accounts.services import create_user
    from webapp.catalog.services.answers import Draft, write_answers
    from webapp.catalog.services.contestants import get_or_create_contestant
    from webapp.catalog.services.personas import create_persona
    from webapp.catalog.services.prompts import get_or_create_prompt

    password = secrets.token_urlsafe(16)
    admin = create_user(username="admin", password=password, role=Role.ADMIN)
    raters = [
        create_user(username=f"rater{n}", password=password, role=Role.RATER) for n in range(30)
    ]
    versions = []
    for p in range(options.personas):
        features = {"expertise": ("novice", "expert")[p % 2], "language": ("en", "zh")[p % 4 // 2]}
        persona = create_persona(
            actor=None, pseudonym=f"p{p}", summary=f"Person {p}", features=features
        )
        versions.append(persona.versions.get().pk)
    prompts = [
        get_or_create_prompt(messages=f"Question {q}?", category=f"c{q % 5}").pk
        for q in range(options.prompts)
    ]
    models = [
        get_or_create_contestant(name=f"Model {c}", version="1").pk
        for c in range(options.contestants)
    ]
    for c, model in enumerate(models):
        write_answers(
            drafts=[
                Draft(model, prompt, version, text(c, p, q), finish_reason="stop")
                for p, version in enumerate(versions)
                for q, prompt in enumerate(prompts)
            ]
        )
    return admin, raters, models


def run(options: argparse.Namespace) -> dict[str, Any]:
    from arena.models import Battle, Entry, Round
    from arena.services import leases, rounds, screening, sealing, votes
    from arena.services.rounds import RoundPlan

    figures: dict[str, Any] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        result = call()
        figures[f"{name}_s"] = round(time.perf_counter() - started, 2)
        return result

    admin, raters, models = timed("write_answers", lambda: write_world(options))
    plan = RoundPlan(
        name="Reference",
        contestants=models,
        raters=[rater.pk for rater in raters],
        planned_votes=options.votes,
        stratum_features=["expertise", "language"],
    )
    round_ = timed("compose", lambda: rounds.compose_round(actor=admin, plan=plan))
    screening.start_screening(actor=admin, round_=round_)
    timed("screen", lambda: screening.screen_round(round_.pk))
    round_ = timed(
        "seal_and_open",
        lambda: sealing.open_round(actor=admin, round_=Round.objects.get(pk=round_.pk)),
    )
    times = []
    for n in range(300):
        rater = raters[n % len(raters)]
        started = time.perf_counter()
        row = leases.current_ballot(user=rater, round_=round_)
        assert row is not None
        ballot = votes.Ballot({"quality": "left", "personalization": "tie"})
        votes.cast_vote(user=rater, token=row.token, ballot=ballot)
        times.append((time.perf_counter() - started) * 1000)
    figures["lease_and_vote_p50_ms"] = round(statistics.median(times), 1)
    figures["lease_and_vote_p95_ms"] = round(statistics.quantiles(times, n=20)[18], 1)
    figures["entries"] = Entry.objects.filter(context__round=round_).count()
    figures["battles"] = Battle.objects.filter(round=round_).count()
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--personas", type=int, default=200)
    parser.add_argument("--prompts", type=int, default=30)
    parser.add_argument("--contestants", type=int, default=24)
    parser.add_argument("--votes", type=int, default=6000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palate-bench-") as home:
        set_up(home)
        print(json.dumps(run(options), indent=2))


if __name__ == "__main__":
    main()
