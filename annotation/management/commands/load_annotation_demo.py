"""Load the demo's annotation project: pairs of unsealed answers, gold, simulated labels."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.demo.loading import load
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = "Load the demo's annotation project. What is there already stays as it is."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            changed = load()
        except PalateError as error:
            raise CommandError(str(error)) from error
        if changed:
            self.stdout.write("The annotation project is loaded.")
