"""Which personas and prompts make the contexts of a round, and whether they are diverse enough.

Pure. Holdout personas and holdout prompts are drawn first; a context is holdout if both are,
rotating if neither is, and mixed cells are not composed (V11). A split that an earlier round or
dataset has fixed is respected: a holdout persona or prompt never comes back as rotating.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from arena.blinding import SeededStream

HOLDOUT, ROTATING = "holdout", "rotating"


class SampleError(ValueError):
    """The pool cannot give what was asked. ``code`` is stable; the message has the counts."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class RoundPreset:
    """Sizes of a round: personas x prompts contexts, raters, planned votes."""

    personas: int
    prompts: int
    contestants: int
    annotators: int
    seed_users: int
    votes: int


PRESETS: dict[str, RoundPreset] = {
    "small": RoundPreset(10, 5, 4, 2, 4, 200),
    "medium": RoundPreset(50, 12, 8, 5, 10, 1500),
    "reference": RoundPreset(200, 30, 24, 10, 20, 6000),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A persona or a prompt of the pool. ``holdout`` is its split, None while undecided.

    ``stratum`` is the group of a persona (its features) or of a prompt (its category, or "").
    """

    id: str
    stratum: str = ""
    holdout: bool | None = None


@dataclass(frozen=True, slots=True)
class SampledContext:
    """One cell; its stratum is the persona's, its kind "holdout" or "rotating"."""

    persona: str
    prompt: str
    stratum: str
    kind: str


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A reason why a round may not open. ``code``: "too_few_strata" or "stratum_too_small"."""

    code: str
    stratum: str
    have: int
    need: int

    def __str__(self) -> str:
        if self.code == "too_few_strata":
            return f"{self.have} kinds of users where {self.need} are needed: one proves nothing"
        return f"stratum {self.stratum!r} has {self.have} contexts, {self.need} are needed"


def sample_contexts(
    personas: Sequence[Candidate],
    prompts: Sequence[Candidate],
    n: int,
    m: int,
    holdout_share: Fraction | float,
    seed: bytes,
) -> list[SampledContext]:
    """Draw n personas and m prompts, stratified, and cross them within their split.

    ``holdout_share`` of the personas and of the prompts is holdout (rounded; at least one of each
    when the share is above 0), so that h*n x h*m holdout and (1-h)*n x (1-h)*m rotating contexts
    come out. Each stratum gets its share of the pool, and at least one where n allows.
    Raises SampleError: bad_size, bad_share, duplicate, pool_too_small.
    """
    if n < 1 or m < 1:
        raise SampleError("bad_size", "at least one persona and one prompt are needed")
    if not 0 <= holdout_share <= 1:
        raise SampleError("bad_share", "the holdout share lies between 0 and 1")
    held_personas, free_personas = _split(personas, n, holdout_share, seed, "personas")
    held_prompts, free_prompts = _split(prompts, m, holdout_share, seed, "prompts")
    return [
        SampledContext(persona.id, prompt.id, persona.stratum, kind)
        for kind, some_personas, some_prompts in (
            (HOLDOUT, held_personas, held_prompts),
            (ROTATING, free_personas, free_prompts),
        )
        for persona in some_personas
        for prompt in some_prompts
    ]


def _split(
    pool: Sequence[Candidate], size: int, share: Fraction | float, seed: bytes, label: str
) -> tuple[list[Candidate], list[Candidate]]:
    """Draw the holdout part first, then the rotating part from what is left."""
    if len({candidate.id for candidate in pool}) != len(pool):
        raise SampleError("duplicate", f"{label}: an id is listed twice")
    held_size = _holdout_size(size, share)
    held_pool = [c for c in pool if c.holdout is not False]
    held = _draw(held_pool, held_size, True, SeededStream(seed, "holdout " + label), label)
    taken = {candidate.id for candidate in held}
    free_pool = [c for c in pool if c.holdout is not True and c.id not in taken]
    stream = SeededStream(seed, "rotating " + label)
    return held, _draw(free_pool, size - held_size, False, stream, label)


def _holdout_size(size: int, share: Fraction | float) -> int:
    if not share:
        return 0
    wanted = max(1, round(size * share))
    return min(wanted, size - 1) if share < 1 and size > 1 else wanted


def _draw(
    pool: list[Candidate], size: int, holdout: bool, stream: SeededStream, label: str
) -> list[Candidate]:
    """Draw ``size`` by stratum; within one, those already in this split go first."""
    kind = HOLDOUT if holdout else ROTATING
    if len(pool) < size:
        raise SampleError(
            "pool_too_small", f"{size} {kind} {label} asked, the pool has {len(pool)}"
        )
    groups: dict[str, list[Candidate]] = {}
    for candidate in stream.shuffled(sorted(pool, key=lambda candidate: candidate.id)):
        groups.setdefault(candidate.stratum, []).append(candidate)
    drawn: list[Candidate] = []
    for stratum, quota in allot({name: len(group) for name, group in groups.items()}, size).items():
        group = sorted(groups[stratum], key=lambda candidate: candidate.holdout is not holdout)
        drawn.extend(group[:quota])
    return drawn


def allot(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Share ``total`` among strata in proportion to ``sizes``: largest remainders (Hamilton).

    No stratum gets more than it has, and each gets at least one if ``total`` is enough for all.
    Ties go by name. Raises SampleError when the sizes sum to less than ``total``.
    """
    everything = sum(sizes.values())
    if total > everything:
        raise SampleError("pool_too_small", f"{total} asked, the pool has {everything}")
    names = sorted(name for name, size in sizes.items() if size)
    floor = 1 if total >= len(names) else 0
    exact = {name: Fraction(total * sizes[name], everything) for name in names}
    quota = {name: max(floor, int(exact[name])) for name in names}
    while (missing := total - sum(quota.values())) != 0:
        step = 1 if missing > 0 else -1
        movable = [
            name
            for name in names
            if (quota[name] < sizes[name] if step > 0 else quota[name] > floor)
        ]
        chosen = max(movable, key=lambda name: step * (exact[name] - quota[name]))
        quota[chosen] += step
    return quota


def stratum_shortfalls(
    strata: Iterable[str],
    minimum: int,
    *,
    minimum_strata: int = 2,
    expected: Collection[str] = (),
) -> list[Shortfall]:
    """Return why contexts with these ``strata`` (one per context) are too uniform; [] if not.

    ``expected`` names strata that must occur even if no context has them (F20, H7).
    """
    counts = Counter(strata)
    reasons = []
    if len(counts) < minimum_strata:
        reasons.append(Shortfall("too_few_strata", "", len(counts), minimum_strata))
    return reasons + [
        Shortfall("stratum_too_small", stratum, counts[stratum], minimum)
        for stratum in sorted({*counts, *expected})
        if counts[stratum] < minimum
    ]
