"""Our own format: JSON Lines, one answer a line. Described in docs/importing.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item, each, json_lines
from webapp.catalog.formats.rows import ContestantSpec, Limits, Parsed, PersonaSpec, Row, RowError

KEYS = (
    "persona",
    "prompt",
    "contestant",
    "answer",
    "draw",
    "finish_reason",
    "category",
    "language",
    "settings",
    "meta",
)
CONTESTANT_KEYS = ("name", "version", "vendor", "sampling", "system_prompt", "uses_persona")
_SLUG = re.compile(r"[\w][\w.+\-]*")


def parse(stream: BinaryIO, *, limits: Limits, skip: int = 0) -> Iterator[Parsed]:
    def rows(item: Item) -> Iterator[Row]:
        yield _row(item, limits)

    return each(json_lines(stream, limit=limits.item, skip=skip), rows)


def _row(item: Item, limits: Limits) -> Row:
    line = fields.mapping(item.value, "")
    fields.known_keys(line, "", KEYS)
    return Row(
        place=item.place,
        offset=item.offset,
        persona=persona(line.get("persona"), limits),
        messages=fields.conversation(fields.required(line, "prompt")),
        contestant=contestant(fields.required(line, "contestant"), line.get("settings")),
        answer=fields.text(fields.required(line, "answer"), "answer"),
        draw=fields.draw(line.get("draw", 0)),
        category=fields.optional_text(line, "category", "category", limit=64),
        language=fields.optional_text(line, "language", "language", limit=16),
        finish_reason=fields.choice(
            line.get("finish_reason"), "finish_reason", fields.FINISH_REASONS
        ),
    )


def persona(value: Any, limits: Limits) -> PersonaSpec | None:
    """{pseudonym, summary, features, consent} or null; a feature may also stand beside them."""
    if value is None:
        return None
    source = fields.mapping(value, "persona")
    fields.known_keys(
        source, "persona", ("pseudonym", "summary", "features", "consent", *limits.features)
    )
    pseudonym = fields.required(source, "pseudonym", "persona.pseudonym")
    summary = fields.required(source, "summary", "persona.summary")
    return PersonaSpec(
        pseudonym=fields.text(pseudonym, "persona.pseudonym", limit=64).strip(),
        summary=_summary(fields.text(summary, "persona.summary").strip(), limits),
        features=tuple(sorted(_features(source, limits).items())),
        consent=fields.optional_text(source, "consent", "persona.consent", limit=100),
    )


def _summary(value: str, limits: Limits) -> str:
    if len(value) > limits.summary:
        raise RowError("long", "persona.summary", count=len(value), limit=limits.summary)
    return value


def _features(source: Mapping[str, Any], limits: Limits) -> dict[str, str]:
    given = fields.mapping(source.get("features") or {}, "persona.features")
    beside = {name: source[name] for name in limits.features if source.get(name) is not None}
    found = {}
    for name, value in {**given, **beside}.items():
        field = f"persona.features.{name}"[:80]
        if name not in limits.features:
            raise RowError("unknown_feature", field, allowed=", ".join(limits.features))
        found[name] = slug(value, field, limits.feature_value)
    return found


def slug(value: Any, field: str, limit: int) -> str:
    """A short value without spaces, in any script."""
    word = fields.text(value, field, limit=limit)
    if not _SLUG.fullmatch(word):
        raise RowError("slug", field, found=word)
    return word


def contestant(value: Any, settings: Any) -> ContestantSpec:
    """A name, or {name, version, vendor, sampling, system_prompt, uses_persona}."""
    source = {"name": value} if isinstance(value, str) else fields.mapping(value, "contestant")
    fields.known_keys(source, "contestant", CONTESTANT_KEYS)
    sampling = source.get("sampling", settings)
    name = fields.required(source, "name", "contestant.name")
    vendor, template = source.get("vendor"), source.get("system_prompt")
    uses = source.get("uses_persona")
    return ContestantSpec(
        name=fields.text(name, "contestant.name", limit=120).strip(),
        version=fields.optional_text(source, "version", "contestant.version", limit=64),
        vendor=vendor and fields.text(vendor, "contestant.vendor", limit=64).strip(),
        system_prompt=template and fields.text(template, "contestant.system_prompt"),
        uses_persona=None if uses is None else fields.flag(uses, "contestant.uses_persona"),
        sampling=None
        if sampling is None
        else fields.settings_json(sampling, "contestant.sampling"),
    )
