"""Import the real files of pairs into a scratch project: every row accounted for, twice.

    python -m tools.trial_pairs DATA

DATA holds the files named below; those that are missing are said and skipped. Exit status 1 where a
number differs from what the file really holds, or where a second import adds anything.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Trial:
    """One file and what must come of it."""

    file: str
    added: int
    known: int
    refused: int
    report: dict[str, Any] = field(default_factory=dict)
    gold: bool = False


TRIALS = (
    # 999 pairs by 3 people: 6 have an answer that is JSON's `true`; 132 rows say again what an
    # earlier one said of the same two texts. 24 of the 54 rows with an empty answer are new pairs.
    Trial(
        "pandalm_testset-v1.json",
        added=861,
        known=132,
        refused=6,
        report={
            "labels_added": 2979,
            "labels_repeated": 396,
            "codes": {"type": 6},
            "flags": {"empty_side": 24, "near_identical": 25},
            "annotators": {"annotator1": 993, "annotator2": 993, "annotator3": 993},
        },
    ),
    Trial("llmbar_natural.json", 100, 0, 0, {"gold": 100}, gold=True),
    Trial("llmbar_adversarial_gptinst.json", 92, 0, 0, {"gold": 92}, gold=True),
    Trial("llmbar_adversarial_manual.json", 46, 0, 0, {"gold": 46}, gold=True),
    # 213 questions with two or more answers; 7 pairs have a rank missing.
    Trial(
        "oasst_en_100_tree.jsonl",
        added=761,
        known=0,
        refused=0,
        report={"labels_added": 754, "unlabelled": 7, "flags": {"near_identical": 26}},
    ),
    # The same trees as messages that hold their replies.
    Trial("oasst_en_100_message.jsonl", 0, 761, 0, {"labels_known": 754, "unlabelled": 7}),
)


def main(folder: str) -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(
            PALATE_HOME=home,
            SECRET_KEY=secrets.token_hex(),
            DJANGO_SETTINGS_MODULE="webapp.settings",
        )
        os.environ.pop("DATABASE_URL", None)
        import django

        django.setup()
        return run_trials(Path(folder))


def run_trials(folder: Path) -> int:
    project = scratch_project()
    wrong = 0
    for trial in TRIALS:
        path = folder / trial.file
        if not path.exists():
            print(f"{trial.file}: not here, skipped")
            continue
        first, second = (imported(project, path, trial) for _time in range(2))
        found = {name: getattr(first, name) for name in ("added", "known", "refused")}
        found |= {name: first.report.get(name) for name in trial.report}
        wanted = {"added": trial.added, "known": trial.known, "refused": trial.refused}
        wanted |= trial.report
        rows = first.added + first.known + first.refused
        again = (second.added, second.report.get("labels_added", 0))
        good = found == wanted and again == (0, 0) and rows == first.rows_done
        wrong += not good
        print(f"{'ok' if good else 'WRONG'}  {trial.file} ({first.format}): {found}")
        if not good:
            print(f"       wanted {wanted}; the second import added {again} pairs and labels")
    return int(bool(wrong))


def scratch_project() -> Any:
    from django.core.management import call_command

    from annotation.services.projects import create_project
    from webapp.accounts.services import create_user

    call_command("migrate", verbosity=0)
    user = create_user(username="trial", password=secrets.token_hex(), role="admin")
    settings = {"axes": ["quality"], "base_overlap": 1, "max_overlap": 3}
    return create_project(actor=user, name="Trial", guidelines="Read both.", settings=settings)


def imported(project: Any, path: Path, trial: Trial) -> Any:
    from annotation.services.imports import KIND, check_options
    from webapp.catalog.services.imports import open_run, run_import

    options = check_options(project, {"gold": trial.gold})
    run = open_run(path=path, kind=KIND, subject=project.pk, options=options)
    return run_import(pk=run.pk, take_over=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
