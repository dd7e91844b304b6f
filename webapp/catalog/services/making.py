"""Contestants whose answers are made here: added, changed until they have answers, tried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from webapp.accounts.policies import check_admin
from webapp.catalog.answering.messages import messages_for
from webapp.catalog.answering.protocol import AnswerError, Made, Request
from webapp.catalog.answering.reasons import reason
from webapp.catalog.answering.sources import source_of
from webapp.catalog.enums import MADE_HERE
from webapp.catalog.models import Contestant, Seal
from webapp.catalog.services.checks import check_text
from webapp.catalog.services.contestant_settings import check_template
from webapp.catalog.services.contestants import get_or_create_contestant
from webapp.core import audit
from webapp.core.errors import InvalidInput, Refused

TRY_TIMEOUT = 60.0  # seconds
SHOWN = 400  # characters of a trial's reply
QUESTION = "In one or two sentences: what is a blind tasting, and what is it good for?"
SUMMARY = "New to the subject, wants it short and in plain words."


@dataclass(frozen=True)
class Making:
    """How a contestant answers. `settings` and `sampling` as `contestant_settings` makes them."""

    kind: str
    settings: Mapping[str, Any]
    sampling: Mapping[str, Any] = field(default_factory=dict)
    system_prompt: str = ""
    uses_persona: bool = False

    def columns(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "system_prompt": check_template(self.system_prompt, self.uses_persona),
            "uses_persona": self.uses_persona,
            "sampling": dict(self.sampling),
            "endpoint": dict(self.settings),
        }


def add_contestant(
    *,
    actor: Any,
    name: str,
    version: str,
    making: Making,
    vendor: str = "",
    provenance: Mapping[str, Any] | None = None,
) -> Contestant:
    """Add a contestant whose answers are made here. The same once more gives the same row.

    `actor` None is the system. Raises Refused where the name is known with other settings.
    """
    if actor is not None:
        check_admin(actor)
    columns = making.columns()
    if making.kind not in MADE_HERE:
        raise InvalidInput(_("Choose one of the kinds."), field="kind")
    vendor = check_text(vendor.strip(), "vendor", limit=64) if vendor.strip() else ""
    with transaction.atomic():
        known = Contestant.objects.filter(name=name.strip(), version=version.strip()).exists()
        contestant = get_or_create_contestant(
            name=name, version=version, vendor=vendor, provenance=provenance or {}, **columns
        )
        if not known:
            audit.record(actor=actor, action="add_contestant", obj=contestant, name=str(contestant))
    return contestant


def change_contestant(
    *, actor: Any, contestant: Contestant, making: Making, vendor: str = ""
) -> Contestant:
    """Change the settings of a contestant that has no answers yet."""
    check_admin(actor)
    columns = making.columns()
    vendor = check_text(vendor.strip(), "vendor", limit=64) if vendor.strip() else ""
    with transaction.atomic():
        row = Contestant.objects.select_for_update().get(pk=contestant.pk)
        if row.kind != making.kind or row.answers.exists():
            raise Refused(
                _("A contestant with answers is fixed: other settings are another version."),
                code="frozen",
            )
        for column, value in {**columns, "vendor": vendor}.items():
            setattr(row, column, value)
        row.save(update_fields=[*columns, "vendor"])
        audit.record(actor=actor, action="change_contestant", obj=row, name=str(row))
    return row


@dataclass(frozen=True)
class Trial:
    """What came of asking once. While answers of the contestant are sealed nothing of the reply is
    told: its voice beside its name would help to recognise them (V1).
    """

    ok: bool
    reason: str = ""
    said: str = ""  # the server's own words
    made: Made | None = None

    @property
    def reply(self) -> str:
        return self.made.text[:SHOWN] if self.made else ""


def try_contestant(*, actor: Any, contestant: Contestant) -> Trial:
    """Ask a fixed question, once. The contestant may be unsaved; nothing is kept of the reply."""
    check_admin(actor)
    source = source_of(contestant, timeout=TRY_TIMEOUT)
    turns = [{"role": "user", "content": QUESTION}]
    asked = messages_for(contestant.system_prompt, contestant.uses_persona, turns, SUMMARY)
    try:
        made = source.answer(Request(asked))
    except AnswerError as error:
        trial = Trial(False, reason(error.code, error.http_status), error.said)
    else:
        trial = Trial(True, made=None if _is_sealed(contestant) else made)
    finally:
        source.close()
    if contestant.pk:
        with transaction.atomic():
            audit.record(actor=actor, action="try_contestant", obj=contestant, worked=trial.ok)
    return trial


def _is_sealed(contestant: Contestant) -> bool:
    if not contestant.pk:
        return False
    return Seal.objects.filter(answer__contestant=contestant, released_at=None).exists()
