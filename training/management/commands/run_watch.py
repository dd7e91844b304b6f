"""manage.py run_watch: what the worker of the queue `gpu` does, without Celery."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from training.selectors.queue import running, waiting
from training.services.watching import watch_runs


class Command(BaseCommand):
    help = "Start queued runs and look after running ones on this machine, until none is left."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="look once and end; runs go on")
        parser.add_argument("--pause", type=float, default=2.0, help="seconds between two looks")

    def handle(self, *_args: Any, **options: Any) -> None:
        said: dict[int, tuple[str, int]] = {}
        while True:
            watch_runs()
            for run in running():
                now = (run.state, run.step)
                if said.get(run.pk) != now:
                    said[run.pk] = now
                    self.stdout.write(f"{run.name}: {run.get_state_display()}, step {run.step}")
            if options["once"] or not (running().exists() or waiting().exists()):
                return
            time.sleep(options["pause"])
