"""Sealed rounds, battles, votes and ratings. Triggers in the migrations freeze what is sealed."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from arena.enums import (
    AnswerJobState,
    AssignmentState,
    RoundState,
    SkipReason,
    StopRule,
    TieModel,
    Variant,
    Verdict,
    WantedState,
)
from webapp.catalog.models import Answer, Contestant, PersonaVersion, Prompt, public_id


class Round(models.Model):
    """A pre-registered, sealed set of battles with a life cycle.

    `seed` and `salt` are secret until unsealing; `protocol` is the canonical JSON text that the
    commitment covers. Weights and percentages are whole numbers, because floats have no canonical
    form.
    """

    name = models.CharField(_("name"), max_length=120)
    state = models.CharField(max_length=16, choices=RoundState.choices, default=RoundState.DRAFT)
    simulated = models.BooleanField(_("simulated votes"), default=False)
    axes = models.JSONField(default=list)
    weights = models.JSONField(default=dict)  # {"quality": 60, "personalization": 40}
    tie_model = models.CharField(max_length=16, choices=TieModel.choices, default=TieModel.DAVIDSON)
    drop_both_bad = models.BooleanField(default=False)
    screening_policy = models.JSONField(default=dict)  # {rule: "mask" | "exclude" | "keep"}
    exclusions = models.JSONField(default=dict)  # {rule: threshold}
    planned_votes = models.PositiveIntegerField(default=600)
    votes_per_battle = models.PositiveIntegerField(default=1)
    stop_rule = models.CharField(max_length=8, choices=StopRule.choices, default=StopRule.VOTES)
    closes_at = models.DateTimeField(null=True, blank=True)
    stratum_features = models.JSONField(default=list)
    minimum_strata = models.PositiveIntegerField(default=2)
    minimum_per_stratum = models.PositiveIntegerField(default=1)
    holdout_percent = models.PositiveIntegerField(default=0)
    lease_minutes = models.PositiveIntegerField(default=15)
    anchor = models.ForeignKey(Contestant, null=True, blank=True, on_delete=models.PROTECT)

    seed = models.CharField(max_length=64)
    salt = models.CharField(max_length=64, blank=True)
    protocol = models.TextField(blank=True)
    merkle_root = models.CharField(max_length=64, blank=True)
    commitment = models.CharField(max_length=64, blank=True)
    vote_digest = models.CharField(max_length=64, blank=True)

    screening_done = models.PositiveIntegerField(default=0)
    screening_total = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="rounds_composed"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    screened_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    unsealed_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)
    cancel_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                name="round_committed_when_sealed",
                condition=~Q(state__in=["open", "closed", "unsealed"])
                | (~Q(commitment="") & ~Q(protocol="") & ~Q(salt="")),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def holder(self) -> str:
        """The name under which the round holds its answers in `catalog.Seal`."""
        return f"round:{self.pk}"


class RoundContestant(models.Model):
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="round_contestants")
    contestant = models.ForeignKey(Contestant, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["round", "contestant"], name="round_contestant_once")
        ]


class RoundRater(models.Model):
    """A rater of a round; `axes` is the order in which the axes are asked, fixed per rater."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="round_raters")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    pseudonym = models.CharField(max_length=32, blank=True)
    axes = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["round", "user"], name="round_rater_once")]


