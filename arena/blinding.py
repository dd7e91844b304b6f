"""The seal of a round: canonical JSON, Merkle commitment, receipts, keyed randomness.

Pure: standard library only. Everything that is hashed is first written as canonical JSON
(RFC 8785, narrowed: no floats), so that a stand-alone script reproduces every byte.

Secrets of a round, each 32 bytes from the operating system:

* ``salt`` hides the allocation behind the root and is *published* at unsealing.
* ``seed`` drives sides, orders, pseudonyms and vote nonces and is *never published*: from a
  published key anyone could try all user ids against a pseudonym, or all verdicts against the
  bare receipt of an owner's vote.

Sources: RFC 6962 section 2.1 (tree hash, audit path), RFC 9162 section 2.1.3.2 (verification),
RFC 2104 (HMAC), RFC 8785 (canonical JSON).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")

SECRET_BYTES = 32
HASH_BYTES = 32
MAX_INTEGER = 2**53 - 1  # what every JSON reader keeps exactly
COMMITMENT_FORMAT = "palate-commitment-1"


class BlindingError(ValueError):
    """A value that cannot be sealed, or a seal that does not fit; the message says which."""


# --- canonical JSON ---------------------------------------------------------------------------


def canonical_json(value: object) -> bytes:
    """Return the one UTF-8 encoding of ``value``: sorted keys, no spaces, no normalisation.

    Accepts None, bool, int up to 2**53-1, str, and lists, tuples and string-keyed mappings of
    them. Floats (write a decimal string), lone surrogates and other types raise BlindingError.
    """
    try:
        text = json.dumps(
            _ordered(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise BlindingError("text holds a lone surrogate and has no UTF-8 form") from None


def _ordered(value: object) -> object:
    """Copy ``value`` with the keys of every mapping in UTF-16 order, refusing what JSON bends."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise BlindingError(f"integer {value} is beyond 2**53-1: write it as text")
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise BlindingError(f"key {key!r} is not text")
        return {key: _ordered(value[key]) for key in sorted(value, key=_utf16)}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    raise BlindingError(f"{type(value).__name__} has no canonical form: write it as text")


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def text_sha256(text: str) -> str:
    """Return the hex SHA-256 of ``text`` in UTF-8; a lone surrogate raises BlindingError."""
    try:
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
    except UnicodeEncodeError:
        raise BlindingError("text holds a lone surrogate and has no UTF-8 form") from None


# --- Merkle tree (RFC 6962) -------------------------------------------------------------------


def leaf_hash(leaf: bytes) -> bytes:
    """SHA-256(0x00 || leaf): the prefix keeps a leaf from posing as a node."""
    return hashlib.sha256(b"\x00" + leaf).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """Return the RFC 6962 tree hash of ``leaves`` in their order; no leaves: SHA-256 of nothing."""
    return _level_up([leaf_hash(leaf) for leaf in leaves])[0]


