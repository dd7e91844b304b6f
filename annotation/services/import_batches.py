"""One batch of pairs into a project, for real or to see what would come of it.

The number of statements of a batch does not depend on how many rows there are already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from annotation.enums import ItemState
from annotation.formats.rows import flipped
from annotation.models import Decision, GoldItem, Item, ItemOrigin, ItemText, Project
from annotation.services.gold import rescore_item
from annotation.services.import_labels import (
    Planned,
    members_by_name,
    old_items,
    plan_labels,
    write_labels,
)
from annotation.services.import_rows import Entry, PairBatch, check_row, gold_said_first
from annotation.services.item_locks import lock_items
from annotation.services.items import add_items
from annotation.services.settling import point_at_newest
from webapp.catalog.enums import Where
from webapp.catalog.formats.rows import Refusal, RowError
from webapp.catalog.models import Answer, ImportRun
from webapp.catalog.scratch import Scratch
from webapp.catalog.services.answers import note_exposure
from webapp.catalog.services.importers import Stored
from webapp.catalog.services.personas import get_or_create_versions
from webapp.catalog.services.prompts import get_or_create_prompts
from webapp.catalog.texts import excerpt, sha256

STAYS = (ItemState.HELD, ItemState.DROPPED)  # what a file may say of a pair's state


def store_pairs(batch: PairBatch, run: ImportRun, scratch: Scratch) -> Stored:
    """Write a batch in the caller's transaction; in a dry run it is taken back."""
    with transaction.atomic():
        project = _locked(run)
        entries = batch.entries
        _check(project, entries, gold=bool(run.options.get("gold")))
        _add(project, _good(entries), run)
        planned = plan_labels(project, _good(entries), scratch)
        _check_gold(_good(entries), scratch)
        _take_back(entries)
        _tell_new(entries, scratch)
        planned = [plan for plan in planned if plan.entry.bad is None]
        _write(project, _good(entries), planned, run)
        if run.dry_run:
            transaction.set_rollback(True)
    return _summary(batch)


def _locked(run: ImportRun) -> Project:
    """The project, locked: imports into one project take turns."""
    assert run.subject is not None
    rows = Project.objects.select_for_update(no_key=True).filter(pk=run.subject)
    list(rows.values_list("pk", flat=True))
    return Project.objects.get(pk=run.subject)


def _good(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.bad is None]


def _check(project: Project, entries: Sequence[Entry], *, gold: bool) -> None:
    for entry in entries:
        try:
            check_row(entry.row, project, gold=gold)
        except RowError as bad:
            entry.bad = bad


def _add(project: Project, entries: Sequence[Entry], run: ImportRun) -> None:
    """Personas, prompts, items: always in this order, so that no two imports wait in a circle."""
    versions = get_or_create_versions(specs=[e.row.persona for e in entries if e.row.persona])
    for entry in entries:
        found = versions[entry.row.persona] if entry.row.persona else None
        if isinstance(found, RowError):
            entry.bad = found
        else:
            entry.version_id = found
    good = _good(entries)
    prompts = get_or_create_prompts(specs=[entry.prompt for entry in good])
    drafts = [entry.draft(run.file_name, prompts[entry.prompt.digest]) for entry in good]
    added = add_items(project=project, drafts=drafts, imported_in=run)
    for entry, result in zip(good, added, strict=True):
        entry.added = result
    _lock_old(project, good)


def _lock_old(project: Project, entries: Sequence[Entry]) -> None:
    """Nobody takes or gives back a place of the old items until this batch stands.

    Those who labelled what is gold, or becomes it now, are scored again: they are locked before.
    """
    old = old_items(entries)
    said = {entry.item_id for entry in entries if entry.row.gold} & old

    def gold() -> set[int]:
        return said | set(GoldItem.objects.filter(item__in=old).values_list("item", flat=True))

    on_gold = gold()
    names = {
        label.annotator
        for entry in entries
        if entry.item_id in on_gold
        for label in entry.row.labels
    }
    known = members_by_name(project, names).values()
    lock_items(old, scored=gold, members=[member.pk for member in known])


# Gold


