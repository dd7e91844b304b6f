"""What came of the loop with a real model: matches of people that no training knew, the round, and
answers to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from training.demo import household
from training.demo.loop import judging, report
from training.demo.loop.play import Play
from training.enums import Verdict
from training.gating.decision import Pair, compare
from training.gating.rules import parse
from training.models import GateRun, TrainingRun
from training.selectors.evaluated import answers
from training.services.verdicts import paired
from webapp.catalog.texts import canonical_json, sha256

Json = dict[str, Any]
SAMPLES = 3  # of each kind of people
ENGLISH = 0.95  # share of the policy's answers that must be readable


def facts(it: Play) -> Json:
    """As JSON; `missed` names what should have been and was not."""
    found: Json = {
        "seed": it.seed,
        "seconds": {name: round(value) for name, value in it.seconds.items()},
        **it.facts,
        "matches": matches(it.gates["GRPO"]),
        "axes": axes(it.gates["GRPO"]),
        "readable": readable(it.gates["GRPO"]),
        "samples": samples(it.gates["GRPO"]),
        "boards": [report.boards(it, round_) for round_ in it.rounds],
        "runs": {
            run.name: {"state": run.state, "kind": run.kind, "config": run.config_sha256[:12]}
            for run in TrainingRun.objects.order_by("pk")
        },
    }
    found["missed"] = list(missed(found))
    return found


def matches(gate: GateRun) -> Json:
    """Share of answers of exactly the wanted length, on questions and for people of the gate;
    paired by item, drawn by prompt, at the level of the gate."""
    pairs = [
        Pair(row.item, row.prompt, row.stratum, *map(matched, (row.candidate, row.baseline)))
        for row in paired(gate.spec, *sides(gate))["personalization"]
    ]
    return _shown(compare(pairs, parse(gate.spec.rules)))


def matched(value: float | None) -> float | None:
    return None if value is None else float(value >= 1.0)


def sides(gate: GateRun) -> tuple[Any, Any]:
    """The answers of policy and base."""
    runs = (gate.candidate_evaluation, gate.baseline_evaluation)
    policy, base = (answers(run, gate.spec) if run is not None else {} for run in runs)
    return policy, base


def axes(gate: GateRun) -> Json:
    """The gate's own figures: mean scores of the rules."""
    pairs, rules = paired(gate.spec, *sides(gate)), parse(gate.spec.rules)
    return {axis: _shown(compare(rows, rules)) for axis, rows in pairs.items()}


def _shown(found: Any) -> Json:
    return {
        "base": found.baseline_mean, "policy": found.candidate_mean, "difference": found.mean,
        "low": found.low, "high": found.high, "prompts": found.prompts, "answers": found.n_ok,
    }  # fmt: skip


def readable(gate: GateRun) -> Json:
    """Share of the answers that are English and no babble."""
    found = {}
    for name, side in zip(("policy", "base"), sides(gate), strict=True):
        fine = [household.readable(row["completion"]) for row in side.values()]
        found[name] = sum(fine) / len(fine) if fine else None
    return found


def samples(gate: GateRun) -> list[Json]:
    """A few questions with the answers of both, for both kinds of people; drawn by their names, the
    same every time.
    """
    policy, base = sides(gate)
    order = sorted(policy.keys() & base.keys(), key=lambda key: sha256(canonical_json(key)))
    drawn = [
        key
        for style in household.WANTED
        for key in [k for k in order if household.STYLES[policy[k]["persona"]] == style][:SAMPLES]
    ]
    return [
        {
            "persona": policy[key]["persona"], "prompt": policy[key]["prompt"],
            "base": base[key]["completion"], "policy": policy[key]["completion"],
        }
        for key in drawn
    ]  # fmt: skip


def missed(found: Mapping[str, Any]) -> Iterator[str]:
    """What the loop has to show, and did not."""
    if found["gates"].get("GRPO") != Verdict.PASS:
        yield f"the gate said “{found['gates'].get('GRPO')}” of the policy"
    low = found["matches"]["low"]
    if low is None or low <= 0:
        yield "the policy does not match unseen people more often than the base"
    if (found["readable"]["policy"] or 0) < ENGLISH:
        yield "not all answers of the policy are readable English"
    if not all(found.get("verified") or [False]):
        yield "the bundle did not verify"
    for board in found["boards"]:
        yield from behind(board["personalization"])


def behind(rows: Mapping[str, Any]) -> Iterator[str]:
    """Whether the round has the policy ahead."""
    policy, base = rows.get(judging.POLICY), rows.get(judging.BASE)
    if policy is None or base is None or None in (policy["rating"], base["rating"]):
        yield "the round has no rating of base and policy"
    elif policy["rating"] <= base["rating"]:
        yield "the policy is not ahead on personalization in the round"


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """As people read it."""
    yield ""
    yield f"{'on people and questions never trained on':<44}{'base':>7}{'policy':>8}  difference"
    rows = {"answers of the wanted length": found["matches"], **found["axes"]}
    for name, row in rows.items():
        yield f"{name:<44}{_three(row['base']):>7}{_three(row['policy']):>8}  {_interval(row)}"
    fine = found["readable"]
    yield f"{'readable':<44}{_three(fine['base']):>7}{_three(fine['policy']):>8}"
    for row in found["samples"]:
        yield f"\n{row['persona']}\n{row['prompt']}"
        yield f"  base:   {' '.join(row['base'].split())}"
        yield f"  policy: {' '.join(row['policy'].split())}"
    for board in found["boards"]:
        yield from _board(board)
    yield f"gates: {found['gates']}"
    yield f"seconds: {found['seconds']}"
    yield f"missed: {'; '.join(found['missed']) or 'nothing'}"


def _board(board: Mapping[str, Any]) -> Iterator[str]:
    for axis, rows in board.items():
        yield f"\n{axis} in the round"
        for name, row in rows.items():
            bounds = [row["rating"], row["lo"], row["hi"]]
            said = "–" if None in bounds else "{:.0f} [{:.0f}, {:.0f}]".format(*bounds)
            yield f"  {row['rank']!s:>4}  {name:<12}{said} from {row['votes']} votes"


def _three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return "–"
    bounds = f"[{_three(row['low'])}, {_three(row['high'])}]"
    return f"{row['difference']:+.3f} {bounds} over {row['prompts']} prompts"