class Context(models.Model):
    """Persona version + prompt, answered by all contestants of the round."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="contexts")
    persona_version = models.ForeignKey(
        PersonaVersion, null=True, on_delete=models.PROTECT, related_name="+"
    )
    prompt = models.ForeignKey(Prompt, on_delete=models.PROTECT, related_name="+")
    stratum = models.CharField(max_length=200, blank=True)
    holdout = models.BooleanField(default=False)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["round", "persona_version", "prompt"],
                condition=Q(persona_version__isnull=False),
                name="context_once",
            ),
            models.UniqueConstraint(
                fields=["round", "prompt"],
                condition=Q(persona_version__isnull=True),
                name="context_without_persona_once",
            ),
        ]


class AnswerJob(models.Model):
    """Making the answers of a round: what was asked, how far it is. One per round.

    `failure_limit` is the percentage of contexts that a contestant may leave without an answer.
    `pauses` says until when a lane is left alone (its name's hash → ISO time); `pace` is the mean
    time from one finished answer to the next in seconds, newer ones weighing more.
    """

    round = models.OneToOneField(Round, on_delete=models.CASCADE, related_name="answer_job")
    state = models.CharField(
        max_length=16, choices=AnswerJobState.choices, default=AnswerJobState.RUNNING
    )
    failure_limit = models.PositiveIntegerField(default=5)
    total = models.PositiveIntegerField(default=0)
    made = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    pauses = models.JSONField(default=dict)
    pace = models.FloatField(null=True)
    resume_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)


class WantedAnswer(models.Model):
    """One answer that a job is to make: a contestant in a context. Made, failed, or waiting.

    `draw` is the one to be written; `code` names the reason of a failure, or of the last try.
    """

    job = models.ForeignKey(AnswerJob, on_delete=models.CASCADE, related_name="wanted")
    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="wanted")
    contestant = models.ForeignKey(Contestant, on_delete=models.PROTECT, related_name="+")
    draw = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=8, choices=WantedState.choices, default=WantedState.WAITING)
    code = models.CharField(max_length=32, blank=True)
    http_status = models.PositiveIntegerField(null=True)
    tries = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True)
    answer = models.ForeignKey(Answer, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["context", "contestant"], name="wanted_once"),
            models.CheckConstraint(
                name="wanted_made_has_answer",
                condition=Q(state="made", answer__isnull=False)
                | (~Q(state="made") & Q(answer__isnull=True)),
            ),
            models.CheckConstraint(
                name="wanted_failed_has_reason", condition=~Q(state="failed") | ~Q(code="")
            ),
        ]
        indexes = [models.Index(fields=["job", "state", "contestant"], name="wanted_left")]


class Entry(models.Model):
    """A contestant's answer in a context as it is shown: masked at `spans`, or screened out.

    `spans` is [[start, end], …] in code points of the answer's text; `shown_sha256` is the hash
    of the text that raters see; `excluded_by` names the screening rule that took it out.
    """

    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="entries")
    contestant = models.ForeignKey(Contestant, on_delete=models.PROTECT, related_name="+")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="entries")
    spans = models.JSONField(default=list)
    shown_sha256 = models.CharField(max_length=64, blank=True)
    excluded_by = models.CharField(max_length=32, blank=True)
    screened = models.BooleanField(default=False)
    public_id = models.CharField(max_length=32, unique=True, default=public_id)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["context", "contestant"], name="entry_once")]


class ScreeningHit(models.Model):
    """What screening found in an entry: the rule and where."""

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="hits")
    rule = models.CharField(max_length=32)
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()


class Slot(models.Model):
    """The queue: one pair in one context, `target` votes wanted, `live` leased or voted.

    `order` is a permuted-block position, so that every prefix of the queue is balanced.
    `x_left` of the live ones have x on the left.
    """

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="slots")
    context = models.ForeignKey(Context, on_delete=models.PROTECT, related_name="+")
    x = models.ForeignKey(Entry, on_delete=models.PROTECT, related_name="+")
    y = models.ForeignKey(Entry, on_delete=models.PROTECT, related_name="+")
    order = models.PositiveIntegerField()
    target = models.PositiveIntegerField()
    live = models.PositiveIntegerField(default=0)
    x_left = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["context", "x", "y"], name="slot_once"),
            models.CheckConstraint(name="slot_two_sides", condition=~Q(x=F("y"))),
        ]
        indexes = [
            models.Index(
                fields=["round", "order"], name="slot_open", condition=Q(live__lt=F("target"))
            )
        ]


class Battle(models.Model):
    """One of the two mirrored battles of a slot. Frozen; its leaf is under the round's root."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="battles")
    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="battles")
    left_is_x = models.BooleanField()
    public_id = models.CharField(max_length=32, unique=True, default=public_id)
    leaf_index = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slot", "left_is_x"], name="battle_mirrored_once"),
            models.UniqueConstraint(fields=["round", "leaf_index"], name="battle_leaf_once"),
        ]