def _check_gold(entries: Sequence[Entry], scratch: Scratch) -> None:
    """Refuse a known answer that contradicts the one that holds."""
    rows = [entry for entry in entries if entry.row.gold]
    if not rows:
        return
    held = _gold_held(rows)
    dropped = Item.objects.filter(pk__in=old_items(rows), state=ItemState.DROPPED)
    gone = set(dropped.values_list("pk", flat=True))
    for entry in rows:
        known = held.get(entry.item_id)
        if entry.item_id in gone:
            entry.bad = RowError("item_dropped")
        elif (known is not None and known != _gold(entry)) or not gold_said_first(entry, scratch):
            entry.bad = RowError("gold_conflict", "gold")


def _gold(entry: Entry) -> dict[str, str]:
    """The known answer as the item holds its sides."""
    assert entry.added is not None
    swapped = entry.added.swapped
    return {axis: flipped(v) if swapped else v for axis, v in entry.row.gold.items()}


def _gold_held(entries: Sequence[Entry]) -> dict[int, dict[str, str]]:
    """The known answers that the project has, by item."""
    found: dict[int, dict[str, str]] = {}
    for row in GoldItem.objects.filter(item__in=old_items(entries)).order_by("n"):
        said = {"quality": row.quality, "personalization": row.personalization}
        found[row.item_id] = {axis: verdict for axis, verdict in said.items() if verdict}
        if not row.active:
            del found[row.item_id]
    return found


def _make_gold(entries: Sequence[Entry], run: ImportRun) -> None:
    rows = [entry for entry in entries if entry.row.gold]
    held = set(_gold_held(rows))
    fresh = {e.item_id: e for e in reversed(rows) if e.item_id not in held}
    if not fresh:
        return
    numbers = Counter(
        GoldItem.objects.filter(item__in=list(fresh)).values_list("item_id", flat=True)
    )
    GoldItem.objects.bulk_create(
        [
            GoldItem(item_id=pk, n=numbers[pk] + 1, **_gold(entry), created_by=run.created_by)
            for pk, entry in sorted(fresh.items())
        ]
    )
    # What is held back is looked at first; when it is released it is gold.
    given_out = Item.objects.filter(pk__in=list(fresh)).exclude(state__in=STAYS)
    given_out.update(state=ItemState.GOLD)
    labelled = Item.objects.filter(
        pk__in=old_items(rows) & set(fresh), done__gt=0, state=ItemState.GOLD
    )
    for item in labelled.order_by("pk"):
        rescore_item(item)


# Refused after all


def _take_back(entries: Sequence[Entry]) -> None:
    """Remove the items that only refused rows have made."""
    kept = {entry.item_id for entry in _good(entries)}
    added = [entry.added for entry in entries if entry.bad and entry.added and entry.added.new]
    gone = [result.item_id for result in added if result.item_id not in kept]
    if gone:
        for model in (ItemText, ItemOrigin):
            model.objects.filter(item__in=gone).delete()
        Item.objects.filter(pk__in=gone).delete()


def _tell_new(entries: Sequence[Entry], scratch: Scratch) -> None:
    """Which row brought an item: the first good one of the file."""
    made = {entry.item_id for entry in entries if entry.added and entry.added.new}
    for entry in _good(entries):
        is_first = scratch.is_new("item", *entry.key, value="")
        entry.new = is_first and entry.item_id in made


# Writing


def _write(
    project: Project, entries: Sequence[Entry], planned: Sequence[Planned], run: ImportRun
) -> None:
    new = [entry for entry in entries if entry.new]
    _set_states(new)
    decided = [entry for entry in new if _is_decided(entry, project)]
    fixed = {entry.item_id for entry in new if entry.row.state in STAYS}
    touched = {plan.entry.item_id for plan in planned}
    write_labels(planned, settle=touched - {entry.item_id for entry in decided} - fixed)
    _write_decisions(decided, fixed)
    _make_gold(entries, run)
    if run.created_by_id and not run.dry_run:
        _note_exposures(entries, run.created_by)


def _is_decided(entry: Entry, project: Project) -> bool:
    """A pair holds its file's outcome on every axis; a synthetic one is about one axis only."""
    decided = set(entry.row.decisions)
    return decided >= set(project.axes) or (entry.row.synthetic and bool(decided))


