"""Export a project's pairs into a file on this machine. See docs/exports.md."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, BooleanOptionalAction
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from annotation.enums import JobState
from annotation.exports import options as known
from annotation.management.named import project_named, user_named
from annotation.models import ExportRun
from annotation.selectors.export_runs import RunView, view_run
from annotation.services import exports
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = "Export pairs for training, or everything for another Palate. The file is checked first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="the project's name or number")
        parser.add_argument(
            "--out", type=Path, help="where to put the file (default: its own name)"
        )
        parser.add_argument("--user", help="the administrator who exports")
        parser.add_argument("--format", choices=list(known.FILE_TYPES), default=known.TRL)
        parser.add_argument("--file-type", choices=["jsonl", "parquet", "dataset", "csv"])
        parser.add_argument("--style", choices=known.STYLES)
        parser.add_argument("--axis", choices=known.AXES)
        parser.add_argument("--sources", nargs="+", choices=known.SOURCES)
        for name in ("minimum", "unresolved", *known.SPLITS):
            parser.add_argument(f"--{name}", type=int, metavar="PERCENT")
        parser.add_argument("--seed", type=int)
        for name in ("ties", "both-bad"):
            parser.add_argument(f"--{name}", choices=known.TIES)
        parser.add_argument("--synthetic", choices=known.SYNTHETIC)
        for name in ("external", "undecided", "persona-in-prompt"):
            parser.add_argument(f"--{name}", action=BooleanOptionalAction)

    def handle(self, *args: Any, **options: Any) -> None:
        project = project_named(options["project"])
        names = known.Options().as_json()
        asked = {name: options[name] for name in names if options.get(name) is not None}
        try:
            run = exports.start_export(
                actor=user_named(options["user"]),
                project=project,
                options=asked,
                key="",
                send=False,
            )
        except PalateError as error:
            raise CommandError(f"{error.field}: {error}".removeprefix(": ")) from error
        done = self._work(run)
        shown = view_run(done)
        self._say(shown)
        if done.state != JobState.DONE:
            raise CommandError(str(shown.failure or shown.state_label))
        target = options["out"] or Path(Path(done.path).name)
        shutil.copyfile(done.path, target)
        self.stdout.write(f"{target}: {done.size} bytes, SHA-256 {done.sha256}")

    def _work(self, run: ExportRun) -> ExportRun:
        with tqdm(unit="row", disable=None, desc="exporting") as bar:

            def show(now: ExportRun) -> None:
                bar.total = now.rows_total
                bar.update(now.rows_done - bar.n)

            done = exports.run_export(pk=run.pk, take_over=True, progress=show)
        if done is None:
            raise CommandError("Another process is working on this export.")
        return done

    def _say(self, run: RunView) -> None:
        self.stdout.write(f"{run.rows_done} rows, {run.kept} of {run.items} items")
        for name, n, share, wanted in run.splits.get("splits", []):
            self.stdout.write(f"  {name}: {n} items, {share} % ({wanted} % asked)")
        for title, counts in (("items left out", run.left_out), ("labels", run.labels)):
            for reason, n in counts:
                self.stdout.write(f"  {title}: {n} {reason}")
        for what, version, rows in run.proof["steps"]:
            self.stdout.write(f"  {rows} rows {what} {version}".rstrip())
        if run.proof["missing"]:
            self.stdout.write(f"  TRL was not tried: {run.proof['missing']} is not installed")
        if run.proof["problem"]:
            self.stdout.write(f"  problem: {run.proof['problem']} {run.proof['where']}".rstrip())
