"""What a chain does next: from the states of its stages, its arrows, and whom it asked. Pure.

    freeze → rewards → grpo → gate → contestant → round

An arrow leads into each stage but the first. "off": the chain ends before it; "ask": somebody must
let it go on; "on": it goes by itself. Into `contestant` it waits for the audit besides (V20).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

STAGES = ("freeze", "rewards", "grpo", "gate", "contestant", "round")
TRAINING = ("rewards", "grpo")  # the stages that take a device for long
AUDITED = "contestant"  # nothing is promoted whose successes nobody read
MOVES = ("start", "follow", "ask", "audit", "off", "same", "failed", "done")


def trained_stages(arrows: Mapping[str, str]) -> list[str]:
    """The stages of training that the arrows let a chain come to by now."""
    found = []
    for stage in TRAINING:
        if arrows.get(stage, "off") == "off":
            break
        found.append(stage)
    return found


@dataclass(frozen=True)
class Move:
    """`what` is one of MOVES: start this stage, look how far it is, wait for a person, wait for
    the audit, end before it, end because nothing is new, stop because it failed, end because all
    is done.
    """

    what: str
    stage: str = ""


def next_step(
    states: Mapping[str, str],
    arrows: Mapping[str, str],
    let: Collection[str] = (),
    audited: bool = False,
    news: bool = True,
) -> Move:
    """The one thing to do now.

    `states` by stage: pending, running, succeeded or failed. `arrows` by the stage into which they
    lead; one that is missing is off. `let` are the stages that a person let go on. Without `news`
    in what was frozen nothing is trained.
    """
    for stage in STAGES:
        state = states.get(stage, "pending")
        if state == "failed":
            return Move("failed", stage)
        if state == "running":
            return Move("follow", stage)
        if state == "pending":
            if stage == TRAINING[0] and not news:
                return Move("same", stage)
            return Move(_entry(stage, arrows, let, audited), stage)
    return Move("done")


def _entry(stage: str, arrows: Mapping[str, str], let: Collection[str], audited: bool) -> str:
    """What the arrow into this stage says."""
    if stage == STAGES[0]:
        return "start"
    arrow = arrows.get(stage, "off")
    if arrow == "off":
        return "off"
    if stage == AUDITED and not audited:
        return "audit"
    if arrow == "ask" and stage not in let:
        return "ask"
    return "start"