def _level_up(level: list[bytes], path: list[bytes] | None = None, index: int = 0) -> list[bytes]:
    """Fold ``level`` to its root, collecting the siblings of ``index`` in ``path``.

    Pairing neighbours and carrying an odd last node up is the same tree as the recursive
    split at the largest power of two in RFC 6962.
    """
    if not level:
        return [hashlib.sha256().digest()]
    while len(level) > 1:
        if path is not None:
            if index ^ 1 < len(level):
                path.append(level[index ^ 1])
            index //= 2
        paired = [_node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = paired + level[len(paired) * 2 :]
    return level


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the audit path of leaf ``index``, lowest sibling first, or raise IndexError."""
    if not 0 <= index < len(leaves):
        raise IndexError(f"leaf {index} of {len(leaves)}")
    path: list[bytes] = []
    _level_up([leaf_hash(leaf) for leaf in leaves], path, index)
    return path


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Say whether ``leaf`` stands at ``index`` of a tree of ``size`` leaves with ``root``."""
    if not 0 <= index < size:
        return False
    position, last, current = index, size - 1, leaf_hash(leaf)
    for sibling in proof:
        if last == 0 or len(sibling) != HASH_BYTES:
            return False
        if position % 2 or position == last:
            current = _node_hash(sibling, current)
            while position % 2 == 0 and position:
                position, last = position // 2, last // 2
        else:
            current = _node_hash(current, sibling)
        position, last = position // 2, last // 2
    return last == 0 and hmac.compare_digest(current, root)


# --- sealing a round --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SealedBattle:
    """One battle as the leaf commits to it. Ids are the random public ones, never row numbers.

    ``kind`` is "rotating" or "holdout"; ``sha256_x`` and ``sha256_y`` are of the texts as displayed
    (masked), ``prompt_sha256`` is of the canonical JSON of the question's turns, ``summary_sha256``
    of the persona summary ("" without one).
    """

    battle: str
    context: str
    stratum: str
    kind: str
    x: str
    y: str
    left_is_x: bool
    sha256_x: str
    sha256_y: str
    prompt_sha256: str
    summary_sha256: str


@dataclass(frozen=True, slots=True)
class RoundSeal:
    """Hex root and commitment, and the leaf number of each battle id."""

    root: str
    commitment: str
    leaf_of: Mapping[str, int]


def new_salt() -> bytes:
    """Return 32 fresh bytes for the leaf nonces of one round; published at unsealing."""
    return secrets.token_bytes(SECRET_BYTES)


def new_seed() -> bytes:
    """Return 32 fresh bytes for the orders, sides and pseudonyms of one round; never published."""
    return secrets.token_bytes(SECRET_BYTES)


def leaf_nonce(salt: bytes, battle_id: str) -> bytes:
    """Return HMAC-SHA256(salt, battle id): hides a leaf's few possible contents until unsealing."""
    _check_secret(salt, "salt")
    return hmac.digest(salt, battle_id.encode("utf-8"), "sha256")


def battle_leaf(battle: SealedBattle, nonce: bytes) -> bytes:
    """Return the leaf of ``battle``: canonical JSON of all its fields and the hex nonce."""
    return canonical_json({**asdict(battle), "nonce": nonce.hex()})


def commitment(protocol_json: bytes, root: bytes) -> str:
    """Return the hex commitment to a canonical protocol and an allocation root."""
    protocol_sha256 = hashlib.sha256(protocol_json).hexdigest()
    statement = {
        "format": COMMITMENT_FORMAT,
        "protocol_sha256": protocol_sha256,
        "root": root.hex(),
    }
    return hashlib.sha256(canonical_json(statement)).hexdigest()


def in_leaf_order(battles: Iterable[SealedBattle]) -> list[SealedBattle]:
    """Sort ``battles`` by public id, the leaf order; a repeated id raises BlindingError."""
    ordered = sorted(battles, key=lambda battle: battle.battle)
    for one, other in pairwise(ordered):
        if one.battle == other.battle:
            raise BlindingError(f"battle {one.battle} is allocated twice")
    return ordered


def allocation_leaves(battles: Iterable[SealedBattle], salt: bytes) -> list[bytes]:
    """Return the leaves of ``battles`` in leaf order: input of root and inclusion proofs."""
    return [battle_leaf(b, leaf_nonce(salt, b.battle)) for b in in_leaf_order(battles)]


def seal_allocation(
    protocol: Mapping[str, object], battles: Iterable[SealedBattle], salt: bytes
) -> RoundSeal:
    """Commit to ``protocol`` and ``battles``; the result is stored and shown at opening (V5)."""
    ordered = in_leaf_order(battles)
    root = merkle_root(allocation_leaves(ordered, salt))
    return RoundSeal(
        root=root.hex(),
        commitment=commitment(canonical_json(protocol), root),
        leaf_of={battle.battle: number for number, battle in enumerate(ordered)},
    )


# --- votes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """One revision of one rater's vote, as its receipt commits to it.

    ``verdicts`` maps axis to "left", "right", "tie" or "both_bad"; empty means taken back.
    ``revision`` counts from 1 per battle and rater. ``left_sha256`` and ``right_sha256`` are of the
    two texts as displayed. ``nonce`` is hex.
    """

    round: str
    battle: str
    rater: str
    revision: int
    verdicts: Mapping[str, str]
    left_sha256: str
    right_sha256: str
    nonce: str


def rater_pseudonym(seed: bytes, rater_id: str) -> str:
    """Return the 16-hex pseudonym of a rater in one round. ``seed``: the secret, never the salt."""
    return hmac.digest(derive_key(seed, "rater"), rater_id.encode("utf-8"), "sha256").hex()[:16]


def vote_nonce(seed: bytes, battle_id: str, rater: str, revision: int) -> str:
    """Return the hex nonce of one vote revision, from the secret seed, so a retry repeats it."""
    message = canonical_json([battle_id, rater, revision])
    return hmac.digest(derive_key(seed, "vote"), message, "sha256").hex()


def vote_receipt(record: VoteRecord) -> str:
    """Return the hex receipt that a rater keeps: SHA-256 of the record's canonical JSON."""
    fields = {**asdict(record), "verdicts": dict(record.verdicts)}
    return hashlib.sha256(canonical_json(fields)).hexdigest()


def vote_digest(receipts: Iterable[str]) -> str:
    """Return the hex Merkle root over the sorted hex ``receipts``, so that order says nothing.

    A receipt that occurs twice raises BlindingError: it would count one vote twice.
    """
    ordered = sorted(bytes.fromhex(receipt) for receipt in receipts)
    if len(set(ordered)) != len(ordered):
        raise BlindingError("a vote receipt occurs twice")
    return merkle_root(ordered).hex()


# --- keyed randomness -------------------------------------------------------------------------


def derive_key(seed: bytes, purpose: str) -> bytes:
    """Return a 32-byte key of its own for each ``purpose`` of one seed."""
    _check_secret(seed, "seed")
    return hmac.digest(seed, b"palate:" + purpose.encode("utf-8"), "sha256")


def _check_secret(secret: bytes, name: str) -> None:
    if len(secret) < SECRET_BYTES:
        raise BlindingError(f"{name} has {len(secret)} bytes, at least {SECRET_BYTES} are needed")


class SeededStream:
    """Unpredictable without the seed, the same with it: HMAC-SHA256 in counter mode.

    Two labels of one seed give independent streams.
    """

    def __init__(self, seed: bytes, label: str) -> None:
        self._key = derive_key(seed, "stream:" + label)
        self._counter = 0
        self._pool = b""

    def word(self) -> int:
        """Return the next 64 bits."""
        if not self._pool:
            self._pool = hmac.digest(self._key, self._counter.to_bytes(8, "big"), "sha256")
            self._counter += 1
        head, self._pool = self._pool[:8], self._pool[8:]
        return int.from_bytes(head, "big")

    def below(self, bound: int) -> int:
        """Return an unbiased integer in [0, bound), 1 <= bound <= 2**64, by rejection."""
        if not 1 <= bound <= 1 << 64:
            raise BlindingError(f"bound {bound} is not within 1 and 2**64")
        limit = (1 << 64) - (1 << 64) % bound
        while (word := self.word()) >= limit:
            pass
        return word % bound

    def coin(self) -> bool:
        """Return a fair coin."""
        return bool(self.below(2))

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Shuffle in place (Fisher-Yates)."""
        for last in range(len(items) - 1, 0, -1):
            chosen = self.below(last + 1)
            items[last], items[chosen] = items[chosen], items[last]

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Return a shuffled copy of ``items``, in their given order."""
        copy = list(items)
        self.shuffle(copy)
        return copy


def seeded_coin(seed: bytes, *parts: str) -> bool:
    """Return the one fair coin that belongs to ``seed`` and ``parts``."""
    message = canonical_json(list(parts))
    return bool(hmac.digest(derive_key(seed, "coin"), message, "sha256")[0] & 1)
