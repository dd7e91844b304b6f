"""manage.py run_launch NAME --kind KIND --preset PRESET --input ROLE=WHAT … [--set NAME=VALUE …]"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from training.engine.config.load import apply_changes, preset_names
from training.enums import Role, RunKind
from training.launching import InputSpec, preflight
from training.management.commands.freeze_dataset import setting
from training.models import Dataset, TrainingRun
from training.services.runs import launch
from webapp.accounts.models import User
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = "Put a training run into the queue, or say with --check why it would not start."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--kind", choices=RunKind.values, required=True)
        parser.add_argument("--preset", choices=preset_names(), required=True)
        parser.add_argument(
            "--input",
            action="append",
            default=[],
            metavar="ROLE=WHAT",
            help="train=DATASET:SPLIT, or base=RUN (names)",
        )
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting beside those of the preset, as JSON or text: sft.epochs=3",
        )
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--user", help="the administrator who launches it")
        parser.add_argument("--key", help="the same key again gives the same run")
        parser.add_argument("--check", action="store_true", help="launch nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        config = apply_changes({}, dict(map(setting, options["set"])))
        inputs = dict(map(given, options["input"]))
        asked = (options["kind"], options["preset"], config, inputs, options["seed"])
        if options["check"]:
            self._check(asked)
            return
        actor = User.objects.filter(username=options["user"]).first() if options["user"] else None
        if options["user"] and actor is None:
            raise CommandError(f"There is no user “{options['user']}”.")
        try:
            run = launch(
                actor=actor,
                name=options["name"],
                kind=options["kind"],
                preset=options["preset"],
                config=config,
                inputs=inputs,
                seed=options["seed"],
                key=options["key"],
            )
        except PalateError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{run.name}: {run.state}, {run.directory}")

    def _check(self, asked: tuple[Any, ...]) -> None:
        found = preflight(*asked)
        for warning in found.warnings:
            self.stdout.write(f"warning: {warning}")
        if found.problems:
            raise CommandError("\n".join(map(str, found.problems)))
        self.stdout.write(f"It would start: {found.facts['steps']} steps.")


def given(text: str) -> tuple[str, InputSpec]:
    """role=dataset:split or role=run, by name."""
    role, _equals, what = text.partition("=")
    if role not in Role.values or not what:
        raise CommandError(f"--input {text}: write ROLE=DATASET:SPLIT or ROLE=RUN")
    name, _colon, split = what.rpartition(":")
    dataset = Dataset.objects.filter(name=name).first()
    if dataset is not None:
        return role, InputSpec(dataset, split)
    run = TrainingRun.objects.filter(name=what).first()
    if run is None:
        raise CommandError(f"--input {text}: there is no such dataset or run")
    return role, InputSpec(source=run)
