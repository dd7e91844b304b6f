"""What managers send and get: projects, people, items, agreement."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from annotation.api.work_serializers import TurnSerializer
from annotation.enums import (
    Axis,
    DecisionSource,
    ItemFlag,
    ItemKind,
    ItemState,
    MemberState,
    ProjectState,
    Strength,
    Verdict,
)
from annotation.services.project_settings import OVERLAP_LIMIT, RANGES
from annotation.services.projects import GUIDELINE_LIMIT


def number(name: str, **more: Any) -> serializers.IntegerField:
    """A setting that is a number, within the range that the service allows."""
    low, high = RANGES[name]
    return serializers.IntegerField(min_value=low, max_value=high, required=False, **more)


class SettingsSerializer(serializers.Serializer[Any]):
    """The settings of a project; whatever is left out stays, or has its default."""

    name = serializers.CharField(max_length=120, required=False)
    axes = serializers.ListField(
        child=serializers.ChoiceField(choices=Axis.choices), required=False
    )
    ask_strength = serializers.BooleanField(required=False)
    allow_tie = serializers.BooleanField(required=False)
    allow_both_bad = serializers.BooleanField(required=False)
    tags = serializers.ListField(child=serializers.CharField(max_length=64), required=False)
    base_overlap = serializers.IntegerField(min_value=1, max_value=OVERLAP_LIMIT, required=False)
    max_overlap = serializers.IntegerField(min_value=1, max_value=OVERLAP_LIMIT, required=False)
    gold_percent = number("gold_percent")
    gold_floor = number("gold_floor")
    gold_minimum = number("gold_minimum")
    repeat_percent = number("repeat_percent")
    onboarding_size = number("onboarding_size")
    lease_minutes = number("lease_minutes", allow_null=True)
    stratum_features = serializers.ListField(child=serializers.CharField(), required=False)
    targets = serializers.DictField(
        child=serializers.IntegerField(min_value=1, max_value=2**31 - 1),
        required=False,
        help_text="Stratum to number of items wanted.",
    )
    price_cents = number("price_cents")
    currency = serializers.CharField(max_length=3, required=False)


class ProjectChangeSerializer(SettingsSerializer):
    guidelines = serializers.CharField(
        max_length=GUIDELINE_LIMIT, required=False, help_text="Markdown; published as a version."
    )


class ProjectCreateSerializer(SettingsSerializer):
    name = serializers.CharField(max_length=120)
    guidelines = serializers.CharField(max_length=GUIDELINE_LIMIT, help_text="Markdown.")


class ProjectSerializer(serializers.Serializer[Any]):
    """A project with its numbers. Gold and dropped items are not among the `total`."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=ProjectState.choices)
    axes = serializers.ListField(child=serializers.ChoiceField(choices=Axis.choices))
    total = serializers.IntegerField()
    done = serializers.IntegerField()
    disputed = serializers.IntegerField()
    held = serializers.IntegerField()
    people = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class ProjectDetailSerializer(ProjectSerializer):
    ask_strength = serializers.BooleanField()
    allow_tie = serializers.BooleanField()
    allow_both_bad = serializers.BooleanField()
    tags = serializers.ListField(child=serializers.CharField())
    base_overlap = serializers.IntegerField()
    max_overlap = serializers.IntegerField()
    gold_percent = serializers.IntegerField()
    gold_floor = serializers.IntegerField()
    gold_minimum = serializers.IntegerField()
    repeat_percent = serializers.IntegerField()
    onboarding_size = serializers.IntegerField()
    lease_minutes = serializers.IntegerField(allow_null=True)
    stratum_features = serializers.ListField(child=serializers.CharField())
    targets = serializers.DictField(child=serializers.IntegerField())
    price_cents = serializers.IntegerField()
    currency = serializers.CharField()
    guideline = serializers.IntegerField(help_text="Number of the newest guidelines.")


class MoveSerializer(serializers.Serializer[Any]):
    to = serializers.ChoiceField(choices=ProjectState.choices)
    reason = serializers.CharField(max_length=300, required=False, allow_blank=True)


class MembersAddSerializer(serializers.Serializer[Any]):
    usernames = serializers.ListField(
        child=serializers.CharField(max_length=150), min_length=1, max_length=100
    )
    adjudicates = serializers.BooleanField(required=False, default=False)


class MemberSerializer(serializers.Serializer[Any]):
    """Somebody whose labels a project holds; `username` is null for annotators of an import."""

    pseudonym = serializers.CharField()
    username = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(choices=MemberState.choices)
    adjudicates = serializers.BooleanField()
    submitted = serializers.IntegerField()
    gold_right = serializers.IntegerField()
    gold_seen = serializers.IntegerField()


# --- items --------------------------------------------------------------------------------------


class ItemQuerySerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=ItemState.choices, required=False)
    kind = serializers.ChoiceField(choices=ItemKind.choices, required=False)
    flag = serializers.ChoiceField(choices=ItemFlag.choices, required=False)
    stratum = serializers.CharField(required=False, allow_blank=True, max_length=200)


class DecisionSerializer(serializers.Serializer[Any]):
    """What holds on an axis. `verdict` is empty while unresolved; first and second are sides
    of the item, wherever they stood on a page."""

    verdict = serializers.ChoiceField(choices=Verdict.choices, allow_blank=True)
    source = serializers.ChoiceField(choices=DecisionSource.choices)  # type: ignore[assignment]
    labels = serializers.IntegerField()
    posterior = serializers.DictField(child=serializers.FloatField())


class ItemSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.ChoiceField(choices=ItemState.choices)
    kind = serializers.ChoiceField(choices=ItemKind.choices)
    synthetic = serializers.BooleanField()
    stratum = serializers.CharField(allow_blank=True)
    flags = serializers.ListField(child=serializers.CharField())
    target = serializers.IntegerField(help_text="Labels wanted.")
    live = serializers.IntegerField(help_text="Leased or submitted.")
    done = serializers.IntegerField(help_text="Submitted.")
    decisions = serializers.DictField(child=DecisionSerializer(), help_text="By axis.")
    created_at = serializers.DateTimeField()


class ItemPersonaSerializer(serializers.Serializer[Any]):
    pseudonym = serializers.CharField()
    summary = serializers.CharField(allow_blank=True, help_text="Empty: consent was withdrawn.")


class ItemProducersSerializer(serializers.Serializer[Any]):
    first = serializers.CharField(allow_blank=True)
    second = serializers.CharField(allow_blank=True)
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]


class ItemGoldSerializer(serializers.Serializer[Any]):
    verdicts = serializers.DictField(child=serializers.ChoiceField(choices=Verdict.choices))
    onboarding = serializers.BooleanField()
    active = serializers.BooleanField()
    explanation = serializers.CharField(allow_blank=True)


class ItemLabelSerializer(serializers.Serializer[Any]):
    """A standing label. `counted` is false for extras, repeats and labels on gold."""

    annotator = serializers.CharField(help_text="Pseudonym, or the name that an import gave.")
    verdicts = serializers.DictField(child=serializers.ChoiceField(choices=Verdict.choices))
    strengths = serializers.DictField(child=serializers.ChoiceField(choices=Strength.choices))
    tags = serializers.ListField(child=serializers.CharField())
    comment = serializers.CharField(allow_blank=True)
    active_ms = serializers.IntegerField()
    revision = serializers.IntegerField()
    first_left = serializers.BooleanField(help_text="The first answer stood left.")
    late = serializers.BooleanField()
    counted = serializers.BooleanField()
    repeat = serializers.IntegerField()
    guideline = serializers.IntegerField(allow_null=True)
    at = serializers.DateTimeField()


class ItemDetailSerializer(ItemSerializer):
    messages = TurnSerializer(many=True)
    persona = ItemPersonaSerializer(allow_null=True)
    first = serializers.CharField(allow_blank=True, allow_null=True)
    second = serializers.CharField(allow_blank=True, allow_null=True)
    producers = ItemProducersSerializer(
        allow_null=True, help_text="Null while a sealed round shows one of the texts."
    )
    gold = ItemGoldSerializer(allow_null=True)
    labels = ItemLabelSerializer(
        many=True, help_text="Of a disputed item only with `labels=1`: it is decided blind."
    )


class SentItemsSerializer(serializers.Serializer[Any]):
    """Pairs in our own format (docs/annotation-formats.md), as in a file of JSON Lines."""

    items = serializers.ListField(
        child=serializers.DictField(), min_length=1, max_length=1000, allow_empty=False
    )


class SentItemSerializer(serializers.Serializer[Any]):
    """What became of a row. `refused`: the code, the field and the sentence say why."""

    index = serializers.IntegerField(help_text="From 0, as sent.")
    status = serializers.ChoiceField(choices=["added", "known", "refused"])
    item = serializers.CharField(allow_null=True)
    flags = serializers.ListField(child=serializers.CharField())
    code = serializers.CharField(allow_blank=True)
    field = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)


class SentItemsResultSerializer(serializers.Serializer[Any]):
    added = serializers.IntegerField()
    known = serializers.IntegerField()
    refused = serializers.IntegerField()
    rows = SentItemSerializer(many=True)


# --- files and figures --------------------------------------------------------------------------


class ImportSerializer(serializers.Serializer[Any]):
    """A check of a file (`dry_run`), or an import."""

    id = serializers.IntegerField()
    dry_run = serializers.BooleanField()
    state = serializers.CharField()
    format = serializers.CharField(allow_blank=True)
    file_name = serializers.CharField()
    size = serializers.IntegerField()
    bytes_done = serializers.IntegerField()
    rows_done = serializers.IntegerField()
    added = serializers.IntegerField()
    known = serializers.IntegerField()
    refused = serializers.IntegerField()
    message = serializers.CharField(allow_blank=True)
    import_run = serializers.IntegerField(
        allow_null=True, help_text="The import that was started from this check."
    )
    created_at = serializers.DateTimeField()


class ImportOptionsSerializer(serializers.Serializer[Any]):
    """How a file is read. Without a format it is told from the file."""

    name = serializers.CharField(max_length=200, required=False, help_text="Name of a raw body.")
    format = serializers.CharField(max_length=24, required=False, allow_blank=True)
    axis = serializers.ChoiceField(choices=Axis.choices, required=False)
    annotator = serializers.CharField(max_length=120, required=False)
    gold = serializers.BooleanField(required=False)
    no_labels = serializers.BooleanField(required=False)
    key = serializers.CharField(
        max_length=48, required=False, help_text="The same key gives the same check."
    )


class ExportRequestSerializer(serializers.Serializer[Any]):
    """`options` are those of the page; the key makes it one export."""

    options = serializers.DictField(required=False)
    key = serializers.CharField(max_length=48, required=False)


class ExportSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    format = serializers.CharField()
    options = serializers.DictField()
    state = serializers.CharField()
    rows_done = serializers.IntegerField()
    rows_total = serializers.IntegerField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField(allow_blank=True)
    report = serializers.DictField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class AgreementSerializer(serializers.Serializer[Any]):
    """The newest statistics, as the pages show them. Null: none were computed yet."""

    created_at = serializers.DateTimeField(allow_null=True)
    labels_seen = serializers.IntegerField()
    report = serializers.DictField(allow_null=True)
