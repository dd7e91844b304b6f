"""Every read of the catalog. Texts under a live seal never leave here beside a contestant (V1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from webapp.accounts.policies import is_admin
from webapp.catalog import uploads
from webapp.catalog.enums import STRATUM_FEATURES, ImportState
from webapp.catalog.models import (
    Answer,
    AnswerText,
    Contestant,
    ImportRun,
    Persona,
    PersonaVersion,
    Prompt,
    Seal,
)
from webapp.catalog.refusals import explain_failure, explained

# Personas


def personas() -> QuerySet[Persona]:
    """With `latest_n` and `latest_summary` (None where erased)."""
    latest = PersonaVersion.objects.filter(persona=OuterRef("pk")).order_by("-n")
    return Persona.objects.select_related("owner").annotate(
        latest_n=Subquery(latest.values("n")[:1]),
        latest_summary=Subquery(latest.values("text__summary")[:1]),
    )


def personas_of(user: Any) -> QuerySet[Persona]:
    return personas().filter(owner=user)


def manageable_personas(user: Any) -> QuerySet[Persona]:
    """Those whose consent this user may withdraw: all for administrators, else his own."""
    return personas() if is_admin(user) else personas_of(user)


def persona_versions(persona: Persona) -> QuerySet[PersonaVersion]:
    return persona.versions.select_related("text").order_by("-n")


def labelled_features(persona: Persona) -> list[tuple[str, str]]:
    """Features with their names in the reader's language."""
    return [
        (str(STRATUM_FEATURES.get(name, name)), str(value))
        for name, value in sorted(persona.features.items())
    ]


# Prompts


def prompts(*, category: str = "", language: str = "", text: str = "") -> QuerySet[Prompt]:
    found = Prompt.objects.order_by("pk")
    if category:
        found = found.filter(category=category)
    if language:
        found = found.filter(language=language)
    if text:
        found = found.filter(messages__icontains=text)
    return found


def prompt_categories() -> list[str]:
    rows = Prompt.objects.exclude(category="").order_by("category")
    return list(rows.values_list("category", flat=True).distinct())


def prompt_languages() -> list[str]:
    rows = Prompt.objects.exclude(language="").order_by("language")
    return list(rows.values_list("language", flat=True).distinct())


# Contestants and their answers


def contestants() -> QuerySet[Contestant]:
    """With `answer_count`."""
    counted = (
        Answer.objects.filter(contestant=OuterRef("pk"))
        .order_by()
        .values("contestant")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return Contestant.objects.annotate(
        answer_count=Coalesce(Subquery(counted, output_field=IntegerField()), 0)
    )


@dataclass(frozen=True)
class ReadableAnswer:
    """An answer that an administrator may read with its maker; reading is noted (Exposure)."""

    pk: int
    prompt: str
    summary: str
    draw: int
    text: str


def readable_texts(contestant: Contestant) -> QuerySet[AnswerText]:
    """Texts of a contestant that are under no live seal, whoever's answer it is that is sealed.

    A further draw may repeat a sealed text: beside a contestant it would name the maker (V1).
    """
    sealed = Seal.objects.filter(
        answer__text_sha256=OuterRef("answer__text_sha256"), released_at=None
    )
    return (
        AnswerText.objects.filter(~Exists(sealed), answer__contestant=contestant)
        .select_related("answer__prompt", "answer__persona_version__text")
        .order_by("pk")
    )


def as_readable(text: AnswerText) -> ReadableAnswer:
    answer = text.answer
    version = answer.persona_version
    return ReadableAnswer(
        pk=answer.pk,
        prompt=str(answer.prompt),
        summary=version.text.summary if version and hasattr(version, "text") else "",
        draw=answer.draw,
        text=text.text,
    )


# Imports


def imports() -> QuerySet[ImportRun]:
    """Imports of answers; other domains show their own."""
    return ImportRun.objects.filter(kind="answers").select_related("created_by")


@dataclass(frozen=True)
class ImportView:
    """What the page of an import shows. Contestants stand in a table of their own."""

    pk: int
    file_name: str
    format: str
    dry_run: bool
    state: str
    state_label: str
    by: str
    at: datetime
    size: int
    bytes_done: int
    rows_done: int
    added: int
    known: int
    sealed: int
    refused: int
    message: str
    refusals: list[dict[str, Any]]
    contestants: list[tuple[str, int]]
    samples: list[dict[str, str]]
    has_errors: bool

    @property
    def running(self) -> bool:
        return self.state in (ImportState.RUNNING, ImportState.UPLOADED)

    @property
    def may_start(self) -> bool:
        return self.dry_run and self.state == ImportState.DONE

    @property
    def may_resume(self) -> bool:
        return not self.dry_run and self.state in (ImportState.FAILED, ImportState.CANCELLED)


def view_import(run: ImportRun) -> ImportView:
    report = run.report
    failure = report.get("failure")
    return ImportView(
        pk=run.pk,
        file_name=run.file_name,
        format=run.format,
        dry_run=run.dry_run,
        state=run.state,
        state_label=run.get_state_display(),
        by=run.created_by.username if run.created_by else _("command line"),
        at=run.created_at,
        size=run.size,
        bytes_done=run.bytes_done,
        rows_done=run.rows_done,
        added=run.added,
        known=run.known,
        sealed=report.get("sealed", 0),
        refused=run.refused,
        message=explain_failure(failure) if failure else run.message,
        refusals=[explained(record) for record in report.get("refusals", [])],
        contestants=sorted(report.get("contestants", {}).items()),
        samples=uploads.read_samples(run.pk) if run.dry_run else [],
        has_errors=bool(run.refused) and uploads.errors_path(run.pk).exists(),
    )


def started_from(check: ImportRun) -> ImportRun | None:
    """The import that was started from this check."""
    return ImportRun.objects.filter(key=f"check:{check.pk}").first()


def catalog_counts() -> dict[str, int]:
    return {
        "personas": Persona.objects.filter(withdrawn_at=None).count(),
        "prompts": Prompt.objects.count(),
        "contestants": Contestant.objects.count(),
        "answers": Answer.objects.count(),
        "imports": imports().filter(dry_run=False).count(),
    }
