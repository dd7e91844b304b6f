"""Alert rules in the reader's language: symptom, cause, remedy, and what a finding says.

The engine speaks English and knows no translations; it sends numbers beside its sentence. A
sentence here is filled with them. Where one is missing, the engine's own sentence is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from webapp.core.charts_curves import number


@dataclass(frozen=True)
class RuleWords:
    """`said` is filled from the numbers of a finding: a sentence, or several of which the first
    is taken that the numbers fill. `advice` stands below it.
    """

    title: Any
    symptom: Any
    cause: Any
    remedy: Any
    said: Any = ""
    advice: Any = ""


RULES: dict[str, RuleWords] = {
    "hacking": RuleWords(
        _("Reward hacking"),
        _("the reward rises, and two things that are independent of it speak against a gain: "
          "length, redundancy, sameness, KL, disagreement, held-out models, probes"),
        _("the reward pays for something else than better answers"),
        _("redundancy weight, lower bound of the ensemble, beta, counter-examples"),
        _("The reward rose by %(reward_rise)s, and %(doubts)s things that are independent of it "
          "speak against a real gain; the pictures show them."),
        _("Read the answers, mine phrases, retrain the reward model with them as bad examples."),
    ),
    "length_spike": RuleWords(
        _("Jump in length"),
        _("answers jump in length"),
        _("the policy found that length pays"),
        _("redundancy weight, lower learning rate"),
        _("Answers jumped from %(before)s to %(after)s tokens."),
    ),
    "length_collapse": RuleWords(
        _("Answers shrink"),
        _("answers shrink to stubs"),
        _("the reward model has no bad short answers"),
        _("truncated answers in its data, lower learning rate"),
        _("Answers became %(fall)s %% shorter than at the start."),
        _("Read the answers: short may be right, a stub is not. Probe the reward model with "
          "stubs."),
    ),
    "collapse": RuleWords(
        _("Collapse"),
        _("the reference reward falls below its start"),
        _("steps too large, noisy reward"),
        _("mean of several reward models, half the learning rate, more beta, clipping"),
        (_("The reference reward fell to %(now)s; it started at %(start)s and was %(best)s at "
           "best."),
         _("The policy says anything to everything, or to everything the same: entropy or the "
           "share of answers that differ went from %(start)s to %(now)s, at a KL of %(kl)s.")),
        _("Continue from the checkpoint with the best reference reward."),
    ),
    "kl_band": RuleWords(
        _("KL out of its band"),
        _("KL leaves the band of its first steps"),
        _("the policy leaves the reference"),
        _("more beta, lower learning rate"),
        _("KL is %(kl)s nats per token; the first steps of this run suggest at most %(band)s."),
        _("A fixed healthy range does not exist: it depends on model, length and learning rate."),
    ),
    "over_exploration": RuleWords(
        _("Over-exploration"),
        _("entropy rises and success falls"),
        _("the temperature is too high"),
        _("temperature 0.9"),
        _("Entropy rose while success fell by %(fall)s, at temperature %(temperature)s."),
    ),
    "style_collapse": RuleWords(
        _("One style only"),
        _("no entropy, groups without spread"),
        _("the policy fell onto one style"),
        _("entropy bonus, earlier checkpoint"),
        _("Entropy is %(entropy)s and in %(zero_spread)s %% of the groups all answers are alike."),
        _("Start again from an earlier checkpoint: a policy without spread does not recover."),
    ),
    "clipped": RuleWords(
        _("Answers cut off"),
        _("most answers are cut off"),
        _("the limit is too short, or length pays"),
        _("longer answers allowed"),
        _("%(share)s %% of the answers are cut off at the limit."),
    ),
    "tool_decline": RuleWords(
        _("Fewer correct tool calls"),
        _("fewer correct tool calls"),
        _("the style reward outweighs the tool term"),
        _("tool term first"),
        _("Correct tool calls fell from %(start)s %% to %(now)s %%."),
        _("Give the tool term the largest weight at the start."),
    ),
    "wander": RuleWords(
        _("Wandering"),
        _("more steps without more success"),
        _("steps cost nothing"),
        _("efficiency score"),
        _("Episodes take %(ratio)s times as many steps as at the start, without more success."),
    ),
    "shortcut": RuleWords(
        _("Steps skipped"),
        _("far fewer steps without more success"),
        _("steps are skipped"),
        _("completeness score"),
        _("Episodes take %(ratio)s times as many steps as at the start, without more success."),
    ),
    "audited_fall": RuleWords(
        _("Held-out models see a fall"),
        _("held-out reward models see answers become worse"),
        _("over-optimisation of the reward"),
        _("lower bound of the ensemble, more beta, best checkpoint"),
        _("What gives no reward fell by %(fall)s while the reward did not."),
        _("Compare answers before and after; continue from the best checkpoint."),
    ),
    "auditor_gap": RuleWords(
        _("Gain that others do not see"),
        _("gain only in the models that give the reward"),
        _("over-optimisation of the reward"),
        _("lower bound of the ensemble, more beta"),
        _("The reward models see %(gap)s more than the one held out."),
    ),
    "spread": RuleWords(
        _("Reward models disagree"),
        _("reward models disagree more and more"),
        _("answers unlike their training data"),
        _("lower bound, new labels"),
        _("The reward models disagree by %(now)s; at the start it was %(start)s."),
        _("Label answers of the last steps and retrain the reward model with them."),
    ),
    "conflict": RuleWords(
        _("Parts in conflict"),
        _("quality and personalization oppose each other"),
        _("one branch learned the other's style"),
        _("normalise by branch"),
        _("Quality and personalization pull against each other (correlation %(correlation)s)."),
        _("Look for a style that one reward model takes for quality; add ties between styles."),
    ),
    "imbalance": RuleWords(
        _("Imbalance"),
        _("one part falls while the reward rises"),
        _("weights or spreads differ too much"),
        _("normalise by branch"),
        _("One part falls by %(fall)s while the reward rises."),
    ),
    "probe_fall": RuleWords(
        _("Good answers lose"),
        _("the policy stops to prefer answers that are known to be good"),
        _("it learned from a reward that does not know them"),
        _("more beta, lower learning rate, earlier checkpoint"),
        _("Good answers are the likelier ones in %(now)s %% of the probes (at best %(best)s %%), "
          "by %(margin)s nats a token (at the start %(start_margin)s)."),
        _("Read the answers to the probes' questions; continue from an earlier checkpoint."),
    ),
    "persona_lost": RuleWords(
        _("Persona lost"),
        _("what two people are told becomes alike"),
        _("the policy fell onto one style, or a quantisation cost it"),
        _("more weight for personalization, a gentler quantisation"),
        _("Two people are told %(now)s bits of difference; it was %(best)s."),
        _("After a quantisation: quantise less, or train LoRA over the frozen quantised model."),
    ),
    "gate_refused": RuleWords(
        _("The gate at the end did not start"),
        _("the gate that the run names could not ask it"),
        _("a judge that gave it reward, or weights that are gone"),
        _("another gate, or start it by hand"),
    ),
    "persona_churn": RuleWords(
        _("Personas change too often"),
        _("summaries change within a dialogue though nobody asked"),
        _("the persona is made anew at every turn"),
        _("a pause of some turns between two summaries"),
        _("Within dialogues the persona changes every %(turns)s turns unasked."),
        _("Make a summary anew only after some turns, or when it is asked for."),
    ),
    "zero_spread": RuleWords(
        _("Groups without spread"),
        _("groups without spread"),
        _("prompts too easy or reward too coarse"),
        _("entropy bonus, harder prompts"),
        _("In %(share)s %% of the groups all answers earn the same."),
        _("Use harder prompts, or a reward with more steps between good and bad."),
    ),
    "unscored": RuleWords(
        _("Answers without a score"),
        _("answers without a score"),
        _("judge or model fails"),
        _("repair; they never count as 0"),
        _("%(share)s %% of the answers could not be scored. They count for nothing, not for 0."),
        _("See whether the judge or the reward models answer."),
    ),
    "nonfinite": RuleWords(
        _("Not a number"),
        _("loss or gradient is no number"),
        _("overflow, too large steps"),
        _("checkpoint before it, half the learning rate"),
        "",
        _("Continue from the last checkpoint before it."),
    ),
    "no_gradient": RuleWords(
        _("No gradient"),
        _("gradient 0"),
        _("nothing to learn from"),
        _("reward, limit, learning rate"),
        _("The gradient has been 0 for 10 logged steps: the policy does not move."),
        _("All rewards alike, all answers cut off, or a learning rate of 0."),
    ),
    "slow_step": RuleWords(
        _("Slow steps"),
        _("steps become slow"),
        _("the machine is shared or swaps"),
        _("look at the machine"),
        _("Steps take %(now)s s, usual are %(usual)s s."),
        _("Something else uses the machine, or memory is swapped."),
    ),
    "hang": RuleWords(
        _("No sign of life"),
        _("no sign of life for many step times"),
        _("a dead-lock, a model server that does not answer"),
        _("read both logs; cancel and resume"),
        _("No sign of life for %(silence)s s; at most %(limit)s s were expected."),
        _("See the last lines of the trainer's and of the model server's log."),
    ),
    "disk": RuleWords(
        _("Disk nearly full"),
        _("less room than three checkpoints need"),
        _("checkpoints of many runs"),
        _("delete what retention proposes, keep fewer checkpoints"),
        _("%(free_gb)s GB are free; a checkpoint takes %(checkpoint_gb)s GB."),
    ),
}  # fmt: skip
PERCENT = {
    "share", "zero_spread", ("length_collapse", "fall"), ("tool_decline", "start"),
    ("tool_decline", "now"), ("probe_fall", "now"), ("probe_fall", "best"),
}  # fmt: skip


def words_of(rule: str) -> RuleWords:
    """The words of a rule; of one that is not known here, its name."""
    return RULES.get(rule) or RuleWords(rule, "", "", "")


def sentence(rule: str, evidence: Mapping[str, Any]) -> str:
    """What a finding says: in English as the engine said it, else from its numbers."""
    words = words_of(rule)
    said = str(evidence.get("message", ""))
    if not words.said or (said and (get_language() or "en").startswith("en")):
        return said
    numbers = evidence.get("numbers") or {}
    filled = {name: _shown(rule, name, value) for name, value in numbers.items()}
    for sentence in templates(words):
        if needed(sentence) <= set(filled):
            return str(sentence) % filled
    return said


def templates(words: RuleWords) -> tuple[Any, ...]:
    return words.said if isinstance(words.said, tuple) else (words.said,)


def needed(sentence: Any) -> set[str]:
    """The numbers that a sentence names."""
    return set(re.findall(r"%\((\w+)\)s", str(sentence)))


def advice(rule: str, evidence: Mapping[str, Any]) -> str:
    """What to do, besides the change that is proposed."""
    return str(words_of(rule).advice or evidence.get("advice", ""))


def _shown(rule: str, name: str, value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    if name in PERCENT or (rule, name) in PERCENT:
        return f"{100 * value:.0f}"
    return number(float(value))
