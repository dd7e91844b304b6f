"""What annotators send and get. Nothing here has a field for who wrote what, or what is gold."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from annotation.enums import Axis, MemberState, ProjectState, Shown, SkipReason, Strength
from annotation.services.labels import ACTIVE_LIMIT_MS, COMMENT_LIMIT

AXES = Axis.choices


class SeatSerializer(serializers.Serializer[Any]):
    """A project that you work in."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=ProjectState.choices)
    your_state = serializers.ChoiceField(choices=MemberState.choices)
    axes = serializers.ListField(child=serializers.ChoiceField(choices=AXES))
    done = serializers.IntegerField(help_text="Your submissions.")
    left = serializers.IntegerField(
        help_text="Roughly what is left for you, in tens: 0 is fewer than 10, 100 is more."
    )
    guideline = serializers.IntegerField(help_text="Number of the newest guidelines.")
    guideline_read = serializers.BooleanField(help_text="You confirmed some version of them.")


class GuidelineSerializer(serializers.Serializer[Any]):
    n = serializers.IntegerField()
    text = serializers.CharField(help_text="Markdown.")


class GuidelineReadSerializer(serializers.Serializer[Any]):
    n = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class TurnSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    content = serializers.CharField(allow_blank=True)


class AnswerFields(serializers.Serializer[Any]):
    """An answer or a draft of one, by the sides that you see."""

    verdicts = serializers.DictField(
        child=serializers.ChoiceField(choices=Shown.choices), help_text="Axis to verdict."
    )
    strengths = serializers.DictField(
        child=serializers.ChoiceField(choices=Strength.choices),
        required=False,
        help_text="Axis to 1, 2 or 3, where the project asks how much better an answer is.",
    )
    tags = serializers.ListField(
        child=serializers.CharField(max_length=64), required=False, max_length=30
    )
    comment = serializers.CharField(required=False, allow_blank=True, max_length=COMMENT_LIMIT)
    active_ms = serializers.IntegerField(required=False, min_value=0, max_value=ACTIVE_LIMIT_MS)

    def validate_verdicts(self, value: dict[str, str]) -> dict[str, str]:
        return _by_axis(value)

    def validate_strengths(self, value: dict[str, int]) -> dict[str, int]:
        return _by_axis(value)


def _by_axis(value: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(value) - set(Axis.values))
    if unknown:
        raise serializers.ValidationError(
            _("There is no axis “%(name)s”.") % {"name": unknown[0][:40]}
        )
    return value


class TaskSerializer(serializers.Serializer[Any]):
    """An item as an annotator may see it. Nothing in it depends on who wrote what."""

    token = serializers.CharField()
    project = serializers.IntegerField()
    axes = serializers.ListField(
        child=serializers.ChoiceField(choices=AXES), help_text="In your order."
    )
    verdicts = serializers.ListField(child=serializers.ChoiceField(choices=Shown.choices))
    ask_strength = serializers.BooleanField()
    tags = serializers.ListField(child=serializers.CharField())
    guideline = serializers.IntegerField(help_text="Number of the newest guidelines.")
    persona_summary = serializers.CharField(allow_blank=True)
    messages = TurnSerializer(many=True)
    left = serializers.CharField()
    right = serializers.CharField()
    draft = serializers.DictField(help_text="What you saved or took back last, or empty.")
    expires_in = serializers.IntegerField(help_text="Seconds left of the lease.")


class TaskTokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(max_length=64)


class LabelRequestSerializer(AnswerFields, TaskTokenSerializer):
    """One verdict for each axis of the project."""


class DraftSerializer(AnswerFields, TaskTokenSerializer):
    verdicts = serializers.DictField(
        child=serializers.ChoiceField(choices=Shown.choices), required=False
    )


class TaskSkipSerializer(TaskTokenSerializer):
    reason = serializers.ChoiceField(choices=SkipReason.choices)


class TaskLeaseSerializer(serializers.Serializer[Any]):
    expires_in = serializers.IntegerField()


class ComparedSerializer(serializers.Serializer[Any]):
    axis = serializers.CharField()
    given = serializers.CharField()
    right = serializers.CharField()
    same = serializers.BooleanField()


class FeedbackSerializer(serializers.Serializer[Any]):
    rows = ComparedSerializer(many=True)
    explanation = serializers.CharField(allow_blank=True)


class SubmittedSerializer(serializers.Serializer[Any]):
    """What became of the answer. The same answer again gives the same, with `again` true."""

    token = serializers.CharField()
    revision = serializers.IntegerField()
    at = serializers.DateTimeField()
    again = serializers.BooleanField(help_text="This very answer was here already.")
    late = serializers.BooleanField(help_text="It came after the lease ran out.")
    extra = serializers.BooleanField(help_text="It is kept, but the item had enough by then.")
    feedback = FeedbackSerializer(
        allow_null=True, help_text="Only while you learn with the first items of a project."
    )
