"""manage.py load_training_demo: small datasets, frozen, on which the preset `tiny` can be tried."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from training.demo.loading import load
from training.demo.world import DEMO, SMALL
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = "Import and freeze the datasets of the workshop, a toy world. Again, it does nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--small", action="store_true", help="too little to learn from")

    def handle(self, *_args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("Set PALATE_DEMO=1 to load demo data.")
        try:
            made = load(seed=options["seed"], sizes=SMALL if options["small"] else DEMO)
        except PalateError as error:
            raise CommandError(str(error)) from error
        if not options["verbosity"]:
            return
        for dataset in (made.instructions, made.quality, made.personalization, made.defects):
            splits = dataset.counts["groups"]["split"]
            said = ", ".join(f"{name} {rows}" for name, rows in splits.items())
            self.stdout.write(f"{dataset.name}: {dataset.rows} rows ({said})")
