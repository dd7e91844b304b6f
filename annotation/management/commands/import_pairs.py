"""Import preference pairs from a file on this machine. See docs/annotation-formats.md."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import override
from tqdm import tqdm

from annotation.enums import ItemFlag
from annotation.formats import FORMATS
from annotation.formats.columns import FROM_COLUMNS
from annotation.management.named import project_named, user_named
from annotation.models import Project
from annotation.services.imports import KIND, check_options
from webapp.accounts.models import User
from webapp.catalog import uploads
from webapp.catalog.enums import Axis, ImportState
from webapp.catalog.formats.rows import FormatError
from webapp.catalog.models import ImportRun
from webapp.catalog.refusals import explain_file, explained
from webapp.catalog.services.imports import open_run, run_import
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = "Import preference pairs into a project. Known rows are left alone, bad rows refused."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name or number of the project")
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--format", choices=list(FORMATS), default="", help="told from the file if left out"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would come of it")
        parser.add_argument("--axis", choices=Axis.values, help="what the labels are about")
        parser.add_argument("--gold", action="store_true", help="the labels are known answers")
        parser.add_argument("--no-labels", action="store_true", help="leave the labels out")
        parser.add_argument("--annotator", help="whose labels they are, where the file is silent")
        parser.add_argument(
            "--mapping",
            action="append",
            default=[],
            metavar="WHAT=COLUMN",
            help=f"a column of a table; WHAT is one of {', '.join(FROM_COLUMNS)}",
        )
        parser.add_argument("--survey", type=Path, help="survey.jsonl of PRISM")
        parser.add_argument("--user", help="the administrator who imports: he never votes on these")
        parser.add_argument("--strict", action="store_true", help="exit 1 if a row was refused")

    def handle(self, *args: Any, **options: Any) -> None:
        project, user = project_named(options["project"]), user_named(options["user"])
        for _attempt in range(3):
            run = self._open(project, user, options)
            finished = self._work(run)
            if finished is not None:
                break  # else another process took this very run first: make one of our own
        if finished is None or finished.state != ImportState.DONE:
            raise CommandError(_why(finished))
        self._report(finished)
        if options["strict"] and finished.refused:
            sys.exit(1)

    def _open(self, project: Project, user: User | None, options: dict[str, Any]) -> ImportRun:
        path: Path = options["file"]
        survey = options["survey"]
        asked = {
            **{name: options[name] for name in ("axis", "gold", "no_labels", "annotator")},
            "mapping": _mapping(options["mapping"]),
        }
        beside = {"survey": str(survey.resolve())} if survey else {}
        try:
            run = open_run(
                path=path,
                format=options["format"] or ("columns" if asked["mapping"] else ""),
                user=user,
                dry_run=options["dry_run"],
                kind=KIND,
                subject=project.pk,
                options={**check_options(project, asked), **beside},
            )
        except FormatError as error:
            raise CommandError(f"{path}: {explain_file(error)}") from error
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from error
        except PalateError as error:
            raise CommandError(str(error)) from error
        if run.rows_done and not run.dry_run:
            self.stdout.write(f"Going on after row {run.rows_done} of an interrupted import.")
        return run

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

    def _report(self, run: ImportRun) -> None:
        verb = "would be added" if run.dry_run else "added"
        counts = f"{run.added} {verb}, {run.known} known already, {run.refused} refused"
        self.stdout.write(f"{run.format}: {counts} ({run.rows_done} rows).")
        for line in _besides(run.report):
            self.stdout.write(f"  {line}")
        for record in run.report.get("refusals", [])[:5]:
            said = explained(record)
            field = f" {said['field']}:" if said["field"] else ""
            self.stdout.write(f"  {said['where']}:{field} {said['reason']} {said['right']}")
        if run.refused:
            self.stdout.write(f"All refused rows: {uploads.errors_path(run.pk)}")


def _besides(report: dict[str, Any]) -> list[str]:
    """Labels, gold and held pairs, as far as there are any."""
    parts = {
        "labels_added": "labels added",
        "labels_known": "labels known already",
        "labels_repeated": "of the added ones repeats by the same annotator",
        "labels_beside": "of the added ones beside the count (an axis is missing)",
        "unlabelled": "rows without a label",
        "gold": "rows with a known answer",
    }
    lines = [f"{report[name]} {words}" for name, words in parts.items() if report.get(name)]
    with override("en"):
        for flag, n in sorted(report.get("flags", {}).items()):
            lines.append(f"{n} held back: {ItemFlag(flag).label}")
    return lines


def _mapping(given: list[str]) -> dict[str, str]:
    found = {}
    for pair in given:
        what, equals, column = pair.partition("=")
        if not equals or not column:
            raise CommandError(f"--mapping wants WHAT=COLUMN, not “{pair}”.")
        found[what.strip()] = column
    return found


def _why(run: ImportRun | None) -> str:
    if run is None:
        return "Another process is working on this import."
    return run.message or f"The import is {run.get_state_display()}."
