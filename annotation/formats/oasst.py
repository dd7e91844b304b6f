"""Open-Assistant: conversation trees, or messages whose replies stand in them or after them. Pure.

Every question with two or more answers gives all pairs of its answers. The lower rank is the better
one; where a rank is missing the pair comes without a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from annotation.formats import taking
from annotation.formats.each import Format, refused, rows_of
from annotation.formats.rows import Options, PairRow, ParsedPair, Turns
from webapp.catalog.formats import fields
from webapp.catalog.formats.reading import Item
from webapp.catalog.formats.rows import RowError


def parse(items: Iterator[Item], options: Options) -> Iterator[ParsedPair]:
    group = _Group()
    for item in items:
        tree = _tree_of(item)
        if tree is None or tree != group.tree:
            yield from group.rows(options)
            group = _Group(tree)
        if tree is None:
            yield from rows_of(item, options, tree_pairs)
        else:
            bad = group.add(item)
            if bad is not None:
                yield refused(item, bad)
    yield from group.rows(options)


def _tree_of(item: Item) -> str | None:
    """The tree of a message in a flat file; None for whole trees and for what is no message."""
    value = item.value
    if item.bad is not None or not isinstance(value, dict) or isinstance(value.get("prompt"), dict):
        return None
    tree = value.get("message_tree_id")
    return tree if isinstance(tree, str) else None


def tree_pairs(item: Item, options: Options) -> Iterator[PairRow]:
    """The pairs of a tree, or of a message that holds its replies."""
    source = fields.mapping(item.value, "")
    root = source["prompt"] if isinstance(source.get("prompt"), dict) else source
    if root is source and source.get("parent_id"):
        raise RowError("no_parent", "parent_id")
    path = "prompt" if root is not source else ""
    found = 0
    for row in _pairs_below(item, root, path, options):
        found += 1
        yield row
    if not found:
        raise RowError("no_pair", path)


def _pairs_below(item: Item, root: Any, path: str, options: Options) -> Iterator[PairRow]:
    waiting: list[tuple[Any, str, Turns]] = [(root, path, ())]
    while waiting:
        node, field, before = waiting.pop(0)
        message = fields.mapping(node, field)
        turns = (*before, _turn(message, field))
        replies = message.get("replies") or []
        name = f"{field}.replies" if field else "replies"
        if not isinstance(replies, list):
            raise RowError("type", name, found=fields.kind(replies), wanted="list")
        if turns[-1][0] == "user":
            yield from _sibling_pairs(item, turns, message, replies, name, options)
        waiting[:0] = [(reply, f"{name}[{n}]", turns) for n, reply in enumerate(replies)]


def _turn(message: Mapping[str, Any], field: str) -> tuple[str, str]:
    at = f"{field}." if field else ""
    role = message.get("role")
    known = taking.ROLES.get(role) if isinstance(role, str) else None
    if known not in ("user", "assistant"):
        found = str(role)[:40]
        raise RowError("choice", f"{at}role", found=found, allowed="prompter, assistant")
    text = taking.answer(fields.required(message, "text", f"{at}text"), f"{at}text")
    return str(known), text


def _sibling_pairs(
    item: Item,
    turns: Turns,
    question: Mapping[str, Any],
    replies: list[Any],
    field: str,
    options: Options,
) -> Iterator[PairRow]:
    answers = [
        (reply, _turn(fields.mapping(reply, f"{field}[{n}]"), f"{field}[{n}]")[1])
        for n, reply in enumerate(replies)
    ]
    ranks = [_rank(reply, f"{field}[{n}].rank") for n, (reply, _text) in enumerate(answers)]
    asked = taking.ending_with_user(turns, field) if len(answers) > 1 else turns
    for one, other in taking.pairs_of(len(answers)):
        (first, text), (second, other_text) = answers[one], answers[other]
        verdict = _verdict(ranks[one], ranks[other])
        yield PairRow(
            place=item.place,
            offset=item.offset,
            messages=asked,
            first=text,
            second=other_text,
            language=fields.optional_text(question, "lang", f"{field}.lang", limit=16),
            first_producer=_maker(first, f"{field}[{one}]"),
            second_producer=_maker(second, f"{field}[{other}]"),
            labels=taking.one_label(options, verdict),
            gold=taking.gold(options, verdict),
            details={
                "first_message": first.get("message_id"),
                "second_message": second.get("message_id"),
                "ranks": [ranks[one], ranks[other]],
            },
        )


def _rank(reply: Mapping[str, Any], field: str) -> int | None:
    value = reply.get("rank")
    return None if value is None else taking.whole(value, field, 0, 1000)


def _verdict(one: int | None, other: int | None) -> str:
    return "" if one is None or other is None else taking.by_sign(other - one)


def _maker(reply: Mapping[str, Any], field: str) -> str:
    return taking.producer(reply.get("model_name"), f"{field}.model_name")


class _Group:
    """The messages of one tree that stand one after the other in a flat file."""

    def __init__(self, tree: str | None = None) -> None:
        self.tree = tree
        self._first: Item | None = None
        self._messages: dict[Any, dict[str, Any]] = {}
        self._root: dict[str, Any] | None = None

    def add(self, item: Item) -> RowError | None:
        """Put a message under its parent. The parent stands before it."""
        message = dict(item.value, replies=list(item.value.get("replies") or []))
        parent = message.get("parent_id")
        if parent is None:
            if self._root is not None:
                return RowError("two_roots", "parent_id")
            self._first, self._root = item, message
        elif parent in self._messages:
            self._messages[parent]["replies"].append(message)
        else:
            return RowError("no_parent", "parent_id")
        self._note(message)
        return None

    def _note(self, message: dict[str, Any]) -> None:
        """A message may hold replies, too; they can be parents as well."""
        waiting = [message]
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict) and isinstance(one.get("message_id"), str):
                if not isinstance(one.get("replies"), list):
                    one["replies"] = []
                self._messages[one["message_id"]] = one
                waiting += one["replies"]

    def rows(self, options: Options) -> Iterator[ParsedPair]:
        if self._first is not None:
            whole = Item(self._first.place, self._first.offset, value=self._root)
            yield from rows_of(whole, options, tree_pairs)


FORMAT = Format(
    "oasst",
    (
        frozenset({"message_tree_id", "prompt"}),
        frozenset({"message_id", "parent_id", "text", "role"}),
    ),
    parse,
)