class Assignment(models.Model):
    """A time-limited right to vote on one battle; the token makes sending twice harmless."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="assignments")
    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="assignments")
    battle = models.ForeignKey(Battle, on_delete=models.PROTECT, related_name="assignments")
    rater = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="assignments"
    )
    state = models.CharField(
        max_length=16, choices=AssignmentState.choices, default=AssignmentState.RESERVED
    )
    token = models.CharField(max_length=32, unique=True, default=public_id)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    shown_at = models.DateTimeField(null=True)
    skip_reason = models.CharField(max_length=16, choices=SkipReason.choices, blank=True)
    draft = models.JSONField(default=dict)
    head = models.ForeignKey("Vote", null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["battle", "rater"], name="assignment_once"),
            models.UniqueConstraint(fields=["slot", "rater"], name="pair_once_per_rater"),
        ]
        indexes = [
            models.Index(fields=["round", "rater", "state"], name="assignment_of_rater"),
            models.Index(
                fields=["expires_at"],
                name="assignment_live",
                condition=Q(state__in=["reserved", "shown"]),
            ),
        ]


class Vote(models.Model):
    """One revision of a rater's choice; append-only. An undo is a revision without verdicts.

    Verdicts are as the rater saw them (left, right); only the server resolves the sides.
    """

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="votes")
    battle = models.ForeignKey(Battle, on_delete=models.PROTECT, related_name="votes")
    rater = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="votes"
    )
    revision = models.PositiveIntegerField()
    quality = models.CharField(max_length=8, choices=Verdict.choices, blank=True)
    personalization = models.CharField(max_length=8, choices=Verdict.choices, blank=True)
    tags = models.JSONField(default=list)
    comment = models.TextField(blank=True)
    active_ms = models.PositiveIntegerField(default=0)
    owner = models.BooleanField(default=False)
    late = models.BooleanField(default=False)
    nonce = models.CharField(max_length=64)
    receipt = models.CharField(max_length=64, unique=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["battle", "rater", "revision"], name="vote_revision")
        ]

    @property
    def is_undo(self) -> bool:
        return not self.quality and not self.personalization


class UnsealApproval(models.Model):
    """One administrator's consent to unseal, with a reason. Append-only."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="approvals")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["round", "user"], name="approval_once")]


class RatingSnapshot(models.Model):
    """Ratings of a round computed once, with everything needed to recompute them. Append-only."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="snapshots")
    variant = models.CharField(max_length=16, choices=Variant.choices)
    spec = models.JSONField()
    vote_digest = models.CharField(max_length=64)
    code_version = models.CharField(max_length=32)
    details = models.JSONField()  # per axis and stratum: matrices, side effect, notes, tie rates
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["round", "variant", "vote_digest", "code_version"], name="snapshot_once"
            )
        ]


class Rating(models.Model):
    """One contestant's rating on one axis and stratum ("" = all). Append-only.

    `rating`, `lo`, `hi` are Elo points, None where they cannot be estimated; `strength` is natural
    log odds, centred. `owner_only` rates the personalization votes of personas' owners apart.
    """

    snapshot = models.ForeignKey(RatingSnapshot, on_delete=models.PROTECT, related_name="ratings")
    contestant = models.ForeignKey(Contestant, on_delete=models.PROTECT, related_name="ratings")
    axis = models.CharField(max_length=24)
    stratum = models.CharField(max_length=200, blank=True)
    strength = models.FloatField(null=True)
    rating = models.FloatField(null=True)
    lo = models.FloatField(null=True)
    hi = models.FloatField(null=True)
    rank_lo = models.PositiveIntegerField(null=True)
    rank_hi = models.PositiveIntegerField(null=True)
    votes = models.PositiveIntegerField(default=0)
    tie_rate = models.FloatField(null=True)
    both_bad_rate = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["snapshot", "contestant", "axis", "stratum"], name="rating_once"
            )
        ]
