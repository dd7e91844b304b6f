"""The composer: what an administrator chooses becomes a `RoundPlan`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from arena.enums import Axis, StopRule, TieModel
from arena.leakage import DEFAULT_POLICY, RulePolicy, ScreeningRule, allowed_policies
from arena.models import Round
from arena.sampling import PRESETS
from arena.services.rounds import RoundPlan
from webapp.accounts.enums import VOTING_ROLES
from webapp.accounts.models import User
from webapp.catalog.enums import STRATUM_FEATURES
from webapp.catalog.models import Contestant, Prompt

RULE_LABELS = {
    ScreeningRule.CONTESTANT: _("names a contestant of this round"),
    ScreeningRule.MODEL: _("names a known model"),
    ScreeningRule.VENDOR: _("names a maker of models"),
    ScreeningRule.SELF_REFERENCE: _("says who the writer is"),
    ScreeningRule.ERROR_TEXT: _("an error message instead of an answer"),
    ScreeningRule.EMPTY: _("empty"),
    ScreeningRule.UNFINISHED: _("ends in the middle"),
    ScreeningRule.DUPLICATE: _("same text by two contestants"),
}
POLICY_LABELS = {
    RulePolicy.MASK: _("mask the words"),
    RulePolicy.EXCLUDE: _("leave the answer out"),
    RulePolicy.KEEP: _("show as it is"),
}
PERSONA_MODES = [
    ("all", _("all personas")),
    ("sample", _("a sample, drawn by stratum")),
    ("none", _("no personas: bare questions, quality only")),
]


class ComposeForm(forms.Form):
    """All choices on one page; every field is checked again by the service."""

    name = forms.CharField(label=_("Name"), max_length=120)
    contestants = forms.ModelMultipleChoiceField(
        label=_("Contestants"),
        queryset=Contestant.objects.none(),
        widget=forms.CheckboxSelectMultiple,
    )
    raters = forms.ModelMultipleChoiceField(
        label=_("Raters"), queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple
    )
    persona_mode = forms.ChoiceField(label=_("Personas"), choices=PERSONA_MODES, initial="all")
    personas_n = forms.IntegerField(
        label=_("How many personas"),
        min_value=0,
        initial=0,
        required=False,
        help_text=_("For a sample. 0 takes all."),
    )
    prompts_n = forms.IntegerField(
        label=_("How many prompts"),
        min_value=0,
        initial=0,
        required=False,
        help_text=_("Drawn by category. 0 takes all that have answers."),
    )
    categories = forms.MultipleChoiceField(
        label=_("Only these categories"), required=False, widget=forms.CheckboxSelectMultiple
    )
    languages = forms.MultipleChoiceField(
        label=_("Only these languages"), required=False, widget=forms.CheckboxSelectMultiple
    )
    stratum_features = forms.MultipleChoiceField(
        label=_("Strata are formed by"),
        choices=list(STRATUM_FEATURES.items()),
        required=False,
        initial=["expertise"],
        widget=forms.CheckboxSelectMultiple,
    )
    minimum_strata = forms.IntegerField(
        label=_("At least this many strata"),
        min_value=1,
        max_value=50,
        initial=2,
        help_text=_("One kind of user proves nothing."),
    )
    minimum_per_stratum = forms.IntegerField(
        label=_("At least this many contexts per stratum"), min_value=1, initial=1
    )
    holdout_percent = forms.IntegerField(
        label=_("Holdout, percent"),
        min_value=0,
        max_value=50,
        initial=0,
        help_text=_("Holdout personas and prompts never become training data."),
    )
    axes = forms.MultipleChoiceField(
        label=_("Axes"),
        choices=Axis.choices,
        initial=Axis.values,
        widget=forms.CheckboxSelectMultiple,
    )
    weight_quality = forms.IntegerField(
        label=_("Weight of quality, percent"), min_value=0, max_value=100, initial=50
    )
    weight_personalization = forms.IntegerField(
        label=_("Weight of personalization, percent"), min_value=0, max_value=100, initial=50
    )
    planned_votes = forms.IntegerField(
        label=_("Planned votes"), min_value=1, max_value=1_000_000, initial=600
    )
    votes_per_battle = forms.IntegerField(label=_("Votes per battle"), min_value=1, initial=1)
    stop_rule = forms.ChoiceField(label=_("Closes"), choices=StopRule.choices)
    closes_at = forms.DateTimeField(
        label=_("Closing date"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )
    lease_minutes = forms.IntegerField(
        label=_("Lease of a battle, minutes"), min_value=1, max_value=240, initial=15
    )
    tie_model = forms.ChoiceField(
        label=_("Tie model"), choices=TieModel.choices, initial=TieModel.DAVIDSON
    )
    drop_both_bad = forms.BooleanField(
        label=_("Leave “both bad” out of the fit (else it counts as a tie)"), required=False
    )
    anchor = forms.ModelChoiceField(
        label=_("Anchor"),
        queryset=Contestant.objects.none(),
        required=False,
        help_text=_("This contestant gets 1,000 points; without one the mean does."),
    )
    too_fast = forms.IntegerField(
        label=_("Exclude votes with active time below (milliseconds)"),
        min_value=0,
        max_value=600_000,
        initial=0,
        required=False,
    )
    one_sided = forms.IntegerField(
        label=_("Exclude raters with more than this percentage on one side"),
        min_value=0,
        max_value=100,
        initial=0,
        required=False,
        help_text=_("Looked at from 20 decided votes on. 0 switches the rule off."),
    )
    late = forms.BooleanField(label=_("Exclude votes sent after the lease"), required=False)
    owner = forms.BooleanField(label=_("Exclude votes by a persona's owner"), required=False)
    simulated = forms.BooleanField(
        label=_("Simulated: a program votes; marked so everywhere"), required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choice("contestants").queryset = Contestant.objects.all()
        self._choice("anchor").queryset = Contestant.objects.all()
        self._choice("raters").queryset = User.objects.filter(
            role__in=VOTING_ROLES, is_active=True
        ).order_by("preferences__simulated", "role", "username")
        self._choice("raters").label_from_instance = _rater_label
        for field, column in (("categories", "category"), ("languages", "language")):
            values = Prompt.objects.exclude(**{column: ""}).order_by(column)
            names = values.values_list(column, flat=True).distinct()
            self._values(field).choices = [(name, name) for name in names]
        for rule in ScreeningRule:
            self.fields[f"rule_{rule}"] = forms.ChoiceField(
                label=RULE_LABELS[rule],
                choices=[(policy, POLICY_LABELS[policy]) for policy in allowed_policies(rule)],
                initial=DEFAULT_POLICY[rule],
            )

    def _choice(self, name: str) -> Any:
        return self.fields[name]

    def _values(self, name: str) -> Any:
        return self.fields[name]

    def groups(self) -> Iterator[tuple[Any, list[forms.BoundField]]]:
        """Fields in the order of the page, with their headings."""
        for heading, names in GROUPS:
            yield heading, [self[name] for name in names]
        yield _("Screening"), [self[f"rule_{rule}"] for rule in ScreeningRule]

    def plan(self) -> RoundPlan:
        """The chosen plan; call after `is_valid`."""
        data = self.cleaned_data
        mode = data["persona_mode"]
        return RoundPlan(
            name=data["name"],
            contestants=[row.pk for row in data["contestants"]],
            raters=[row.pk for row in data["raters"]],
            prompts=self._prompts(),
            with_personas=mode != "none",
            personas_n=(data["personas_n"] or 0) if mode == "sample" else 0,
            prompts_n=data["prompts_n"] or 0,
            axes=data["axes"],
            weights=self._weights(),
            tie_model=data["tie_model"],
            drop_both_bad=data["drop_both_bad"],
            screening_policy={str(rule): data[f"rule_{rule}"] for rule in ScreeningRule},
            exclusions=self._exclusions(),
            planned_votes=data["planned_votes"],
            votes_per_battle=data["votes_per_battle"],
            stop_rule=data["stop_rule"],
            closes_at=data["closes_at"],
            stratum_features=data["stratum_features"],
            minimum_strata=data["minimum_strata"],
            minimum_per_stratum=data["minimum_per_stratum"],
            holdout_percent=data["holdout_percent"],
            lease_minutes=data["lease_minutes"],
            anchor=data["anchor"].pk if data["anchor"] else None,
            simulated=data["simulated"],
        )

    def _weights(self) -> dict[str, int]:
        axes = self.cleaned_data["axes"]
        if len(axes) == 1:
            return {axes[0]: 100}
        return {axis: self.cleaned_data[f"weight_{axis}"] for axis in axes}

    def _exclusions(self) -> dict[str, int]:
        rules = {
            name: int(self.cleaned_data[name] or 0)
            for name in ("too_fast", "one_sided", "late", "owner")
        }
        return {name: value for name, value in rules.items() if value}

    def _prompts(self) -> list[int]:
        rows = Prompt.objects.all()
        if not (self.cleaned_data["categories"] or self.cleaned_data["languages"]):
            return []
        if self.cleaned_data["categories"]:
            rows = rows.filter(category__in=self.cleaned_data["categories"])
        if self.cleaned_data["languages"]:
            rows = rows.filter(language__in=self.cleaned_data["languages"])
        return list(rows.values_list("pk", flat=True))


def _rater_label(user: User) -> str:
    if user.preferences.get("simulated"):
        return gettext("%(name)s (simulated)") % {"name": user.username}
    return f"{user.username} · {user.get_role_display()}"


GROUPS: list[tuple[Any, list[str]]] = [
    (_("What is compared"), ["name", "contestants", "anchor"]),
    (_("Who votes"), ["raters", "lease_minutes", "simulated"]),
    (
        _("Contexts"),
        [
            "persona_mode", "personas_n", "prompts_n", "categories", "languages",
            "stratum_features", "minimum_strata", "minimum_per_stratum", "holdout_percent",
        ],
    ),
    (_("What is asked"), ["axes", "weight_quality", "weight_personalization"]),
    (
        _("How much, and when it ends"),
        ["planned_votes", "votes_per_battle", "stop_rule", "closes_at"],
    ),
    (_("Rating"), ["tie_model", "drop_both_bad"]),
    (_("Exclusions, fixed before the first vote"), ["too_fast", "one_sided", "late", "owner"]),
]  # fmt: skip


def initial_from_preset(name: str) -> dict[str, Any]:
    """Sizes of a preset as initial values."""
    preset = PRESETS.get(name)
    if preset is None:
        return {}
    return {
        "persona_mode": "sample",
        "personas_n": preset.personas,
        "prompts_n": preset.prompts,
        "planned_votes": preset.votes,
    }


def initial_from_round(round_: Round) -> dict[str, Any]:
    """A round's choices as initial values, to edit or copy it."""
    plain = (
        "name", "axes", "planned_votes", "votes_per_battle", "stop_rule", "closes_at",
        "lease_minutes", "tie_model", "drop_both_bad", "stratum_features", "minimum_strata",
        "minimum_per_stratum", "holdout_percent", "simulated",
    )  # fmt: skip
    values: dict[str, Any] = {name: getattr(round_, name) for name in plain}
    values |= {f"weight_{axis}": round_.weights.get(axis, 50) for axis in Axis.values}
    values |= {f"rule_{rule}": policy for rule, policy in round_.screening_policy.items()}
    values |= round_.exclusions
    contexts = round_.contexts
    personas = contexts.values("persona_version__persona").exclude(persona_version=None).distinct()
    values |= {
        "contestants": list(round_.round_contestants.values_list("contestant", flat=True)),
        "raters": list(round_.round_raters.values_list("user", flat=True)),
        "anchor": round_.anchor_id,
        "persona_mode": "sample" if personas.count() else "none",
        "personas_n": personas.count(),
        "prompts_n": contexts.values("prompt").distinct().count(),
    }
    return values


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"), max_length=300, widget=forms.Textarea(attrs={"rows": 2})
    )
