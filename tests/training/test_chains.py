"""Chains: what they do next, that they do it once, whom they wait for."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.enums import RoundState
from arena.models import Round
from tests.conftest import make_user
from tests.training import chain_factories as made
from tests.training.chain_factories import ON, chain, recipe, states, to_the_end, work_once
from tests.training.factories import admin
from training.chains import STAGES, next_step
from training.models import (
    Chain,
    ChainLink,
    ChainRun,
    ChainStep,
    Dataset,
    GateRun,
    Promotion,
    TrainingRun,
)
from training.selectors.chains import next_start, stages_of, total
from training.services import chain_stages, chains
from training.services.chains import (
    advance_chain,
    cancel_chain,
    create_chain,
    edit_chain,
    go_on,
    retry_step,
    set_arrows,
    start_chain,
    start_due,
)
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.core.errors import Forbidden, InvalidInput, PalateError, Refused

database = pytest.mark.django_db
EVENTS = ("look", "succeed", "fail", "read", "press", "switch")


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9)), max_size=60),
    arrows=st.dictionaries(st.sampled_from(STAGES[1:]), st.sampled_from(("off", "ask", "on"))),
)
def test_whatever_happens_each_stage_begins_once_and_in_its_turn(
    events: list[tuple[str, int]], arrows: dict[str, str]
) -> None:
    """A look may come at any time and be repeated, as after a restart: only rows are known."""
    states: dict[str, str] = dict.fromkeys(STAGES, "pending")
    let: set[str] = set()
    audited, begun = False, Counter[str]()
    for event, n in events:
        stage = STAGES[n % len(STAGES)]
        if event == "look":
            move = next_step(states, arrows, let, audited)
            assert move == next_step(states, arrows, let, audited)
            if move.what == "start":
                place = STAGES.index(move.stage)
                assert all(states[before] == "succeeded" for before in STAGES[:place])
                assert place == 0 or arrows.get(move.stage, "off") != "off"
                assert arrows.get(move.stage) != "ask" or move.stage in let
                assert move.stage != "contestant" or audited
                begun[move.stage] += 1
                states[move.stage] = "running"
        elif event in ("succeed", "fail") and states[stage] == "running":
            states[stage] = "succeeded" if event == "succeed" else "failed"
        elif event == "read":
            audited = True
        elif event == "press":
            let.add(stage)
        elif event == "switch" and n % len(STAGES):
            arrows[stage] = ("off", "ask", "on")[n % 3]
    assert all(times == 1 for times in begun.values())


def test_the_audit_is_waited_for_whatever_the_arrow_says() -> None:
    done = dict.fromkeys(STAGES[:4], "succeeded")
    for arrow in ("ask", "on"):
        assert next_step(done, {"contestant": arrow}, {"contestant"}).what == "audit"
    assert next_step(done, {}).what == "off"
    assert next_step(done, {"contestant": "ask"}, (), True).what == "ask"
    assert next_step(dict.fromkeys(STAGES, "succeeded"), {}).what == "done"


@database
def test_a_whole_chain(tmp_path: Path) -> None:
    run = to_the_end(start_chain(actor=admin(), chain=chain(tmp_path)))
    assert (run.state, run.reason) == ("done", "complete"), list(run.steps.values())
    assert set(states(run).values()) == {"succeeded"}
    drafted = Round.objects.get()
    assert (drafted.state, drafted.name) == (RoundState.DRAFT, "Night 1")
    names = {c.contestant.name for c in drafted.round_contestants.all()}
    assert names == {"Harbor", "Nightly 1"}
    frozen = ChainLink.objects.get(name="quality", dataset__isnull=False).dataset
    assert frozen is not None
    old = Dataset.objects.get(name="Old quality").filter
    assert {**frozen.filter, "decided": sorted(frozen.filter["decided"])} == {
        **old, "decided": sorted(old["decided"]),
    }  # fmt: skip
    cost = total(stages_of(run.chain, run))
    assert cost.device >= 30
    assert (cost.cpu, cost.tokens) == (9.0, None)  # two reward models and a policy


def once() -> dict[str, int]:
    """How many of everything there are besides what the test began with."""
    return {
        "datasets": Dataset.objects.filter(name__startswith="Nightly").count(),
        "runs": TrainingRun.objects.filter(name__startswith="Nightly").count(),
        "gates": GateRun.objects.count(),
        "promotions": Promotion.objects.count(),
        "rounds": Round.objects.count(),
        "links": ChainLink.objects.count(),
    }


ONCE = {"datasets": 2, "runs": 3, "gates": 1, "promotions": 1, "rounds": 1, "links": 8}


class KilledError(BaseException):
    """Stands for a kill: nothing may catch it."""


SERVICES = (
    ("datasets", "create_dataset"), ("datasets", "freeze_dataset"), ("runs", "launch"),
    ("gates", "start_gate"), ("promotions", "promote"), ("", "compose_round"), ("", "_link"),
)  # fmt: skip


@database
@pytest.mark.parametrize("seed", range(3))
def test_killed_after_any_call_it_makes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every call of a service is killed right after it returned, and again by chance."""
    dice, killed = random.Random(seed), Counter[str]()

    def deadly(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            found = call(*args, **kwargs)
            if not killed[name] or (killed[name] < 6 and dice.random() < 0.4):
                killed[name] += 1
                raise KilledError(name)
            return found

        return wrapped

    run = start_chain(actor=admin(), chain=chain(tmp_path))
    for module, name in SERVICES:
        where = getattr(chain_stages, module) if module else chain_stages
        monkeypatch.setattr(where, name, deadly(name, getattr(where, name)))
    for _try in range(60):
        try:
            with transaction.atomic():
                run = work_once(run)
        except KilledError:
            continue
        if run.state == "done":
            break
    assert (run.state, run.reason) == ("done", "complete")
    assert set(killed) == {name for _module, name in SERVICES}
    assert once() == ONCE
    for _again in range(3):
        advance_chain(pk=run.pk)
    assert once() == ONCE


@database
def test_arrows_stop_ask_and_let_go(tmp_path: Path) -> None:
    found = chain(tmp_path, {"rewards": "ask"})
    run = made.until_frozen(start_chain(actor=admin(), chain=found))
    step = run.steps.get(stage="rewards")
    assert (run.state, run.reason, run.stage) == ("waiting", "ask", "rewards")
    assert not TrainingRun.objects.filter(kind="reward_model", key__startswith="chain").exists()
    with pytest.raises(Refused, match="not come"):
        go_on(actor=admin(), step=run.steps.get(stage="grpo"))
    with pytest.raises(Forbidden):
        go_on(actor=make_user("ray", Role.RATER), step=step)
    go_on(actor=admin(), step=step)
    first = go_on(actor=admin(), step=step).let_at  # a double click
    assert first == ChainStep.objects.get(pk=step.pk).let_at
    advance_chain(pk=run.pk)
    run = work_once(run)
    assert (run.state, run.reason, run.stage) == ("done", "off", "grpo")


@database
def test_it_waits_for_the_audit_and_goes_on_after_it(tmp_path: Path) -> None:
    run = start_chain(actor=admin(), chain=chain(tmp_path))
    for _turn in range(6):
        made.freeze_waiting()
        made.end_queued()
        run = advance_chain(pk=run.pk)
    assert (run.state, run.reason, run.stage) == ("waiting", "audit", "contestant")
    assert not Promotion.objects.exists()
    found = run.steps.get(stage="gate").links.get().gate
    assert found is not None
    made.read_all(found, "fake")
    assert advance_chain(pk=run.pk).reason == "audit"  # read, but fake
    made.read_all(found)
    assert advance_chain(pk=run.pk).reason == "complete"


@database
def test_a_stage_that_failed_is_tried_again_once(tmp_path: Path) -> None:
    run = start_chain(actor=admin(), chain=chain(tmp_path))
    for _turn in range(2):
        run = advance_chain(pk=run.pk)
        made.freeze_waiting()
    run = advance_chain(pk=run.pk)
    quality, other = TrainingRun.objects.filter(key__startswith="chain").order_by("pk")
    made.end(quality, passed=False)
    made.end(other, "failed", reason="out_of_memory", message="too big")
    run = advance_chain(pk=run.pk)
    step = run.steps.get(stage="rewards")
    assert (run.state, run.reason, step.state) == ("failed", "step", "failed")
    assert "too big" in step.message
    second = make_user("second-admin", Role.ADMIN)
    retry_step(actor=second, step=step)
    retry_step(actor=second, step=step)
    run = advance_chain(pk=run.pk)
    assert run.by == second
    assert run.steps.get(stage="rewards").attempt == 1
    again = TrainingRun.objects.filter(key__startswith="chain").order_by("pk").last()
    assert again is not None
    assert again.seed == quality.seed + 1  # the one that fell through its gate is made anew
    assert TrainingRun.objects.get(pk=other.pk).state == "queued"  # the other one goes on
    run = to_the_end(run)
    assert run.reason == "complete"
    with pytest.raises(Refused, match="Nothing failed"):
        retry_step(actor=second, step=step)


@database
def test_what_was_killed_is_taken_up_three_times(tmp_path: Path) -> None:
    run = start_chain(actor=admin(), chain=chain(tmp_path))
    for _turn in range(2):
        advance_chain(pk=run.pk)
        made.freeze_waiting()
    advance_chain(pk=run.pk)
    victim = TrainingRun.objects.filter(key__startswith="chain").earliest("pk")
    rest = TrainingRun.objects.filter(key__startswith="chain").latest("pk")
    made.end(rest)
    for _time in range(3):
        made.end(victim, "failed", reason="killed")
        assert advance_chain(pk=run.pk).state == "running"
        assert TrainingRun.objects.get(pk=victim.pk).state == "queued"
    made.end(victim, "failed", reason="killed")
    assert advance_chain(pk=run.pk).state == "failed"


@database
def test_in_the_name_of_somebody_who_may(tmp_path: Path) -> None:
    found = chain(tmp_path)
    with pytest.raises(Forbidden):
        start_chain(actor=make_user("ray", Role.RATER), chain=found)
    with pytest.raises(Forbidden):
        create_chain(actor=None, name="x", recipe=found.recipe)
    run = start_chain(actor=admin(), chain=found)
    User.objects.filter(pk=admin().pk).update(is_active=False)
    run = advance_chain(pk=run.pk)
    assert (run.state, run.reason) == ("failed", "actor")
    assert not ChainLink.objects.exists()
    second = make_user("second-admin", Role.ADMIN)
    retry_step(actor=second, step=run.steps.get(stage="freeze"))
    run = advance_chain(pk=run.pk)
    assert run.state == "running"
    link = ChainLink.objects.get()
    assert link.dataset is not None
    assert link.dataset.created_by == second


@database
def test_one_time_after_the_other_and_cancelling(tmp_path: Path) -> None:
    found = chain(tmp_path)
    run = start_chain(actor=admin(), chain=found, key="click")
    assert start_chain(actor=admin(), chain=found, key="click") == run
    with pytest.raises(Refused, match="under way"):
        start_chain(actor=admin(), chain=found)
    for _turn in range(2):
        advance_chain(pk=run.pk)
        made.freeze_waiting()
    advance_chain(pk=run.pk)
    cancel_chain(actor=admin(), run=run)
    assert cancel_chain(actor=admin(), run=run).state == "cancelled"
    own = TrainingRun.objects.filter(key__startswith="chain")
    assert set(own.values_list("state", flat=True)) == {"cancelled"}
    assert advance_chain(pk=run.pk).state == "cancelled"
    assert start_chain(actor=admin(), chain=found).number == 2


@database
def test_every_night_once(tmp_path: Path, settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    found = chain(tmp_path, hour=3)
    day = datetime(2030, 5, 6, tzinfo=UTC)
    Chain.objects.filter(pk=found.pk).update(enabled_at=day + timedelta(hours=4))
    found.refresh_from_db()
    assert start_due(day + timedelta(hours=5)) == 0  # switched on after this night's hour
    assert next_start(found, day + timedelta(hours=5)) == day + timedelta(days=1, hours=3)
    night = day + timedelta(days=1)
    assert start_due(night + timedelta(hours=2, minutes=59)) == 0
    assert start_due(night + timedelta(hours=9)) == 1  # nobody was up at three
    run = ChainRun.objects.get()
    assert run.night == night.date()
    cancel_chain(actor=admin(), run=run)
    assert start_due(night + timedelta(hours=10)) == 0
    assert start_due(day + timedelta(days=5, hours=3)) == 1
    assert start_due(day + timedelta(days=6, hours=3)) == 0  # the last one still goes on


@database
def test_a_night_without_news_trains_nothing(tmp_path: Path, settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    found = chain(tmp_path, {"rewards": "on"}, hour=3)
    night = datetime(2030, 5, 6, 3, tzinfo=UTC)

    def begun_and_ended(nights: int) -> ChainRun:
        assert start_due(night + timedelta(days=nights)) == 1
        return to_the_end(ChainRun.objects.latest("pk"))

    assert begun_and_ended(0).reason == "off"  # the first time has nothing to compare with
    trained = TrainingRun.objects.count()
    quiet = begun_and_ended(1)
    assert (quiet.state, quiet.reason, quiet.stage) == ("done", "same", "rewards")
    assert begun_and_ended(2).reason == "same"
    assert TrainingRun.objects.count() == trained
    by_hand = to_the_end(start_chain(actor=admin(), chain=found))
    assert by_hand.reason == "off"
    assert TrainingRun.objects.count() == trained + 2
    made.label_more(Dataset.objects.get(pk=found.recipe["datasets"]["quality"]["like"]))
    assert begun_and_ended(3).reason == "off"
    edit_chain(actor=admin(), chain=found, name=found.name, arrows=found.arrows, hour=3,
               recipe={**found.recipe, "contestant": {"name": "Other {n}"}})  # fmt: skip
    assert begun_and_ended(4).reason == "off"


@database
def test_what_was_frozen_and_not_trained_on_is_news(tmp_path: Path, settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    found = chain(tmp_path, {}, hour=3)
    night = datetime(2030, 5, 6, 3, tzinfo=UTC)

    def begun_and_ended(nights: int, **columns: Any) -> ChainRun:
        assert start_due(night + timedelta(days=nights)) == 1
        run = ChainRun.objects.latest("pk")
        for _turn in range(9):
            run = advance_chain(pk=run.pk)
            if run.state not in ("running", "waiting"):
                return run
            made.freeze_waiting()
            made.end_queued(**columns)
        raise AssertionError(run.stage)

    assert begun_and_ended(0).reason == "off"
    set_arrows(actor=admin(), chain=found, arrows={"rewards": "on"})
    assert begun_and_ended(1, passed=False).reason == "step"  # reward models fell through
    assert begun_and_ended(2).reason == "off"
    assert begun_and_ended(3).reason == "same"
    set_arrows(actor=admin(), chain=found, arrows={"grpo": "on"})
    assert (begun_and_ended(4).reason, begun_and_ended(5).reason) == ("off", "same")


@database
def test_cancelling_stops_what_the_gate_measures(tmp_path: Path) -> None:
    found = chain(tmp_path)
    run = advance_chain(pk=start_chain(actor=admin(), chain=found).pk)
    while not GateRun.objects.filter(state="measuring").exists():
        made.freeze_waiting()
        for queued in TrainingRun.objects.filter(state="queued"):
            made.end(queued)
        run = advance_chain(pk=run.pk)
    cancel_chain(actor=admin(), run=run)
    gate = GateRun.objects.get(state="measuring")
    sides = (gate.candidate_evaluation, gate.baseline_evaluation)
    assert [side.state for side in sides if side] == ["cancelled", "cancelled"]


@database
def test_a_stage_that_breaks_ends_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(step: ChainStep) -> Any:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setitem(chain_stages.WORK, "freeze", broken)
        run = advance_chain(pk=start_chain(actor=admin(), chain=chain(tmp_path)).pk)
    step = run.steps.get(stage="freeze")
    assert (run.state, run.reason) == ("failed", "step")
    assert step.message == "Unexpected: OSError: the disk is gone"
    retry_step(actor=admin(), step=step)
    assert to_the_end(run).state == "done"


@database
def test_what_cannot_be_is_told_beside_its_field(tmp_path: Path) -> None:
    good = recipe(tmp_path)
    config = {"grpo": {"steps": -1}}
    bad: dict[str, dict[str, Any]] = {
        "contestant": {"contestant": {"name": "always the same"}},
        "gate": {"gate": 0},
        "base": {"base": None},
        "grpo_config": {"grpo": {**good["grpo"], "config": config}},
        "preset": {"grpo": {**good["grpo"], "preset": "none such"}},
        "grpo": {"grpo": {**good["grpo"], "inputs": {"train": ["nothing", "train"]}}},
        "prompts": {"fixed": {"prompts": 0}},
        "contestants": {"round": {"name": "R {n}", "raters": [1]}},
        "round_name": {"round": {}},
    }
    for field, change in bad.items():
        with pytest.raises(PalateError) as refused:
            create_chain(actor=admin(), name="x", recipe={**good, **change}, arrows=ON)
        assert refused.value.field == field, (field, str(refused.value))
    with pytest.raises(InvalidInput, match="arrow"):
        create_chain(actor=admin(), name="x", recipe=good, arrows={"freeze": "on"})
    quiet = create_chain(actor=admin(), name="x", recipe={**good, "round": {}}, key="k")
    assert create_chain(actor=admin(), name="y", recipe=good, key="k") == quiet
    assert set(quiet.arrows.values()) == {"off"}
    with pytest.raises(InvalidInput):
        set_arrows(actor=admin(), chain=quiet, arrows={"round": "on"})
    assert set_arrows(actor=admin(), chain=quiet, arrows={"gate": "ask"}).arrows["gate"] == "ask"


@database
def test_what_was_done_cannot_be_undone(tmp_path: Path) -> None:
    run = to_the_end(start_chain(actor=admin(), chain=chain(tmp_path, {})))
    assert (run.state, run.reason, run.stage) == ("done", "off", "rewards")
    step = run.steps.filter(stage="freeze")
    for change in (
        lambda: ChainRun.objects.filter(pk=run.pk).update(state="running"),
        lambda: ChainRun.objects.filter(pk=run.pk).update(recipe={}),
        lambda: step.update(state="pending"),
        lambda: ChainLink.objects.update(name="other"),
        lambda: ChainLink.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


@database
def test_one_chain_that_breaks_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = recipe(tmp_path)
    runs = [
        start_chain(actor=admin(), chain=chain(tmp_path, recipe=asked, name=name))
        for name in ("first", "second")
    ]
    real = chains.advance_chain

    def broken(*, pk: int) -> ChainRun:
        if pk == runs[0].pk:
            raise RuntimeError
        return real(pk=pk)

    monkeypatch.setattr(chains, "advance_chain", broken)
    assert chains.advance_all() == 2
    assert states(runs[1])["freeze"] == "running"
