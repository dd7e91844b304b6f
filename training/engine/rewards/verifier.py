"""Rules that check what can be checked: five sub-scores in [0, 1], each with its evidence.

completeness  required steps that were taken, in order
arguments     tool calls with the needed, meaningful arguments
efficiency    steps against what a person needs; only above a margin
coherence     what later steps and the answer use was given or found before
goal          entities and numbers of the goal in the final answer, nothing forbidden: partial

Beside them, where the task says how many words this person wants, personalization: whether the
answer has as many. It is part of no total.

A sub-score that the task says nothing about is None. Path scores cannot carry a rollout that missed
its goal: the total is capped at `cap` + what the goal gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from training.engine.contracts import Parts, Rollout, Task, ToolStep
from training.engine.numbers import Value
from training.engine.rewards.units import contains, fold, units

WEIGHTS: Mapping[str, float] = {
    "goal": 0.5, "completeness": 0.15, "arguments": 0.15, "coherence": 0.1, "efficiency": 0.1,
}  # fmt: skip
SAID = 3  # words below which nothing was said
MARGIN = 1.5  # times the reference steps before efficiency falls
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?")
Found = tuple[Value, list[str]]


@dataclass(frozen=True)
class Verifier:
    """The rules behind the scorer protocol. Without a task there is nothing to check: None."""

    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    cap: float = 0.2
    name: str = "rules"
    version: str = "2"

    def score(self, rollout: Rollout) -> Parts | None:
        task = rollout.task
        if task is None:
            return None
        rules = {
            "completeness": completeness, "arguments": arguments, "efficiency": efficiency,
            "coherence": coherence, "goal": goal,
        }  # fmt: skip
        values: dict[str, Value] = {}
        evidence: list[str] = []
        for name, rule in rules.items():
            values[name], said = rule(task, rollout)
            evidence += [f"{name}: {text}" for text in said]
        values["rules"] = self.total(values)
        if any(task.words):
            values["personalization"] = detail(task, rollout)
        return Parts(values, tuple(evidence))

    def total(self, values: Mapping[str, Value]) -> Value:
        """Weighted mean of what is known, and never far above the goal."""
        whole = Parts(values).total(self.weights)
        reached = values.get("goal")
        if whole is None or reached is None:
            return whole
        return min(whole, self.cap + (1 - self.cap) * reached)


def completeness(task: Task, rollout: Rollout) -> Found:
    """Required steps in order: calls that succeeded, or words where no tool is used."""
    if not task.required_steps:
        return None, []
    position, missing = 0, []
    names = [step.name for step in rollout.steps if step.ok]
    have = units(rollout.completion)
    for wanted in task.required_steps:
        if rollout.steps:
            at = _index([[n] for n in names], [[wanted]], position)
        else:
            at = _index([[u] for u in have], [[u] for u in units(wanted)], position)
        if at is None:
            missing.append(wanted)
        else:
            position = at
    taken = len(task.required_steps) - len(missing)
    return taken / len(task.required_steps), [f"missing: {name}" for name in missing]


def _index(have: list[list[str]], wanted: list[list[str]], start: int) -> int | None:
    """The position after the first occurrence from `start` on."""
    for i in range(start, len(have) - len(wanted) + 1):
        if have[i : i + len(wanted)] == wanted:
            return i + len(wanted)
    return None


def arguments(task: Task, rollout: Rollout) -> Found:
    """Calls whose arguments are there and come from the question, the goal or earlier results."""
    if not rollout.steps:
        return (0.0, ["no tool was called"]) if task.arguments else (None, [])
    good, said = 0, []
    known = _given(task, rollout)
    for step in rollout.steps:
        trouble = _argument_trouble(step, task, known)
        good += not trouble
        said += [f"{step.name}: {trouble}"] if trouble else []
        known += " " + step.result
    return good / len(rollout.steps), said


def _argument_trouble(step: ToolStep, task: Task, known: str) -> str:
    for name in task.arguments.get(step.name, ()):
        if not str(step.arguments.get(name, "")).strip():
            return f"{name} is missing"
    values = [str(v) for v in step.arguments.values() if str(v).strip()]
    if values and not any(_supported(value, known) for value in values):
        return f"{values[0]!r} has nothing to do with the goal"
    return ""


def efficiency(task: Task, rollout: Rollout) -> Found:
    """1 up to the margin above the reference, then in proportion; repeated calls are wasted."""
    if not task.reference_steps or not rollout.steps:
        return None, []
    calls = [(s.name, fold(str(sorted(s.arguments.items())))) for s in rollout.steps]
    repeats = len(calls) - len(set(calls))
    allowed = task.reference_steps * MARGIN
    value = min(1.0, allowed / len(calls)) * (1 - repeats / len(calls))
    said = [f"{repeats} repeated calls"] if repeats else []
    if len(calls) > allowed:
        said.append(f"{len(calls)} steps, {task.reference_steps} are enough")
    return value, said


def coherence(task: Task, rollout: Rollout) -> Found:
    """Numbers of the answer that question, goal or results hold; some result must be used."""
    results = [s.result for s in rollout.steps if s.ok and s.result.strip()]
    if not results:
        return None, []
    known = numbers_in(" ".join([_given(task, rollout), *results]))
    stated = numbers_in(rollout.completion)
    invented = [n for n in stated if n not in known]
    answer = set(units(rollout.completion))
    said = [f"{n:g} comes from nowhere" for n in invented]
    used = any(answer & (set(units(result)) - set(units(rollout.question))) for result in results)
    if not used:
        said.append("no result is used in the answer")
    supported = 1 - len(invented) / len(stated) if stated else 1.0
    return supported * (1.0 if used else 0.5), said


def goal(task: Task, rollout: Rollout) -> Found:
    """Share of the goal's entities and numbers in the answer; 0 when it says what is forbidden."""
    text = rollout.completion
    for word in task.forbidden:
        if contains(text, word):
            return 0.0, [f"forbidden: {word}"]
    wanted = len(task.entities) + len(task.numbers)
    if not wanted:
        return None, []
    lacking = [e for e in task.entities if not contains(text, e)]
    stated = numbers_in(text)
    lacking += [f"{n:g}" for n in task.numbers if n not in stated]
    return 1 - len(lacking) / wanted, [f"not in the answer: {name}" for name in lacking]


def detail(task: Task, rollout: Rollout) -> float:
    """1 within the wanted number of words, less in proportion outside; a mere word is no answer."""
    least, most = task.words
    n = len(units(rollout.completion))
    if n < SAID:
        return 0.0
    return min(1.0, n / least if least else 1.0, most / n if most else 1.0)


def numbers_in(text: str) -> set[float]:
    """Numbers as values: 1,200 and 1200.0 are one."""
    return {float(n.replace(",", "")) for n in NUMBER.findall(fold(text)) if n.strip(",-+.")}


def _given(task: Task, rollout: Rollout) -> str:
    said = " ".join(message["content"] for message in rollout.prompt)
    return " ".join([said, rollout.persona, *task.entities, *(f"{n:g}" for n in task.numbers)])


def _supported(value: str, known: str) -> bool:
    """Whether one unit of the value was given: a keyword, an id, a number."""
    have = set(units(known))
    return any(
        unit in have
        for unit in units(value)
        if len(unit) > 1 or not unit.isascii() or unit.isdigit()
    )
