"""The votes become pairs, and the nightly chain makes a second policy of them."""

from __future__ import annotations

import time
from typing import Any

from training.demo.loop import judging, learning, tasting, town
from training.demo.loop.learning import Runs
from training.demo.tiny import StageFailed
from training.enums import Source
from training.gate_policies import check_audited
from training.models import Chain, ChainRun, GateRun, GateSpec
from training.services import chains
from training.services.chain_recipes import standard_recipe
from webapp.catalog.models import Contestant
from webapp.core.errors import Refused

ARROWS = dict.fromkeys(("rewards", "grpo", "gate", "contestant", "round"), "on")
PATIENCE, POLL = 3600.0, 1.0
TRIES = 3  # of a step that failed


def recipe(
    runs: Runs, gate: GateSpec, name: str, stand_by: list[Contestant], who: tasting.Guests,
    raters: list[int], votes: int,
) -> dict[str, Any]:  # fmt: skip
    """What the chain does: the same filters, with the votes of unsealed rounds as a source."""
    shop = runs.workshop
    found = standard_recipe(
        quality=shop.quality,
        personalization=shop.personalization,
        prompts=shop.instructions,
        defects=shop.defects,
        base=runs.runs["SFT"],
        gate=gate,
        grpo_config={**runs.changes.get("grpo", {}), "reward": {"audit": ["truth", "rules"]}},
        reward_config={b: {"reward_model": dict(c)} for b, c in learning.PATIENT.items()},
        contestant="Second policy {n}",
        sampling=judging.TASTED,
        round={
            "name": name, "contestants": [c.pk for c in stand_by], "raters": raters,
            "personas": who.personas, "prompts": who.prompts, "planned_votes": votes,
            "holdout_percent": tasting.HOLDOUT, "stratum_features": ["expertise"],
            "minimum_strata": 2, "simulated": True,
        },
    )  # fmt: skip
    for dataset in found["datasets"].values():
        dataset["filter"]["sources"] = [Source.ANNOTATION.value, Source.ARENA.value]
    return found


def guests(place: town.Town) -> tasting.Guests:
    """New people and questions, and those that are held out for good."""
    new, kept = tasting.of_corners(place.tastings[1]), tasting.held_out()
    return tasting.Guests(new.personas + kept.personas, new.prompts + kept.prompts)


def chained(actor: Any, runs: Runs, what: dict[str, Any]) -> ChainRun:
    """Let the chain run to its end; whoever has to read the successes reads them."""
    name = f"{runs.prefix}: chain"
    chain = Chain.objects.filter(name=name).first() or chains.create_chain(
        actor=actor, name=name, recipe=what, arrows=ARROWS, key=name
    )
    run = ChainRun.objects.filter(chain=chain).order_by("-pk").first() or chains.start_chain(
        actor=actor, chain=chain, key=name
    )
    end, tries = time.monotonic() + PATIENCE, 0
    while time.monotonic() < end:
        run = chains.advance_chain(pk=run.pk)
        if run.state == "done":
            return run
        if run.state == "cancelled":
            raise StageFailed("the chain was cancelled")
        if run.state == "failed":
            tries += 1
            step = run.steps.filter(state="failed").first()
            runs.say(f"chain: {run.stage} failed: {step.message if step else run.reason}")
            if tries > TRIES or step is None:
                raise StageFailed(f"the chain failed at {run.stage}")
            try:
                chains.retry_step(actor=actor, step=step)
            except Refused:  # a gate decides once: the report says what it said
                return run
        elif run.reason == "audit":
            gate = run.steps.get(stage="gate").links.get().gate
            if gate is not None:
                fakes = judging.read_successes(actor, gate)
                runs.say(f"second policy: successes read: {gate.spec.audit}, fake: {fakes}")
                _check_read(gate)
        time.sleep(POLL)
    raise StageFailed(f"the chain was not done in {PATIENCE:.0f} s")


def _check_read(gate: GateRun) -> None:
    """The chain would wait for better reading for ever."""
    try:
        check_audited(gate)
    except Refused as refused:
        raise StageFailed(f"the second policy was not promoted: {refused}") from refused


def votes_in(run: ChainRun) -> dict[str, int]:
    """Rows that came from votes, by dataset of the chain."""
    found = {}
    for link in run.steps.get(stage="freeze").links.all():
        if link.dataset is not None:
            found[link.name] = link.dataset.items.filter(source=Source.ARENA).count()
    return found
