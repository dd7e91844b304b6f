"""The published bundle of an unsealed round: what is in it, and how it is built.

Pure: standard library only. ``arena/verify_bundle.py`` checks a bundle without any of this.

Format ``palate-bundle`` version 1, a zip of these UTF-8 files ("canonical" = RFC 8785 without
floats: sorted keys, no spaces; a .jsonl has one canonical object and a newline per line):

``protocol.json``    canonical, byte for byte what the commitment covers. Needed keys: "round"
                     (text), "contestants" (list of different texts, or of objects with "id"),
                     "axes" (list of texts), "raters" (list of pseudonyms). Weights and the rest of
                     the pre-registration are free-form.
``allocation.jsonl`` one line per battle, in leaf order: battle, context, stratum, kind ("rotating"
                     or "holdout"), x, y, left_is_x, sha256_x, sha256_y, prompt_sha256,
                     summary_sha256 ("" without a persona), leaf (its number from 0). The leaf is
                     the canonical line without "leaf" and with "nonce" =
                     hex(HMAC-SHA256(salt, battle)). x and y are hashed as displayed, the question
                     as canonical [{content, role}, ...].
``texts.jsonl``      {sha256, text} of every text of the rotating contexts, sorted by hash, each
                     once; none that only holdout contexts show.
``votes.jsonl``      every revision of every vote by a rater who is not the persona's owner, sorted
                     by (battle, rater, revision): battle, rater (pseudonym), revision (from 1),
                     verdicts ({axis: left | right | tie | both_bad}; {} = taken back), left_sha256
                     and right_sha256 (of the texts as displayed), nonce, receipt. Receipt =
                     SHA-256 of the canonical {round, battle, rater, revision, verdicts,
                     left_sha256, right_sha256, nonce}.
``owner_votes.json`` votes of personas' owners, in aggregate only: "receipts" (all revisions,
                     sorted, no battle) and "counts": [{x, y, axis, verdict: x | y | tie |
                     both_bad, n}] over the standing votes, x before y by name.
``manifest.json``    format, version, round, salt (hex), root, commitment, vote_digest (Merkle root
                     over the sorted receipts of both vote files), counts {battles, texts, votes,
                     raters, owner_receipts}, erased (hashes of rotating texts that are gone because
                     consent was withdrawn; their hashes stay in the allocation), audit ({n, hash}
                     of the audit line that records the unsealing, or null).

Merkle trees are those of RFC 6962; commitment = SHA-256 of canonical {format:
"palate-commitment-1", protocol_sha256, root}. Of persona summaries and prompts a bundle has
hashes alone; it has no user ids, comments or times, and the secret seed stays secret (see
``arena.blinding``).
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import BinaryIO

from arena.blinding import (
    BlindingError,
    SealedBattle,
    VoteRecord,
    canonical_json,
    in_leaf_order,
    seal_allocation,
    text_sha256,
    vote_digest,
    vote_receipt,
)

FORMAT, VERSION = "palate-bundle", 1
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold
_UNIX, _READABLE = 3, 0o644 << 16


class BundleError(ValueError):
    """The parts of a bundle contradict each other; publishing it would fail verification."""


@dataclass(frozen=True, slots=True)
class BundleVote:
    """A vote revision with its place: ``owner`` marks votes by the persona's owner."""

    record: VoteRecord
    owner: bool = False


@dataclass(frozen=True, slots=True)
class BundleInput:
    """Everything that a bundle is made of. ``texts`` maps a displayed text's hash to the text.

    ``texts`` may hold those of holdout contexts too: they are left out. ``commitment`` is the one
    stored at opening and ``vote_digest`` the one stored at closing; building refuses to publish
    anything that does not lead to them. ``audit`` is number and hash of the line of the unsealing.
    """

    protocol: Mapping[str, object]
    battles: Sequence[SealedBattle]
    salt: bytes
    commitment: str
    vote_digest: str
    votes: Sequence[BundleVote]
    texts: Mapping[str, str]
    erased: frozenset[str] = frozenset()
    audit: tuple[int, str] | None = None


def build_bundle(source: BundleInput) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, content) of the bundle; the same input gives the same bytes.

    Raises BundleError when commitment or vote digest do not fit, a text is missing or altered, or a
    vote is on a foreign battle, of another round, by a rater that the protocol does not list, or on
    other texts than those of its battle.
    """
    check_protocol(source.protocol)
    seal = seal_allocation(source.protocol, source.battles, source.salt)
    if seal.commitment != source.commitment:
        raise BundleError("protocol, allocation and salt do not lead to the stored commitment")
    battles = in_leaf_order(source.battles)
    _check_votes(source, {battle.battle: battle for battle in battles})
    open_votes = [vote.record for vote in source.votes if not vote.owner]
    owner_votes = [vote.record for vote in source.votes if vote.owner]
    texts = _rotating_texts(battles, source)
    yield "protocol.json", canonical_json(source.protocol)
    yield "allocation.jsonl", _lines({**asdict(b), "leaf": n} for n, b in enumerate(battles))
    yield "texts.jsonl", _lines({"sha256": key, "text": texts[key]} for key in sorted(texts))
    yield "votes.jsonl", _lines(map(_vote_line, sorted(open_votes, key=_vote_key)))
    yield "owner_votes.json", canonical_json(_owner_part(owner_votes, battles))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "round": source.protocol["round"],
        "salt": source.salt.hex(),
        "root": seal.root,
        "commitment": seal.commitment,
        "vote_digest": source.vote_digest,
        "counts": {
            "battles": len(battles),
            "texts": len(texts),
            "votes": len(open_votes),
            "raters": len({record.rater for record in open_votes}),
            "owner_receipts": len(owner_votes),
        },
        "erased": sorted(_wanted_texts(battles) & source.erased - set(texts)),
        "audit": {"n": source.audit[0], "hash": source.audit[1]} if source.audit else None,
    }
    yield "manifest.json", canonical_json(manifest)


def check_protocol(protocol: Mapping[str, object]) -> None:
    """Raise BundleError unless a bundle of ``protocol`` could be verified. Call before sealing:
    what the commitment covers cannot be mended afterwards.
    """
    canonical_json(protocol)
    if not isinstance(protocol.get("round"), str):
        raise BundleError("the protocol needs the round's id as text in 'round'")
    if not _are_texts(protocol.get("axes")):
        raise BundleError("the protocol needs a list of texts in 'axes'")
    listed = protocol.get("contestants")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        listed = [item.get("id") if isinstance(item, Mapping) else item for item in listed]
    if not _are_texts(listed):
        raise BundleError("the protocol needs texts, or objects with 'id', in 'contestants'")
    if not _are_texts(protocol.get("raters")):
        raise BundleError("the protocol needs a list of pseudonyms in 'raters'")


def _are_texts(value: object) -> bool:
    """Whether ``value`` lists texts, at least one and none twice."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return all(isinstance(item, str) for item in value) and 0 < len(value) == len(set(value))


