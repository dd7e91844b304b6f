"""Personas, their immutable summaries, and consent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.catalog.erasure import erase_elsewhere
from webapp.catalog.formats.rows import PersonaSpec, RowError
from webapp.catalog.models import Answer, AnswerText, Persona, PersonaText, PersonaVersion
from webapp.catalog.policies import check_consent_stands, check_may_manage_persona
from webapp.catalog.services.checks import check_features, check_summary, check_text
from webapp.catalog.texts import sha256
from webapp.core import audit
from webapp.core.errors import InvalidInput
from webapp.core.kept import forget_kept_files


@dataclass(frozen=True)
class Withdrawal:
    """What was erased. `sealed`: answers among them that a running round still shows."""

    summaries: int
    answers: int
    sealed: int


def create_persona(
    *,
    actor: Any,
    pseudonym: str,
    summary: str,
    features: Mapping[str, Any] | None = None,
    owner: Any = None,
    consent_scope: str = "",
    source: str = "authored",
) -> Persona:
    """Make a persona with version 1 of its summary. `actor` None is the system."""
    pseudonym = check_text(pseudonym.strip(), "pseudonym", limit=64)
    summary = check_summary(summary)
    persona = Persona(
        pseudonym=pseudonym,
        features=check_features(features or {}),
        owner=owner,
        consent_scope=consent_scope[:100],
        consent_at=timezone.now() if consent_scope else None,
    )
    try:
        with transaction.atomic():
            persona.save(force_insert=True)
            _append_version(persona, summary, source=source, reason="")
            audit.record(actor=actor, action="create_persona", obj=persona)
    except IntegrityError as error:
        message = _("There is a persona “%(name)s” already.") % {"name": pseudonym}
        raise InvalidInput(message, field="pseudonym", code="taken") from error
    return persona


def add_persona_version(
    *, actor: Any, persona: Persona, summary: str, reason: str = "", source: str = "authored"
) -> PersonaVersion:
    """Append a summary. The summary that stands already is returned as it is."""
    summary = check_summary(summary)
    with transaction.atomic():
        locked = Persona.objects.select_for_update().get(pk=persona.pk)
        check_consent_stands(locked)
        latest = locked.versions.order_by("-n").first()
        if latest is not None and latest.summary_sha256 == sha256(summary):
            return latest
        version = _append_version(locked, summary, source=source, reason=reason[:200])
        audit.record(actor=actor, action="add_persona_version", obj=version, n=version.n)
    return version


def _append_version(persona: Persona, summary: str, *, source: str, reason: str) -> PersonaVersion:
    """The caller holds the persona's row."""
    last = persona.versions.aggregate(n=Max("n"))["n"] or 0
    version = PersonaVersion.objects.create(
        persona=persona, n=last + 1, summary_sha256=sha256(summary), source=source, reason=reason
    )
    PersonaText.objects.create(version=version, summary=summary)
    return version


def record_consent(*, actor: Any, persona: Persona, scope: str) -> None:
    """Note that the person agreed, and to what. Saying the same again changes nothing."""
    scope = check_text(scope.strip(), "scope", limit=100)
    with transaction.atomic():
        locked = Persona.objects.select_for_update().get(pk=persona.pk)
        check_may_manage_persona(actor, locked)
        check_consent_stands(locked)
        if locked.consent_at is not None and locked.consent_scope == scope:
            return
        locked.consent_at, locked.consent_scope = timezone.now(), scope
        locked.save(update_fields=["consent_at", "consent_scope"])
        audit.record(actor=actor, action="record_consent", obj=locked, scope=scope)


def withdraw_consent(*, actor: Any, persona: Persona) -> Withdrawal:
    """Erase the persona's summaries and the answers made for it; hashes and votes stay (V14).

    Erasing wins over a running round: the return value says how many sealed answers it hit.
    """
    with transaction.atomic():
        locked = Persona.objects.select_for_update().get(pk=persona.pk)
        check_may_manage_persona(actor, locked)
        sealed = AnswerText.objects.filter(
            answer__persona_version__persona=locked,
            answer__seal__isnull=False,
            answer__seal__released_at__isnull=True,
        ).count()
        answers = Answer.objects.filter(persona_version__persona=locked).values("pk")
        erased_answers = AnswerText.objects.filter(answer__in=answers).delete()[0]
        erased = PersonaText.objects.filter(version__in=locked.versions.values("pk")).delete()[0]
        erase_elsewhere(locked)
        if locked.withdrawn_at is None:
            locked.withdrawn_at = timezone.now()
            locked.save(update_fields=["withdrawn_at"])
            audit.record(
                actor=actor,
                action="withdraw_consent",
                obj=locked,
                summaries=erased,
                answers=erased_answers,
            )
        transaction.on_commit(forget_kept_files)
    return Withdrawal(summaries=erased, answers=erased_answers, sealed=sealed)


