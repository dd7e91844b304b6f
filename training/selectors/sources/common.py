"""What a source hands over: facts first, texts only for the rows that stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from training.filters import Filter
from training.selectors.barred import Barred, find_barred
from webapp.catalog.models import Persona
from webapp.catalog.strata import stratum_of

M = TypeVar("M", bound=Model)
CHUNK = 500


@dataclass(frozen=True, slots=True)
class Fact:
    """A possible row without its texts. `reason` says why it stays out, "" that it may enter.

    `origin` is ("projects" | "rounds" | "imports", id); `group` is shared by rows that only make
    sense together; `score` is the posterior where it was computed anew.
    """

    source: str
    pk: int
    prompt_sha256: str
    persona_id: int | None
    stratum: str
    origin: tuple[str, int]
    language: str = ""
    category: str = ""
    decided: str = ""
    reason: str = ""
    synthetic: bool = False
    group: str = ""
    score: float = 0.0
    part: str = ""  # which of several rows of one thing


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row with its columns (see training.rows). `ref` names the thing that it was made from."""

    fact: Fact
    row: dict[str, Any]
    ref: str
    context_id: int | None = None


class Chooser:
    """The part of the filter that is the same for every source."""

    def __init__(self, spec: Filter, barred: Barred | None = None) -> None:
        self.spec = spec
        self.barred = barred or find_barred()
        rows = Persona.objects.values_list("pk", "features")
        self._strata = {
            pk: stratum_of(features, spec.stratum_features) for pk, features in rows.iterator()
        }

    def stratum(self, persona_id: int | None) -> str:
        return self._strata.get(persona_id, "") if persona_id else ""

    def reason(
        self, prompt_sha256: str, persona_id: int | None, language: str, category: str
    ) -> str:
        """Why a row with this prompt and persona stays out."""
        barred = self.barred.reason(prompt_sha256, persona_id)
        if barred:
            return barred
        if self.spec.languages and language not in self.spec.languages:
            return "language"
        if self.spec.categories and category not in self.spec.categories:
            return "category"
        if self.spec.strata and self.stratum(persona_id) not in self.spec.strata:
            return "stratum"
        return ""


def in_chunks(rows: QuerySet[M], size: int = CHUNK) -> Iterator[list[M]]:
    """Rows by id, a chunk at a time: flat memory, no cursor held open between them."""
    last = 0
    rows = rows.order_by("pk")
    while chunk := list(rows.filter(pk__gt=last)[:size]):
        yield chunk
        last = chunk[-1].pk


def about(
    persona: Persona | None, summary: str, language: str, category: str, source: str
) -> dict[str, Any]:
    """The columns that every row has."""
    return {
        "persona": summary,
        "persona_id": persona.pseudonym if persona else "",
        "language": language,
        "category": category,
        "source": source,
    }


def turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"role": str(m["role"]), "content": str(m["content"])} for m in messages]
