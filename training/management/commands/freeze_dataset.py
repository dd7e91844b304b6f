"""manage.py freeze_dataset NAME --kind KIND [--set name=value …] [--out FOLDER]"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from training.enums import DatasetState, Kind
from training.models import Dataset
from training.refusals import explain_freeze
from training.services.datasets import create_dataset, freeze_dataset
from training.services.freezing import run_freeze
from training.snapshots import ENGINE, ROWS, write_snapshot
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = (
        "Freeze a dataset here, without a worker. The same name again goes on, or writes the files "
        "of the frozen dataset."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--kind", choices=Kind.values, default=Kind.PREFERENCES.value)
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting of the filter, as JSON or text: axis=quality, train=80, rounds=[3]",
        )
        parser.add_argument("--out", type=Path, help="write the files of the dataset there")
        parser.add_argument("--form", choices=[ROWS, ENGINE], default=ROWS)
        parser.add_argument("--parquet", action="store_true", help="Parquet beside JSON Lines")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            dataset = self._frozen(options)
        except PalateError as error:
            raise CommandError(f"{error.field}: {error}" if error.field else str(error)) from error
        self.stdout.write(f"{dataset.name}: {dataset.rows} rows, {dataset.content_sha256}")
        if options["out"]:
            types = ("jsonl", "parquet") if options["parquet"] else ("jsonl",)
            found = write_snapshot(dataset, options["out"], form=options["form"], types=types)
            for name, file in found["files"].items():
                self.stdout.write(f"{options['out'] / name}: {file['rows']} rows")
            if found["gone"]:
                self.stdout.write(f"{len(found['gone'])} rows are gone since consent was withdrawn")

    def _frozen(self, options: dict[str, Any]) -> Dataset:
        dataset = Dataset.objects.filter(name=options["name"]).first()
        if dataset is None:
            values = dict(map(setting, options["set"]))
            dataset = create_dataset(
                actor=None, name=options["name"], kind=options["kind"], values=values
            )
        if dataset.state != DatasetState.FROZEN:
            freeze_dataset(actor=None, dataset=dataset)
            run_freeze(pk=dataset.pk)
            dataset.refresh_from_db()
        if dataset.state != DatasetState.FROZEN:
            refusal = dataset.report.get("refusal")
            reason = explain_freeze(refusal) if refusal else "another process is freezing it"
            raise CommandError(reason)
        return dataset


def setting(text: str) -> tuple[str, Any]:
    """name=value; the value as JSON where it is JSON, else as text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(f"--set {text}: write NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