def get_or_create_versions(
    *, specs: Iterable[PersonaSpec], source: str = "imported"
) -> dict[PersonaSpec, int | RowError]:
    """Version ids for checked specs, in the caller's transaction; a RowError where one is refused.

    A summary that the persona ever had is found again, so that importing old files adds nothing.
    Where two specs contradict each other the first one counts.
    """
    wanted = list(dict.fromkeys(specs))
    personas = _locked_personas(wanted)
    versions = PersonaVersion.objects.filter(persona__in=personas.values())
    ids: dict[tuple[int, str], int] = {}
    last: dict[int, int] = {}
    columns = versions.values_list("pk", "persona_id", "summary_sha256", "n")
    for pk, persona_id, digest, n in columns:
        ids[persona_id, digest] = pk
        last[persona_id] = max(n, last.get(persona_id, 0))
    found: dict[PersonaSpec, int | RowError] = {}
    new: dict[tuple[int, str], str] = {}
    for spec in wanted:
        try:
            _merge(personas[spec.pseudonym], spec)
        except RowError as bad:
            found[spec] = bad
        else:
            key = (personas[spec.pseudonym].pk, sha256(spec.summary))
            if key not in ids:
                new[key] = spec.summary
    ids.update(_append_versions(new, last, source))
    for spec in wanted:
        if spec not in found:
            found[spec] = ids[personas[spec.pseudonym].pk, sha256(spec.summary)]
    return found


def _locked_personas(specs: list[PersonaSpec]) -> dict[str, Persona]:
    """All personas named, the missing ones made, their rows locked in one order."""
    first = {spec.pseudonym: spec for spec in reversed(specs)}
    known = set(Persona.objects.filter(pseudonym__in=first).values_list("pseudonym", flat=True))
    missing = [
        Persona(
            pseudonym=name,
            features=dict(first[name].features),
            consent_scope=first[name].consent,
            consent_at=timezone.now() if first[name].consent else None,
        )
        for name in sorted(first)
        if name not in known
    ]
    Persona.objects.bulk_create(missing, ignore_conflicts=True)
    rows = Persona.objects.select_for_update().filter(pseudonym__in=first).order_by("pseudonym")
    return {persona.pseudonym: persona for persona in rows}


def _append_versions(
    new: Mapping[tuple[int, str], str], last: dict[int, int], source: str
) -> dict[tuple[int, str], int]:
    """Write versions for {(persona, hash): summary}; the caller holds the personas' rows."""
    made = []
    for persona_id, digest in new:
        last[persona_id] = last.get(persona_id, 0) + 1
        made.append(
            PersonaVersion(
                persona_id=persona_id, n=last[persona_id], summary_sha256=digest, source=source
            )
        )
    PersonaVersion.objects.bulk_create(made)
    PersonaText.objects.bulk_create(
        [
            PersonaText(version=version, summary=new[version.persona_id, version.summary_sha256])
            for version in made
        ]
    )
    return {(version.persona_id, version.summary_sha256): version.pk for version in made}


def _merge(persona: Persona, spec: PersonaSpec) -> None:
    """Fill in features and consent that were not known; contradicting ones are refused."""
    if persona.withdrawn_at is not None:
        raise RowError("withdrawn", "persona.pseudonym")
    changed = False
    for name, value in spec.features:
        known = persona.features.get(name)
        if known is not None and known != value:
            field = f"persona.features.{name}"
            raise RowError("feature_conflict", field, name=name, known=known, found=value)
    new = {name: value for name, value in spec.features if name not in persona.features}
    if new:
        persona.features, changed = {**persona.features, **new}, True
    if spec.consent and persona.consent_at is None:
        persona.consent_at, persona.consent_scope = timezone.now(), spec.consent
        changed = True
    if changed:
        persona.save(update_fields=["features", "consent_at", "consent_scope"])