def write_zip(files: Iterable[tuple[str, bytes]], target: BinaryIO) -> None:
    """Write ``files`` as a zip without times, users or platform: equal input, equal bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in files:
            info = zipfile.ZipInfo(name, date_time=_EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system, info.external_attr = _UNIX, _READABLE
            archive.writestr(info, content)


def _lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    return b"".join(canonical_json(row) + b"\n" for row in rows)


def _check_votes(source: BundleInput, battles: Mapping[str, SealedBattle]) -> None:
    raters = source.protocol["raters"]
    assert isinstance(raters, Sequence), "check_protocol has looked"
    listed = set(raters)
    for record in (vote.record for vote in source.votes):
        battle = battles.get(record.battle)
        if battle is None:
            raise BundleError(f"a vote is on battle {record.battle}, which is not allocated")
        if record.round != source.protocol["round"]:
            raise BundleError(f"a vote on battle {record.battle} is of another round")
        if record.rater not in listed:
            raise BundleError(f"a vote on battle {record.battle} is by a rater that is not listed")
        if (record.left_sha256, record.right_sha256) != displayed(battle):
            raise BundleError(f"a vote on battle {record.battle} is on other texts than its own")
    if vote_digest(vote_receipt(vote.record) for vote in source.votes) != source.vote_digest:
        raise BundleError("the votes do not lead to the stored vote digest")


def displayed(battle: SealedBattle) -> tuple[str, str]:
    """Return the hashes of the two texts, left first."""
    x, y = battle.sha256_x, battle.sha256_y
    return (x, y) if battle.left_is_x else (y, x)


def _wanted_texts(battles: Iterable[SealedBattle]) -> set[str]:
    return {key for b in battles if b.kind == "rotating" for key in (b.sha256_x, b.sha256_y)}


def _rotating_texts(battles: Iterable[SealedBattle], source: BundleInput) -> dict[str, str]:
    """Return the texts to publish by hash, checked against it."""
    texts = source.texts
    wanted = _wanted_texts(battles) - (source.erased - set(texts))
    for key in wanted:
        if key not in texts:
            raise BundleError(f"the text with hash {key} is missing")
        if text_sha256(texts[key]) != key:
            raise BundleError(f"the text with hash {key} was altered after sealing")
    return {key: texts[key] for key in wanted}


def _vote_key(record: VoteRecord) -> tuple[str, str, int]:
    return record.battle, record.rater, record.revision


def _vote_line(record: VoteRecord) -> dict[str, object]:
    return {
        "battle": record.battle,
        "rater": record.rater,
        "revision": record.revision,
        "verdicts": dict(record.verdicts),
        "left_sha256": record.left_sha256,
        "right_sha256": record.right_sha256,
        "nonce": record.nonce,
        "receipt": vote_receipt(record),
    }


def _owner_part(
    records: Sequence[VoteRecord], battles: Iterable[SealedBattle]
) -> dict[str, object]:
    """Count the standing owner votes per pair, axis and resolved verdict."""
    by_id = {battle.battle: battle for battle in battles}
    standing: dict[tuple[str, str], VoteRecord] = {}
    for record in sorted(records, key=_vote_key):
        standing[record.battle, record.rater] = record
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for record in standing.values():
        battle = by_id[record.battle]
        x, y = sorted((battle.x, battle.y))
        for axis, verdict in record.verdicts.items():
            counts[x, y, axis, resolve(battle, verdict, x)] += 1
    rows = [
        {"x": x, "y": y, "axis": axis, "verdict": verdict, "n": n}
        for (x, y, axis, verdict), n in sorted(counts.items())
    ]
    return {"receipts": sorted(map(vote_receipt, records)), "counts": rows}


def resolve(battle: SealedBattle, verdict: str, first: str) -> str:
    """Turn "left" and "right" into "x" if ``first`` won and "y" if the other did."""
    if verdict in ("tie", "both_bad"):
        return verdict
    if verdict not in ("left", "right"):
        raise BlindingError(f"unknown verdict {verdict!r}")
    winner = battle.x if (verdict == "left") == battle.left_is_x else battle.y
    return "x" if winner == first else "y"
