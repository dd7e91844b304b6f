"""The catalogue: every rule with symptom, cause and remedy, and the function that asks them all."""

from __future__ import annotations

from collections.abc import Iterable

from training.engine.config.schema import RunConfig
from training.engine.monitor import machine_rules as machine
from training.engine.monitor import persona_rules as persona
from training.engine.monitor import policy_rules as policy
from training.engine.monitor import reward_rules as reward
from training.engine.monitor.findings import Finding, Rule
from training.engine.monitor.hacking import hacking
from training.engine.monitor.history import History

RULES: tuple[Rule, ...] = (
    Rule(
        "hacking",
        "the reward rises; length, sameness, drift or held-out models speak against a gain",
        "the reward pays for something else than good answers, often for words",
        "redundancy weight or lower bound of the ensemble, beta, counter-examples for the model",
        hacking,
    ),
    Rule(
        "length_spike",
        "answers jump in length",
        "the policy found that length pays",
        "redundancy weight, lower learning rate",
        policy.length_spike,
    ),
    Rule(
        "length_collapse",
        "answers shrink to stubs",
        "the reward model has no bad short answers",
        "truncated answers in its data, lower learning rate",
        policy.length_collapse,
    ),
    Rule(
        "collapse",
        "the reference reward falls below its start, or all answers become alike",
        "steps too large, noisy reward",
        "mean of several reward models, half the learning rate, more beta, clipping",
        policy.collapse,
    ),
    Rule(
        "kl_band",
        "KL leaves the band of its first steps",
        "the policy leaves the reference",
        "more beta, lower learning rate",
        policy.kl_band,
    ),
    Rule(
        "over_exploration",
        "entropy rises and success falls",
        "the temperature is too high",
        "temperature 0.9",
        policy.over_exploration,
    ),
    Rule(
        "style_collapse",
        "no entropy, groups without spread",
        "the policy fell onto one style",
        "entropy bonus, earlier checkpoint",
        policy.style_collapse,
    ),
    Rule(
        "clipped",
        "most answers are cut off",
        "the limit is too short, or length pays",
        "longer completions",
        policy.clipped,
    ),
    Rule(
        "tool_decline",
        "fewer correct tool calls",
        "the style reward outweighs the tool term",
        "tool term first",
        policy.tool_decline,
    ),
    Rule(
        "wander",
        "more steps without more success",
        "steps cost nothing",
        "efficiency score",
        policy.wander,
    ),
    Rule(
        "shortcut",
        "far fewer steps without more success",
        "steps are skipped",
        "completeness score",
        policy.shortcut,
    ),
    Rule(
        "audited_fall",
        "held-out reward models see answers become worse",
        "over-optimisation of the reward",
        "lower bound of the ensemble, more beta, best checkpoint",
        reward.audited_fall,
    ),
    Rule(
        "probe_fall",
        "the policy stops to prefer answers that are known to be good",
        "it learned from a reward that does not know them",
        "more beta, lower learning rate, earlier checkpoint",
        reward.probe_fall,
    ),
    Rule(
        "persona_lost",
        "two people are told more and more the same",
        "quantisation mapped users onto each other, or one style won",
        "quantise less; LoRA over the frozen quantised model; a lower α late in the run",
        persona.persona_lost,
    ),
    Rule(
        "persona_churn",
        "within a dialogue the style changes from turn to turn",
        "the persona summary is made anew too often",
        "a summary stands for 10 turns or until somebody asks",
        persona.persona_churn,
    ),
    Rule(
        "auditor_gap",
        "gain only in the models that give the reward",
        "over-optimisation of the reward",
        "lower bound of the ensemble, more beta",
        reward.auditor_gap,
    ),
    Rule(
        "spread",
        "reward models disagree more and more",
        "answers unlike their training data",
        "lower bound, new labels",
        reward.spread,
    ),
    Rule(
        "conflict",
        "quality and personalization oppose each other",
        "one branch learned the other's style",
        "normalise by branch",
        reward.conflict,
    ),
    Rule(
        "imbalance",
        "one part falls while the reward rises",
        "weights or spreads differ too much",
        "normalise by branch",
        reward.imbalance,
    ),
    Rule(
        "zero_spread",
        "groups without spread",
        "prompts too easy or reward too coarse",
        "entropy bonus, harder prompts",
        reward.zero_spread,
    ),
    Rule(
        "unscored",
        "answers without a score",
        "judge or model fails",
        "repair; they never count as 0",
        reward.unscored,
    ),
    Rule(
        "nonfinite",
        "loss or gradient is no number",
        "overflow, too large steps",
        "checkpoint before it, half the learning rate",
        machine.nonfinite,
    ),
    Rule(
        "no_gradient",
        "gradient 0",
        "nothing to learn from",
        "reward, limit, learning rate",
        machine.no_gradient,
    ),
    Rule(
        "slow_step",
        "steps become slow",
        "the machine is shared or swaps",
        "look at the machine",
        machine.slow_step,
    ),
)
EXTERNAL = ("hang", "disk")  # need the clock and the disk: machine_rules.hang, machine_rules.disk


def look(history: History, config: RunConfig, seen: Iterable[str] = ()) -> list[Finding]:
    """What the rules find now, without those that spoke already."""
    quiet = set(seen)
    found = (rule.look(history, config) for rule in RULES if rule.name not in quiet)
    return [finding for finding in found if finding]


def replay(history: History, config: RunConfig) -> list[Finding]:
    """Every rule's first finding over a whole run, as it would have spoken live."""
    found: list[Finding] = []
    for step in sorted(history.rows):
        found += look(history.until(step), config, {f.rule for f in found})
    return found