def _set_states(entries: Sequence[Entry]) -> None:
    """What the file says of a pair goes before what we think of it."""
    said = [entry for entry in entries if entry.row.state]
    for state in STAYS:
        pks = [entry.item_id for entry in said if entry.row.state == state]
        Item.objects.filter(pk__in=pks).update(state=state)
    others = [entry.item_id for entry in said if entry.row.state not in STAYS]
    Item.objects.filter(pk__in=others, state=ItemState.HELD).update(state=ItemState.OPEN)


def _write_decisions(entries: Sequence[Entry], fixed: set[int]) -> None:
    """Decisions of our own files stand as they are."""
    if not entries:
        return
    rows = [
        Decision(
            item_id=entry.item_id,
            axis=axis,
            n=1,
            verdict=spec.verdict,
            source=spec.source,
            posterior=dict(spec.posterior),
            labels=spec.labels,
            blind_verdict=spec.blind_verdict,
            reason=spec.reason,
            note=spec.note,
        )
        for entry in entries
        for axis, spec in entry.row.decisions.items()
    ]
    Decision.objects.bulk_create(rows)
    # An adjudicator may have left an axis open for good: then the file says that it is done.
    done = {e.item_id for e in entries if e.row.state == ItemState.DONE}
    open_ones = {row.item_id for row in rows if not row.verdict} - done
    every = {row.item_id for row in rows}
    point_at_newest(sorted(every - open_ones - fixed), ItemState.DONE)
    point_at_newest(sorted(open_ones - fixed), ItemState.DISPUTED)
    for state in STAYS:
        pks = [e.item_id for e in entries if e.row.state == state]
        point_at_newest(pks, state)


def _note_exposures(entries: Sequence[Entry], user: Any) -> None:
    """Who imports a text has met every answer that has it, and never votes on one (V7)."""
    hashes = {h for entry in entries for h in (entry.first_sha256, entry.second_sha256)}
    answers = Answer.objects.filter(text_sha256__in=hashes).order_by("pk")
    note_exposure(
        user=user, answers=list(answers.values_list("pk", flat=True)), where=Where.IMPORTED
    )


# What came of it


def _summary(batch: PairBatch) -> Stored:
    result = Stored(counts=Counter(), tallies={})
    tallies: dict[str, Counter[str]] = {
        name: Counter() for name in ("flags", "producers", "annotators")
    }
    for entry in batch.parsed:
        if isinstance(entry, Refusal):
            result.refusals.append(entry)
        elif entry.bad is not None:
            row = entry.row
            result.refusals.append(Refusal.at(row.place, entry.bad, row.offset, row.raw))
        else:
            result.added += entry.new
            result.known += not entry.new
            _count(entry, result.counts, tallies)
            result.samples.append((sha256(str(entry.key)), _sample(entry)))
    result.tallies = {name: dict(tally) for name, tally in tallies.items()}
    result.counts = dict(result.counts)
    return result


def _count(entry: Entry, counts: dict[str, int], tallies: dict[str, Counter[str]]) -> None:
    row = entry.row
    counts["labels_added"] += entry.labels_added
    counts["labels_known"] += entry.labels_known
    counts["labels_repeated"] += entry.labels_repeated
    counts["labels_beside"] += entry.labels_beside
    counts["unlabelled"] += not row.labels and not row.gold
    counts["gold"] += bool(row.gold)
    if entry.new and entry.added and row.state in ("", ItemState.HELD):
        tallies["flags"].update(entry.added.flags)
    tallies["annotators"].update(label.annotator for label in row.labels)
    tallies["producers"].update(name for name in (row.first_producer, row.second_producer) if name)


def _sample(entry: Entry) -> dict[str, Any]:
    """Excerpts for the preview, without producers. The hashes tell later what a seal covers."""
    row = entry.row
    return {
        "persona": row.persona.summary if row.persona else "",
        "prompt": excerpt(row.messages[-1][1]),
        "turns": len(row.messages),
        "first": excerpt(row.first),
        "second": excerpt(row.second),
        "labels": [dict(label.verdicts) for label in row.labels[:5]],
        "gold": dict(row.gold),
        "hashes": [entry.first_sha256, entry.second_sha256],
    }
