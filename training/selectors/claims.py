"""Which splits frozen datasets gave to prompts and personas, and what follows for new rows."""

from __future__ import annotations

from collections.abc import Mapping

from training.enums import Of
from training.filters import Filter
from training.models import SplitClaim
from training.splits import Assignment, Cell, Node, assign

KEYS = 900  # keys a statement


def assign_splits(spec: Filter, cells: Mapping[Cell, int], strata: Mapping[str, str]) -> Assignment:
    """Splits of all cells, with what earlier datasets claimed; `strata` by persona id."""
    return assign(
        cells,
        shares=spec.shares,
        seed=spec.seed,
        fixed=claimed(cells),
        cut=spec.cut,
        strata=strata,
    )


def claimed(cells: Mapping[Cell, int]) -> dict[Node, str]:
    """The splits that frozen datasets gave to these prompts and personas."""
    found: dict[Node, str] = {}
    keys = {
        Of.PROMPT.value: sorted({prompt for prompt, _persona in cells}),
        Of.PERSONA.value: sorted({persona for _prompt, persona in cells if persona}),
    }
    for of, names in keys.items():
        for start in range(0, len(names), KEYS):
            rows = SplitClaim.objects.filter(of=of, key__in=names[start : start + KEYS])
            found.update({(of, key): split for key, split in rows.values_list("key", "split")})
    return found
