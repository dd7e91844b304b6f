"""manage.py import_records FILE --kind KIND: instructions, tool traces or counter-examples."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from training.records import FORMATS
from training.services.records import KIND
from webapp.catalog import uploads
from webapp.catalog.enums import ImportState
from webapp.catalog.formats.rows import FormatError
from webapp.catalog.refusals import explain_file
from webapp.catalog.services.imports import open_run, run_import


class Command(BaseCommand):
    help = "Import records from a file on this machine. An interrupted import goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--kind", choices=sorted(FORMATS), required=True)
        parser.add_argument("--dry-run", action="store_true", help="only say what would come of it")

    def handle(self, *_args: Any, **options: Any) -> None:
        path: Path = options["file"]
        if not path.is_file():
            raise CommandError(f"There is no file {path}.")
        try:
            opened = open_run(
                path=path, format=options["kind"], dry_run=options["dry_run"], kind=KIND
            )
        except FormatError as error:
            raise CommandError(explain_file(error)) from error
        run = run_import(pk=opened.pk, take_over=True)
        if run is None or run.state != ImportState.DONE:
            raise CommandError(run.message if run else "Another process imports this file.")
        self.stdout.write(f"{run.added} added, {run.known} known, {run.refused} refused")
        if run.refused:
            self.stdout.write(f"Refused rows: {uploads.errors_path(run.pk)}")
