"""`manage.py check_gpu_node`: whether this machine can train; see `training.engine.node`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    help = (
        "Checks driver, GPUs, memory, packages and vLLM, trains for a minute and measures tokens "
        "per second, with the Python that executes runs (PALATE_TRAINER)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seconds", type=float, default=60, help="how long it may train")
        parser.add_argument("--model", default="", help="a model whose speed is measured")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ends with the exit code of the check: 0 ready, 1 something is missing, 3 it failed."""
        command = [*settings.PALATE_TRAINER, "node", "--seconds", str(options["seconds"])]
        command += ["--model", options["model"]] if options["model"] else []
        command += ["--json"] if options["json"] else []
        done = subprocess.run(command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True)
        self.stdout.write(done.stdout.rstrip())
        if done.returncode:
            sys.exit(done.returncode)
