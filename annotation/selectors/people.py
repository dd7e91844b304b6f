"""The annotators of a project as its manager sees them: signals, intervals, what to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Member, Project
from annotation.selectors.agreement import Number, counted_share, measured
from annotation.signals import Flag, Share, Signals, flags
from webapp.core.charts_counts import PairCell

FLAGS: dict[Flag, Any] = {
    Flag.GOLD: gettext_lazy(
        "Gold answers are missed more often than the project allows (%(gold)s)."
    ),
    Flag.LEFT: gettext_lazy("Chooses the left side too often to be chance (%(left)s)."),
    Flag.RIGHT: gettext_lazy("Chooses the right side too often to be chance (left: %(left)s)."),
    Flag.LONGER: gettext_lazy(
        "Chooses the longer answer far more often than the others (%(longer)s)."
    ),
    Flag.SHORTER: gettext_lazy(
        "Chooses the longer answer far less often than the others (%(longer)s)."
    ),
    Flag.INCONSISTENT: gettext_lazy(
        "Often answers otherwise when the same item comes again (equal: %(consistent)s)."
    ),
    Flag.ALONE: gettext_lazy(
        "Agrees with the others much less than they do among each other (%(agrees)s)."
    ),
    Flag.LATE: gettext_lazy("Many labels come after the time is up (%(late)s)."),
    Flag.FAST: gettext_lazy("Works more than three times as fast as the others: does she read?"),
}


@dataclass(frozen=True)
class Person:
    """One annotator. `hour`: labels per hour of active time."""

    name: str
    external: bool
    state: str
    labels: int
    gold: Number
    accuracy: Number
    agrees: Number
    left: Number
    longer: Number
    consistent: Number
    late: Number
    seconds: float | None
    hour: float | None
    skipped: int
    expired: int
    flags: tuple[str, ...]


def members_of(project: Project) -> dict[int, Member]:
    return {row.pk: row for row in project.members.select_related("user")}


def name_of(member: Member | None) -> str:
    if member is None:
        return "–"
    return member.user.get_username() if member.user else member.external_name


def people(
    project: Project, report: Mapping[str, Any], axis: str, members: Mapping[int, Member]
) -> list[Person]:
    """Everybody with labels; who should be looked at first comes first."""
    everybody = _signals(report["everybody"], axis, [0, 0])
    rows = [
        _person(row, axis, members.get(row["member"]), everybody, project.gold_floor / 100)
        for row in report["people"]
    ]
    return sorted(rows, key=lambda person: (-len(person.flags), -person.labels))


def _signals(row: Mapping[str, Any], axis: str, gold: Sequence[float]) -> Signals:
    found = row["axes"][axis]
    return Signals(
        gold=Share(*gold),
        left=Share(*found["left"]),
        longer=Share(*found["longer"]),
        consistent=Share(*found["consistent"]),
        agrees=Share(*found["agrees"]),
        late=Share(*row["late"]),
        timed=row["timed"],
        median_ms=row["median_ms"],
    )


def _person(
    row: Mapping[str, Any], axis: str, member: Member | None, everybody: Signals, floor: float
) -> Person:
    found = row["axes"][axis]
    gold = [member.gold_right, member.gold_seen] if member else [0, 0]
    numbers = {
        "gold": counted_share(gold),
        "left": counted_share(found["left"]),
        "longer": counted_share(found["longer"]),
        "consistent": counted_share(found["consistent"]),
        "agrees": counted_share(found["agrees"]),
        "late": counted_share(row["late"]),
    }
    raised = flags(_signals(row, axis, gold), everybody, floor)
    said = {name: _with_count(number) for name, number in numbers.items()}
    return Person(
        name=name_of(member),
        external=not row["ours"],
        state=str(member.get_state_display()) if member else "",
        labels=row["labels"],
        accuracy=counted_share(found["skill"]),
        seconds=row["median_ms"] / 1000 if row["timed"] else None,
        hour=row["timed"] / row["hours"] if row["hours"] else None,
        skipped=row["skipped"],
        expired=row["expired"],
        flags=tuple(str(FLAGS[flag]) % said for flag in raised),
        **numbers,
    )


def _with_count(number: Number) -> str:
    if number.value is None:
        return "–"
    return _("%(value)s of %(n)s, 95 %% interval %(range)s") % {
        "value": number.text,
        "n": f"{number.n:,}",
        "range": number.interval,
    }


def everybody(report: Mapping[str, Any], axis: str) -> dict[str, Number]:
    """Left, length, consistency and agreement over all annotators."""
    return {name: counted_share(share) for name, share in report["everybody"]["axes"][axis].items()}


@dataclass(frozen=True)
class PairRow:
    one: str
    other: str
    equal: Number
    kappa: Number


def pair_rows(
    report: Mapping[str, Any], axis: str, members: Mapping[int, Member]
) -> tuple[list[str], list[list[PairCell | None]], list[PairRow]]:
    """Names, the map of kappas by place, and the same as rows."""
    found = report["pairs"].get(axis)
    if not found:
        return [], [], []
    by_number = {row["number"]: name_of(members.get(row["member"])) for row in report["people"]}
    place = {number: at for at, number in enumerate(found["members"])}
    names = [by_number.get(number, "–") for number in found["members"]]
    cells: list[list[PairCell | None]] = [[None] * len(names) for _name in names]
    rows = []
    for one, other, items, agreed, *kappa in found["rows"]:
        i, j = place[one], place[other]
        cells[i][j] = cells[j][i] = PairCell(kappa[0], items)
        rows.append(
            PairRow(names[i], names[j], counted_share([agreed, items]), measured(kappa, items))
        )
    return names, cells, rows
