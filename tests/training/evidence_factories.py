"""A trained contestant, its base and a stranger in a round, with reward models behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Q

from arena.enums import AnswerJobState, WantedState
from arena.models import AnswerJob, Assignment, Round, Slot, WantedAnswer
from arena.services import closing, ratings, screening, sealing
from tests.arena.factories import World, draft_round, make_answer, make_world, vote_all
from tests.training.gate_factories import made, policy, reward_model
from training.engine.rundir import RunDir
from training.enums import RunState
from training.models import TrainingRun
from training.selectors.round_answers import answers_of
from training.services.predictions import launch_predictions
from training.services.promotions import answer_override, ask_override, promote_baseline
from training.storage import directory
from webapp.catalog.models import Answer, AnswerCost, Contestant


def trained_world(*, personas: int = 6, prompts: int = 4, raters: int = 6) -> World:
    """Contestants: base, policy (by override), and one that was imported."""
    world = make_world(contestants=1, personas=personas, prompts=prompts, raters=raters)
    stranger = world.contestants[0]
    base = made("base")
    judges = {b: reward_model(f"model of {b}", b) for b in ("quality", "personalization")}
    run = policy("policy", base, judges)
    trained_base = promote_baseline(actor=world.admin, run=base, name="Base")
    asked = ask_override(actor=world.admin, run=run, name="Policy", reason="as a control")
    trained = answer_override(actor=world.second_admin, asked=asked, agreed=True)
    assert trained is not None
    for model in (trained_base, trained):
        for p, person in enumerate(world.personas):
            for q, question in enumerate(world.prompts):
                text = f"{model.name} says to person {p} about {q}: use it."
                make_answer(model, question, person.versions.get(), text)
    world.contestants = [trained_base, trained, stranger]
    return world


def winner(
    contestant: Contestant, axis: str = "personalization"
) -> Callable[[Any], dict[str, str]]:
    """Whoever votes finds this one better on the axis, and sees a tie on the other."""

    def choose(row: Assignment) -> dict[str, str]:
        slot = Slot.objects.select_related("x", "y").get(pk=row.slot_id)
        sides = {
            slot.x.contestant_id: row.battle.left_is_x,
            slot.y.contestant_id: not row.battle.left_is_x,
        }
        found = {"quality": "tie", "personalization": "tie"}
        if contestant.pk in sides:
            found[axis] = "left" if sides[contestant.pk] else "right"
        return found

    return choose


def open_of(world: World, **changes: Any) -> Round:
    """An open round; the answers of models that answer here are written down as made."""
    possible = 3 * len(world.personas) * len(world.prompts)  # three pairs in each context
    round_ = draft_round(world, **{"planned_votes": possible, **changes})
    job = AnswerJob.objects.create(round=round_, state=AnswerJobState.DONE, created_by=world.admin)
    for context in round_.contexts.all():
        for made_by in world.contestants[:2]:
            answer = Answer.objects.get(
                contestant=made_by,
                prompt=context.prompt_id,
                persona_version=context.persona_version_id,
            )
            WantedAnswer.objects.create(
                job=job, context=context, contestant=made_by, state=WantedState.MADE, answer=answer
            )
            AnswerCost.objects.create(
                answer=answer, prompt_tokens=100, completion_tokens=20, milliseconds=300, tries=1
            )
    screening.start_screening(actor=world.admin, round_=round_)
    screening.screen_round(round_.pk)
    return sealing.open_round(actor=world.admin, round_=Round.objects.get(pk=round_.pk))


def closed_of(world: World, **changes: Any) -> Round:
    choose = changes.pop("choose", None) or winner(world.contestants[1])
    round_ = open_of(world, **changes)
    vote_all(round_, world.raters, choose)
    round_ = closing.close_round(actor=world.admin, round_=round_, reason="enough for a test")
    ratings.rate_round(round_.pk)
    return round_


def evidence_round(world: World, **changes: Any) -> Round:
    """Unsealed; everybody finds the policy better on personalization unless `choose` says else."""
    round_ = closed_of(world, **changes)
    for actor in (world.admin, world.second_admin):
        round_ = closing.approve_unsealing(actor=actor, round_=round_, reason="all votes are in")
    return round_


def predicted(world: World, round_: Round, say: Callable[[str], float]) -> TrainingRun:
    """A finished prediction: `say` gives the value of a text; auditors see no difference."""
    run = launch_predictions(actor=world.admin, contestant=world.contestants[1], round_=round_)
    folder = RunDir(directory(run.directory))
    folder.path.mkdir(parents=True, exist_ok=True)
    for row in answers_of(round_):
        parts = {
            name: {name.partition("/")[0]: say(row["completion"]) if "/" not in name else 0.5}
            for branch in ("quality", "personalization")
            for name in (branch, f"{branch}/auditors")
        }
        folder.append(folder.path / "predictions.jsonl", {"id": row["id"], "parts": parts})
    return ended_as(run, RunState.SUCCEEDED)


def ended_as(run: TrainingRun, state: str) -> TrainingRun:
    """Through its legal moves, without a process."""
    for to in (RunState.STARTING, RunState.RUNNING, state):
        TrainingRun.objects.filter(pk=run.pk).update(state=to)
    run.refresh_from_db()
    return run


def battles_of(round_: Round, one: Contestant, other: Contestant) -> int:
    """Votes on battles of these two."""
    pair = Q(slot__x__contestant=one, slot__y__contestant=other)
    pair |= Q(slot__x__contestant=other, slot__y__contestant=one)
    return Assignment.objects.filter(pair, round=round_, head__isnull=False).count()
