"""What the API takes and gives. A ballot has no identity field; results exist unsealed only."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from arena.enums import Axis, RoundState, SkipReason, Tag, Variant, Verdict
from arena.selectors.leaderboard import AXES

WHOLE = 4 * 3600 * 1000  # milliseconds: the longest active time that a vote can claim


# --- rounds -----------------------------------------------------------------------------------


class RoundSerializer(serializers.Serializer[Any]):
    """A round without any result: state, dates, commitment, totals."""

    id = serializers.IntegerField()
    key = serializers.CharField(help_text="The round's name in receipts and bundles.")
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=RoundState.choices)
    simulated = serializers.BooleanField(help_text="True: no person gave its votes.")
    axes = serializers.ListField(child=serializers.ChoiceField(choices=Axis.choices))
    planned_votes = serializers.IntegerField()
    votes = serializers.IntegerField(help_text="Standing votes; a total, never per contestant.")
    commitment = serializers.CharField(allow_blank=True)
    merkle_root = serializers.CharField(allow_blank=True)
    vote_digest = serializers.CharField(allow_blank=True)
    opened_at = serializers.DateTimeField(allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)
    unsealed_at = serializers.DateTimeField(allow_null=True)
    cancelled_at = serializers.DateTimeField(allow_null=True)
    cancel_reason = serializers.CharField(allow_blank=True)


class TotalsSerializer(serializers.Serializer[Any]):
    voted = serializers.IntegerField()
    skipped = serializers.IntegerField()
    expired = serializers.IntegerField()
    raters = serializers.IntegerField()
    revisions = serializers.IntegerField()


class LinksSerializer(serializers.Serializer[Any]):
    protocol = serializers.URLField(allow_null=True)
    leaderboard = serializers.URLField(allow_null=True)
    bundle = serializers.URLField(allow_null=True)


class RoundDetailSerializer(RoundSerializer):
    totals = TotalsSerializer()
    links = LinksSerializer()


class ProtocolSerializer(serializers.Serializer[Any]):
    """What was fixed at opening; `protocol` is the text that the commitment covers, to the byte."""

    key = serializers.CharField()
    simulated = serializers.BooleanField()
    commitment = serializers.CharField()
    merkle_root = serializers.CharField()
    protocol_sha256 = serializers.CharField()
    protocol = serializers.CharField()


# --- results ----------------------------------------------------------------------------------


class BoardQuerySerializer(serializers.Serializer[Any]):
    axis = serializers.ChoiceField(choices=AXES, required=False, help_text="Default: overall.")
    stratum = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text="Default: all personas."
    )
    variant = serializers.ChoiceField(
        choices=Variant.values, required=False, help_text="Default: all votes."
    )


class RoundFactsSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    key = serializers.CharField()
    name = serializers.CharField()
    simulated = serializers.BooleanField()
    unsealed_at = serializers.DateTimeField()
    commitment = serializers.CharField()
    merkle_root = serializers.CharField()
    vote_digest = serializers.CharField()


class BoardRowSerializer(serializers.Serializer[Any]):
    """One contestant. Null: the votes cannot tell."""

    contestant_id = serializers.IntegerField()
    contestant = serializers.CharField()
    rank_lo = serializers.IntegerField(allow_null=True)
    rank_hi = serializers.IntegerField(allow_null=True)
    rating = serializers.FloatField(allow_null=True, help_text="Elo scale.")
    lo = serializers.FloatField(allow_null=True)
    hi = serializers.FloatField(allow_null=True)
    strength = serializers.FloatField(allow_null=True, help_text="Natural log odds, centred.")
    votes = serializers.IntegerField(help_text="Verdicts received.")
    tie_rate = serializers.FloatField(allow_null=True)
    both_bad_rate = serializers.FloatField(allow_null=True)
    first = serializers.BooleanField(help_text="Surely above all others.")


class SideSerializer(serializers.Serializer[Any]):
    """What standing on the left was worth."""

    log_odds = serializers.FloatField(allow_null=True)
    lo = serializers.FloatField(allow_null=True)
    hi = serializers.FloatField(allow_null=True)
    elo = serializers.FloatField(allow_null=True)
    left_share = serializers.FloatField(allow_null=True)
    notes = serializers.ListField(child=serializers.DictField())


class NoteSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    text = serializers.CharField()
    names = serializers.ListField(child=serializers.CharField())


class BoardSerializer(serializers.Serializer[Any]):
    axis = serializers.ChoiceField(choices=AXES)
    stratum = serializers.CharField(allow_blank=True)
    variant = serializers.ChoiceField(choices=Variant.values)
    simulated = serializers.BooleanField(help_text="True: no person gave these votes.")
    first = serializers.CharField(allow_null=True)
    votes = serializers.IntegerField()
    raters = serializers.IntegerField(allow_null=True)
    contexts = serializers.IntegerField(allow_null=True)
    spec = serializers.DictField()
    code_version = serializers.CharField()
    rows = BoardRowSerializer(many=True)
    win_fraction = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)),
        help_text="Points of the row against the column as a share of their battles.",
    )
    battles = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    side = SideSerializer(allow_null=True)
    nu = serializers.FloatField(allow_null=True)
    weights = serializers.DictField(child=serializers.FloatField(), allow_null=True)
    notes = NoteSerializer(many=True)
    flow = serializers.DictField(child=serializers.IntegerField())


class LeaderboardSerializer(serializers.Serializer[Any]):
    round = RoundFactsSerializer()
    axes = serializers.ListField(child=serializers.CharField())
    strata = serializers.ListField(child=serializers.CharField(allow_blank=True))
    board = BoardSerializer()


class HistoryQuerySerializer(serializers.Serializer[Any]):
    axis = serializers.ChoiceField(choices=AXES, required=False, help_text="Default: overall.")


class HistoryEntrySerializer(serializers.Serializer[Any]):
    """A round as it was rated, and on the scale that it shares with the rounds of its chain."""

    round_id = serializers.IntegerField()
    round_name = serializers.CharField()
    simulated = serializers.BooleanField()
    unsealed_at = serializers.DateTimeField()
    chain = serializers.IntegerField(help_text="Rounds compare only within a chain.")
    rank_lo = serializers.IntegerField(allow_null=True)
    rank_hi = serializers.IntegerField(allow_null=True)
    rating = serializers.FloatField(allow_null=True)
    lo = serializers.FloatField(allow_null=True)
    hi = serializers.FloatField(allow_null=True)
    joined_rating = serializers.FloatField(allow_null=True)
    joined_lo = serializers.FloatField(allow_null=True)
    joined_hi = serializers.FloatField(allow_null=True)
    votes = serializers.IntegerField()


class HistorySerializer(serializers.Serializer[Any]):
    contestant_id = serializers.IntegerField()
    contestant = serializers.CharField()
    axis = serializers.ChoiceField(choices=AXES)
    entries = HistoryEntrySerializer(many=True)


# --- voting -----------------------------------------------------------------------------------


class OpenRoundSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    simulated = serializers.BooleanField()
    commitment = serializers.CharField()
    done = serializers.IntegerField(help_text="Your standing votes.")
    target = serializers.IntegerField()


class MessageSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    content = serializers.CharField()


class BallotSerializer(serializers.Serializer[Any]):
    """A battle as a rater may see it. Nothing in it depends on who wrote what."""

    token = serializers.CharField()
    round = serializers.IntegerField()
    axes = serializers.ListField(child=serializers.ChoiceField(choices=Axis.choices))
    persona_summary = serializers.CharField(allow_blank=True)
    messages = MessageSerializer(many=True)
    left = serializers.CharField()
    right = serializers.CharField()
    expires_in = serializers.IntegerField(help_text="Seconds left of the lease.")


class VoteRequestSerializer(serializers.Serializer[Any]):
    """One verdict for each axis of the round."""

    token = serializers.CharField(max_length=64)
    verdicts = serializers.DictField(
        child=serializers.ChoiceField(choices=Verdict.choices), help_text="Axis to verdict."
    )
    tags = serializers.ListField(
        child=serializers.ChoiceField(choices=Tag.choices), required=False, max_length=20
    )
    comment = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    active_ms = serializers.IntegerField(required=False, min_value=0, max_value=WHOLE)

    def validate_verdicts(self, value: dict[str, str]) -> dict[str, str]:
        unknown = sorted(set(value) - set(Axis.values))
        if unknown:
            raise serializers.ValidationError(
                _("There is no axis “%(name)s”.") % {"name": unknown[0][:40]}
            )
        return value


class TokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(max_length=64)


class UndoSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(
        max_length=64, help_text="The token of the ballot whose vote is to be taken back."
    )


class SkipSerializer(TokenSerializer):
    reason = serializers.ChoiceField(choices=SkipReason.choices)


class LeaseSerializer(serializers.Serializer[Any]):
    expires_in = serializers.IntegerField()


class ReceiptRecordSerializer(serializers.Serializer[Any]):
    """What the receipt is the SHA-256 of, as canonical JSON."""

    round = serializers.CharField()
    battle = serializers.CharField()
    rater = serializers.CharField(help_text="Your pseudonym in this round.")
    revision = serializers.IntegerField()
    verdicts = serializers.DictField(child=serializers.CharField())
    left_sha256 = serializers.CharField(help_text="SHA-256 of the left text as displayed.")
    right_sha256 = serializers.CharField()
    nonce = serializers.CharField()


class ReceiptSerializer(serializers.Serializer[Any]):
    receipt = serializers.CharField()
    commitment = serializers.CharField()
    at = serializers.DateTimeField()
    record = ReceiptRecordSerializer()
