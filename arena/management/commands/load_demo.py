"""Load the demo data: people with public passwords, answers of our own making, two rounds."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from arena.demo.loading import SIMULATED_VOTES, load
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = "Load the demo data. What is there already stays as it is."

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.perf_counter()
        bar = tqdm(total=SIMULATED_VOTES, unit=" votes", disable=None, leave=False, delay=0.5)
        try:
            changed = load(say=self._say, on_vote=bar.update)
        except PalateError as error:
            raise CommandError(str(error)) from error
        finally:
            bar.close()
        if changed:
            self.stdout.write(f"Demo data loaded in {time.perf_counter() - started:.1f} s.")

    def _say(self, text: str) -> None:
        self.stdout.write(f"Loading {text} …")
        self.stdout.flush()
