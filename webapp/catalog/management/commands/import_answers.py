"""Import answers from a file on this machine. See docs/importing.md."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from webapp.accounts.models import User
from webapp.catalog import uploads
from webapp.catalog.enums import ImportState
from webapp.catalog.formats import FORMATS
from webapp.catalog.formats.rows import FormatError
from webapp.catalog.models import ImportRun
from webapp.catalog.refusals import explain_file, explained
from webapp.catalog.services.imports import open_run, run_import
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = "Import answers. Known rows are left alone; bad rows are refused one by one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--format", choices=list(FORMATS), default="", help="told from the file if left out"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would come of it")
        parser.add_argument("--user", help="the administrator who knows these answers from now on")
        parser.add_argument("--strict", action="store_true", help="exit 1 if a row was refused")

    def handle(self, *args: Any, **options: Any) -> None:
        user = self._user(options["user"])
        for _attempt in range(3):
            run = self._open(options["file"], options["format"], user, options["dry_run"])
            finished = self._work(run)
            if finished is not None:
                break  # else another process took this very run first: make one of our own
        if finished is None or finished.state != ImportState.DONE:
            raise CommandError(self._why(finished))
        self._report(finished)
        if options["strict"] and finished.refused:
            sys.exit(1)

    def _open(self, path: Path, format: str, user: User | None, dry_run: bool) -> ImportRun:
        try:
            run = open_run(path=path, format=format, user=user, dry_run=dry_run)
        except FormatError as error:
            raise CommandError(f"{path}: {explain_file(error)}") from error
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from error
        except PalateError as error:
            raise CommandError(str(error)) from error
        if run.rows_done and not run.dry_run:
            self.stdout.write(f"Going on after row {run.rows_done} of an interrupted import.")
        return run

    def _user(self, name: str | None) -> User | None:
        if not name:
            return None
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user “{name}”.")
        return user

    def _work(self, run: ImportRun) -> ImportRun | None:
        with tqdm(
            total=run.size,
            initial=0 if run.dry_run else run.bytes_done,
            unit="B",
            unit_scale=True,
            disable=None,  # silent unless standard error is a terminal
            desc="checking" if run.dry_run else "importing",
        ) as bar:

            def show(now: ImportRun) -> None:
                bar.update(now.bytes_done - bar.n)
                bar.set_postfix(added=now.added, known=now.known, refused=now.refused)

            return run_import(pk=run.pk, take_over=True, progress=show)

    def _why(self, run: ImportRun | None) -> str:
        if run is None:
            return "Another process is working on this import."
        return run.message or f"The import is {run.get_state_display()}."

    def _report(self, run: ImportRun) -> None:
        verb = "would be added" if run.dry_run else "added"
        sealed = run.report.get("sealed", 0)
        parts = [f"{run.added} {verb}", f"{run.known} known already"]
        if sealed:
            parts.append(f"{sealed} sealed, left alone")
        parts.append(f"{run.refused} refused")
        self.stdout.write(f"{run.format}: {', '.join(parts)} ({run.rows_done} rows).")
        for record in run.report.get("refusals", [])[:5]:
            said = explained(record)
            field = f" {said['field']}:" if said["field"] else ""
            self.stdout.write(f"  {said['where']}:{field} {said['reason']} {said['right']}")
        if run.refused:
            self.stdout.write(f"All refused rows: {uploads.errors_path(run.pk)}")
