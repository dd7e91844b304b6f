"""Contestants: a model version with its sampling settings, fixed once it has answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from webapp.catalog.enums import ContestantKind
from webapp.catalog.formats.rows import ContestantSpec, RowError
from webapp.catalog.models import Contestant
from webapp.catalog.services.checks import check_text
from webapp.catalog.texts import canonical_json
from webapp.core.errors import InvalidInput, Refused


def get_or_create_contestant(
    *,
    name: str,
    version: str = "",
    kind: str = ContestantKind.IMPORTED,
    vendor: str | None = None,
    system_prompt: str | None = None,
    uses_persona: bool | None = None,
    sampling: Mapping[str, Any] | None = None,
    endpoint: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Contestant:
    """The contestant of this name and version. None says nothing about a setting.

    A setting that contradicts a known contestant is refused: other settings, another version.
    """
    if kind not in ContestantKind.values:
        raise InvalidInput(_("Choose one of the kinds."), field="kind")
    given: dict[str, Any] = {
        "kind": kind,
        "vendor": vendor,
        "system_prompt": system_prompt,
        "uses_persona": uses_persona,
        "sampling": sampling,
        "endpoint": endpoint,
        "provenance": provenance,
    }
    given = {field: value for field, value in given.items() if value is not None}
    contestant, created = Contestant.objects.get_or_create(
        name=check_text(name.strip(), "name", limit=120),
        version=check_text(version.strip(), "version", limit=64) if version.strip() else "",
        defaults=given,
    )
    different = [] if created else differences(contestant, given)
    if different:
        raise Refused(
            _("“%(contestant)s” is known with other settings (%(names)s). Give it another version.")
            % {"contestant": contestant, "names": ", ".join(different)},
            code="contestant_conflict",
        )
    return contestant


def differences(contestant: Contestant, given: Mapping[str, Any]) -> list[str]:
    """Names of given settings that are not those of the contestant."""
    return [
        field
        for field, value in given.items()
        if canonical_json(value) != canonical_json(getattr(contestant, field))
    ]


def get_or_create_contestants(
    *, specs: Iterable[ContestantSpec]
) -> dict[ContestantSpec, int | RowError]:
    """Ids for checked specs of an import, in the caller's transaction; a RowError where refused."""
    wanted = list(dict.fromkeys(specs))
    known = _known(wanted)
    missing: dict[tuple[str, str], Contestant] = {}
    for spec in wanted:
        key = (spec.name, spec.version)
        if key not in known and key not in missing:
            missing[key] = Contestant(name=spec.name, version=spec.version, **given_settings(spec))
    if missing:
        Contestant.objects.bulk_create(
            [missing[key] for key in sorted(missing)], ignore_conflicts=True
        )
        known = _known(wanted)
    return {spec: _resolve(known[spec.name, spec.version], spec) for spec in wanted}


def _known(specs: list[ContestantSpec]) -> dict[tuple[str, str], Contestant]:
    names = {spec.name for spec in specs}
    return {(c.name, c.version): c for c in Contestant.objects.filter(name__in=names)}


def given_settings(spec: ContestantSpec) -> dict[str, Any]:
    """The settings that the file states."""
    given: dict[str, Any] = {
        "vendor": spec.vendor,
        "system_prompt": spec.system_prompt,
        "uses_persona": spec.uses_persona,
        "sampling": None if spec.sampling is None else json.loads(spec.sampling),
    }
    return {field: value for field, value in given.items() if value is not None}


def _resolve(contestant: Contestant, spec: ContestantSpec) -> int | RowError:
    if contestant.kind != ContestantKind.IMPORTED:
        return RowError("contestant_kind", "contestant", kind=contestant.kind)
    different = differences(contestant, given_settings(spec))
    if different:
        return RowError("contestant_conflict", "contestant", names=", ".join(different))
    return contestant.pk
