"""A chain for tests: sets of pairs to freeze anew, a base, a gate, and runs that end as told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from annotation.models import Project
from annotation.services import items
from tests.annotation.factories import Desk, label_all
from tests.catalog.factories import make_answer, make_contestant
from tests.conftest import make_user
from tests.training.factories import admin, draft, freeze, make_pairs, make_people, short_and_long
from tests.training.gate_factories import gate, made, plant
from training.enums import ENDED, RunKind, RunState
from training.models import BaselineEvaluation, Chain, ChainRun, Dataset, GateRun, TrainingRun
from training.selectors.audits import sample
from training.selectors.inputs import digest_of_run
from training.services import audits
from training.services.chain_recipes import standard_recipe
from training.services.chains import advance_chain, create_chain
from training.services.freezing import run_freeze
from training.services.verdicts import decide_ready
from training.storage import directory
from webapp.accounts.enums import Role
from webapp.catalog.services.prompts import get_or_create_prompt

ON = dict.fromkeys(("rewards", "grpo", "gate", "contestant", "round"), "on")
SPLITS = {"train": 40, "reward_model_gate": 30, "gate": 30}


def pairs(branch: str) -> Dataset:
    """Frozen pairs of one axis with splits for training and measuring."""
    desk = make_pairs(people=12, prompts=1, prefix=f"{branch} person", topic=branch, shared=False)
    values: dict[str, Any] = {"axis": branch, "projects": [desk.project.pk], **SPLITS}
    found = freeze(draft(name=f"Old {branch}", **values))
    assert found.state == "frozen", found.report
    return found


def label_more(dataset: Dataset, people: int = 2) -> None:
    """Further labelled pairs in the project that this dataset collects from."""
    project = Project.objects.get(pk=dataset.filter["projects"][0])
    users = [row.user for row in project.members.select_related("user") if row.user]
    versions = make_people(people, "somebody new")
    drafts = []
    for number, version in enumerate(versions):
        prompt = get_or_create_prompt(
            messages=f"What is new about {number}?", category="news", language="en"
        )
        first, second = short_and_long(100, number)
        drafts.append(
            items.ItemDraft(prompt_id=prompt.pk, prompt_digest=prompt.text_hash, first=first,
                            second=second, persona_version_id=version.pk)
        )  # fmt: skip
    items.add_items(project=project, drafts=drafts)
    label_all(Desk(admin(), project, users, versions))


def recipe(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    """What a chain needs, ready to go."""
    base = made("base")
    spec = gate(tmp_path, scorer="auditors", baseline=base, to_audit=2)
    prompts = spec.dataset
    BaselineEvaluation.objects.create(
        base=base.name, base_sha256=digest_of_run(base), dataset=prompts, passed=True,
        split_sha256=prompts.split_sha256["gate"], created_by=admin(),
    )  # fmt: skip
    raters = [make_user("bob-of-chains", Role.RATER).pk]
    other = make_contestant("Harbor")
    make_answer(contestant=other)
    plan = {
        "name": "Night {n}", "contestants": [other.pk], "raters": raters, "with_personas": False,
        "axes": ["quality"], "weights": {"quality": 100}, "planned_votes": 5,
    }  # fmt: skip
    given: dict[str, Any] = {
        "quality": pairs("quality"), "personalization": pairs("personalization"),
        "prompts": prompts, "base": base, "gate": spec, "round": plan,
    }  # fmt: skip
    return standard_recipe(**{**given, **changes})


def chain(tmp_path: Path, arrows: Mapping[str, str] = ON, **options: Any) -> Chain:
    asked = options.pop("recipe", None) or recipe(tmp_path)
    name = options.pop("name", "Nightly")
    return create_chain(actor=admin(), name=name, recipe=asked, arrows=arrows, **options)


def freeze_waiting() -> None:
    for pk in Dataset.objects.filter(state="freezing").values_list("pk", flat=True):
        run_freeze(pk=pk, take_over=True)


def end(run: TrainingRun, state: str = RunState.SUCCEEDED, **columns: Any) -> None:
    """What the engine would have left behind; no process runs."""
    model = directory(run.directory) / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_text(run.name)
    branch = run.config.get("reward_model", {}).get("branch")
    manifest = {
        "config": {"reward_model": {"branch": branch}}, "cpu_seconds": 3.0,
        "facts": {"gate": {"passed": columns.pop("passed", True), "checks": []}},
        "files": {"model/model.safetensors": run.name},
    }  # fmt: skip
    if state in (RunState.SUCCEEDED, RunState.FAILED):
        now = timezone.now()
        for step in (RunState.STARTING, RunState.RUNNING, state):
            TrainingRun.objects.filter(pk=run.pk).update(
                state=step, started_at=now - timedelta(seconds=10), ended_at=now
            )
    TrainingRun.objects.filter(pk=run.pk).update(manifest=manifest, **columns)


def end_queued(**columns: Any) -> None:
    """Every run in the queue succeeds; evaluations say that the candidate is better."""
    for run in TrainingRun.objects.exclude(state__in=ENDED):
        if run.kind == RunKind.EVALUATE:
            continue
        end(run, **columns)
    for found in GateRun.objects.filter(state="measuring"):
        plant(found.candidate_evaluation, found.spec, lambda n, axis: 0.9 + n % 3 / 100)
        plant(found.baseline_evaluation, found.spec, lambda n, axis: 0.6 + n % 3 / 100)
    decide_ready()


def read_all(found: GateRun, verdict: str = "genuine") -> None:
    for row in sample(found):
        audits.mark(actor=admin(), gate=found, item=row["id"], draw=row["draw"], verdict=verdict)


def work_once(run: ChainRun) -> ChainRun:
    """All that others do between two looks of the chain."""
    freeze_waiting()
    end_queued()
    for found in GateRun.objects.filter(chain_links__step__chain_run=run, verdict="pass"):
        read_all(found)
    return advance_chain(pk=run.pk)


def until_frozen(run: ChainRun) -> ChainRun:
    """Both datasets are there, one after the other."""
    for _dataset in range(3):
        run = work_once(run)
    return run


def to_the_end(run: ChainRun, turns: int = 20) -> ChainRun:
    for _turn in range(turns):
        run = advance_chain(pk=run.pk)
        if run.state not in ("running", "waiting"):
            return run
        run = work_once(run)
    raise AssertionError((run.state, run.reason, run.stage, list(run.steps.values())))


def states(run: ChainRun) -> dict[str, str]:
    return dict(run.steps.values_list("stage", "state"))
