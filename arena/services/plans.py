"""The plan of a round, and everything that is checked of it whoever sends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from arena.enums import Axis, ExclusionRule, StopRule, TieModel
from arena.leakage import ScreeningRule, allowed_policies
from webapp.accounts.enums import VOTING_ROLES
from webapp.accounts.models import User
from webapp.catalog.enums import STRATUM_FEATURES
from webapp.catalog.models import Contestant
from webapp.core.errors import InvalidInput

Check = tuple[bool, str, str]  # what must hold, the field, what would be right

# The least and the greatest threshold of each rule; 0 switches a rule off.
EXCLUSION_RANGES = {
    ExclusionRule.TOO_FAST.value: (1, 600_000),  # milliseconds
    ExclusionRule.ONE_SIDED.value: (51, 100),  # percent; every rater has half on one side
    ExclusionRule.LATE.value: (1, 1),
    ExclusionRule.OWNER.value: (1, 1),
}


@dataclass(frozen=True)
class RoundPlan:
    """What an administrator chose. Ids are primary keys; empty `personas` or `prompts` mean all.

    `personas_n` and `prompts_n` sample that many (0: take all). Weights and `holdout_percent` are
    whole percentages. Without personas the contexts are bare prompts, and only quality is asked.
    """

    name: str
    contestants: Sequence[int]
    raters: Sequence[int]
    personas: Sequence[int] = ()
    prompts: Sequence[int] = ()
    with_personas: bool = True
    personas_n: int = 0
    prompts_n: int = 0
    axes: Sequence[str] = (Axis.QUALITY, Axis.PERSONALIZATION)
    weights: dict[str, int] = field(default_factory=lambda: {"quality": 50, "personalization": 50})
    tie_model: str = TieModel.DAVIDSON
    drop_both_bad: bool = False
    screening_policy: dict[str, str] = field(default_factory=dict)
    exclusions: dict[str, int] = field(default_factory=dict)
    planned_votes: int = 600
    votes_per_battle: int = 1
    stop_rule: str = StopRule.VOTES
    closes_at: datetime | None = None
    stratum_features: Sequence[str] = ()
    minimum_strata: int = 2
    minimum_per_stratum: int = 1
    holdout_percent: int = 0
    lease_minutes: int = 15
    anchor: int | None = None
    simulated: bool = False


def check_plan(plan: RoundPlan) -> None:
    """Refuse what could never be opened or rated, naming the field and what would be right."""
    for checks in (_who(plan), _what(plan), _how_much(plan), _rules(plan)):
        for fine, field_name, message in checks:
            if not fine:
                raise InvalidInput(message, field=field_name)


def _who(plan: RoundPlan) -> Iterator[Check]:
    name = plan.name.strip()
    yield bool(name), "name", _("Give the round a name.")
    yield len(name) <= 120 and "\x00" not in name, "name", _("At most 120 characters.")
    chosen = set(plan.contestants)
    yield len(chosen) >= 2, "contestants", _("Choose at least two contestants.")
    labels = Counter(map(str, Contestant.objects.filter(pk__in=chosen)))
    yield labels.total() == len(chosen), "contestants", _("A chosen contestant does not exist.")
    label, times = labels.most_common(1)[0]
    twice = _(
        "Two of the contestants read the same, “%(name)s”: results could not tell them apart."
    )
    yield times == 1, "contestants", twice % {"name": label}
    fine = plan.anchor is None or plan.anchor in chosen
    yield fine, "anchor", _("The anchor must be one of the contestants.")
    yield from _raters(plan)


def _raters(plan: RoundPlan) -> Iterator[Check]:
    chosen = set(plan.raters)
    yield bool(chosen), "raters", _("Choose at least one rater.")
    users = User.objects.filter(pk__in=chosen)
    yield users.count() == len(chosen), "raters", _("A chosen rater does not exist.")
    wrong = users.exclude(role__in=VOTING_ROLES, is_active=True)
    yield not wrong.exists(), "raters", _("Only seed users and annotators vote.")
    programs = users.filter(preferences__simulated=True)
    fine = plan.simulated or not programs.exists()
    told = _("Simulated raters vote only in rounds that are marked as simulated.")
    yield fine, "raters", told


def _what(plan: RoundPlan) -> Iterator[Check]:
    axes = list(plan.axes)
    yield bool(axes), "axes", _("Choose at least one axis.")
    yield _known(axes, Axis.values), "axes", _("There is no such axis.")
    fine = plan.with_personas or axes == [Axis.QUALITY]
    yield fine, "axes", _("Without personas only quality can be asked.")
    weights = [plan.weights.get(axis, 0) for axis in axes]
    fine = all(_between(weight, 0, 100) for weight in weights)
    yield fine, "weights", _("Each weight is a whole number between 0 and 100.")
    told = _("The weights of the chosen axes must add up to 100.")
    yield sum(weights) == 100, "weights", told
    fine = _known(plan.stratum_features, STRATUM_FEATURES)
    yield fine, "stratum_features", _("Strata are formed by the listed features only.")
    yield _between(plan.minimum_strata, 1, 50), "minimum_strata", _("Between 1 and 50.")
    yield plan.minimum_per_stratum >= 1, "minimum_per_stratum", _("At least 1.")
    yield plan.personas_n >= 0, "personas_n", _("At least 0.")
    yield plan.prompts_n >= 0, "prompts_n", _("At least 0.")
    told = _("Between 0 and 50 percent.")
    yield _between(plan.holdout_percent, 0, 50), "holdout_percent", told


def _how_much(plan: RoundPlan) -> Iterator[Check]:
    yield plan.planned_votes >= 1, "planned_votes", _("Plan at least one vote.")
    yield plan.planned_votes <= 1_000_000, "planned_votes", _("Plan at most a million votes.")
    raters = len(set(plan.raters))
    told = _("A battle gets at least one vote and at most one per rater (%(n)s).")
    yield 1 <= plan.votes_per_battle <= raters, "votes_per_battle", told % {"n": raters}
    yield plan.stop_rule in StopRule.values, "stop_rule", _("There is no such rule.")
    fine = plan.stop_rule != StopRule.DATE or plan.closes_at is not None
    yield fine, "closes_at", _("Give the date at which the round closes.")
    fine = plan.closes_at is None or plan.closes_at > timezone.now()
    yield fine, "closes_at", _("The closing date must lie in the future.")
    told = _("Between 1 and 240 minutes.")
    yield _between(plan.lease_minutes, 1, 240), "lease_minutes", told
    yield plan.tie_model in TieModel.values, "tie_model", _("There is no such model of ties.")


def _rules(plan: RoundPlan) -> Iterator[Check]:
    known = _known(plan.screening_policy, list(ScreeningRule))
    yield known, "screening_policy", _("There is no such screening rule.")
    for rule, policy in plan.screening_policy.items():
        fine = policy in allowed_policies(ScreeningRule(rule))
        yield fine, f"rule_{rule}", _("This rule cannot be treated so.")
    known = _known(plan.exclusions, EXCLUSION_RANGES)
    yield known, "exclusions", _("There is no such exclusion.")
    for name, value in plan.exclusions.items():
        low, high = EXCLUSION_RANGES[name]
        told = _("Between %(low)s and %(high)s, or 0 to switch the rule off.")
        fine = value == 0 or _between(value, low, high)
        yield fine, name, told % {"low": low, "high": high}


def _known(names: Collection[str], allowed: Collection[str]) -> bool:
    return set(names) <= set(allowed)


def _between(value: int, low: int, high: int) -> bool:
    return isinstance(value, int) and low <= value <= high
