"""manage.py check_splits: are the splits of all frozen datasets disjoint?"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from training.selectors.datasets import check_all_splits


class Command(BaseCommand):
    help = "Check that no prompt and no persona stands in two splits of the frozen datasets."

    def handle(self, *_args: Any, **_options: Any) -> None:
        leaks = check_all_splits()
        for leak in leaks:
            self.stdout.write(f"{leak.of} {leak.key}: {leak.why}")
        if leaks:
            raise CommandError("The splits are not disjoint.")
        self.stdout.write("The splits of all frozen datasets are disjoint.")
