"""From records to pairs, one after the other. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from annotation.formats.rows import Options, PairRow, ParsedPair
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import Refusal, RowError

Make = Callable[[Item, Options], Iterator[PairRow]]
Parse = Callable[[Iterator[Item], Options], Iterator[ParsedPair]]


@dataclass(frozen=True)
class Format:
    """`keys`: sets of keys, one of which every record has."""

    name: str
    keys: tuple[frozenset[str], ...]
    parse: Parse

    def fits(self, names: Mapping[str, Any] | tuple[str, ...]) -> bool:
        return any(wanted <= set(names) for wanted in self.keys)


def record_format(name: str, make: Make, *keys: str) -> Format:
    """A format whose records say everything by themselves. Each of `keys`: names with spaces."""

    def parse(items: Iterator[Item], options: Options) -> Iterator[ParsedPair]:
        for item in items:
            yield from rows_of(item, options, make)

    return Format(name, tuple(frozenset(names.split()) for names in keys), parse)


def rows_of(item: Item, options: Options, make: Make) -> Iterator[ParsedPair]:
    """The pairs of one record, and a refusal where it cannot be read any further."""
    if item.bad is not None:
        yield Refusal.at(item.place, item.bad, item.offset, item.value)
        return
    try:
        for row in make(item, options):
            yield dataclasses.replace(row, raw=item.value)
    except RowError as bad:
        yield Refusal.at(item.place, bad, item.offset, item.value)


def refused(item: Item, bad: RowError) -> Refusal:
    return Refusal.at(item.place, bad, item.offset, item.value)
