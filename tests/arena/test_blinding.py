"""The seal: canonical bytes, Merkle proofs, commitments, receipts, keyed randomness."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.blinding import (
    BlindingError,
    SealedBattle,
    SeededStream,
    VoteRecord,
    allocation_leaves,
    battle_leaf,
    canonical_json,
    commitment,
    derive_key,
    in_leaf_order,
    inclusion_proof,
    leaf_nonce,
    merkle_root,
    new_salt,
    new_seed,
    rater_pseudonym,
    seal_allocation,
    seeded_coin,
    text_sha256,
    verify_inclusion,
    vote_digest,
    vote_nonce,
    vote_receipt,
)

SALT, SEED = b"s" * 32, b"k" * 32
BATTLE = SealedBattle("b1", "c1", "expert", "rotating", "m1", "m2", True, *(n * 64 for n in "0123"))
VERDICTS = {"quality": "left", "personalization": "tie"}
RECORD = VoteRecord("r1", "b1", "p1", 1, VERDICTS, "0" * 64, "1" * 64, "ab")

# RFC 6962 test leaves and roots, as in the reference implementation (certificate-transparency).
CT_LEAVES = [
    bytes.fromhex(leaf)
    for leaf in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
CT_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


# --- canonical JSON ---


def test_rfc_8785_example_of_keys_and_escapes() -> None:
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "ö": 7}
    keys = list(json.loads(canonical_json(value)))
    assert keys == ["\r", "1", "\x80", "ö", "\u20ac", "\U0001f600", "\ufb33"]
    assert canonical_json('\x0f\n"\\/é\x7f') == '"\\u000f\\n\\"\\\\/é\x7f"'.encode()


def test_text_is_not_normalised() -> None:
    assert canonical_json("é") != canonical_json("e\u0301")


@pytest.mark.parametrize(
    "value", [1.5, float("nan"), {1: 2}, {"a": {1}}, 2**53, b"x", "\ud800", {"\udfff": 1}, [0.0]]
)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(BlindingError):
        canonical_json(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_canonical_json_round_trips_and_is_stable(value: object) -> None:
    raw = canonical_json(value)
    assert json.loads(raw) == value
    assert canonical_json(json.loads(raw)) == raw


@given(st.dictionaries(st.text(), st.integers(0, 9), min_size=2, max_size=6))
def test_key_order_does_not_matter(value: dict[str, int]) -> None:
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))


# --- Merkle ---


@pytest.mark.parametrize("size", range(9))
def test_published_tree_hashes(size: int) -> None:
    assert merkle_root(CT_LEAVES[:size]).hex() == CT_ROOTS[size]


def _recursive_root(leaves: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, word for word."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    children = _recursive_root(leaves[:split]) + _recursive_root(leaves[split:])
    return hashlib.sha256(b"\x01" + children).digest()


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=40), st.data())
def test_every_leaf_proves_itself_and_nothing_else(
    leaves: list[bytes], data: st.DataObject
) -> None:
    root = merkle_root(leaves)
    assert root == _recursive_root(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof = inclusion_proof(leaves, index)
    assert verify_inclusion(leaves[index], index, len(leaves), proof, root)
    assert not verify_inclusion(leaves[index] + b"!", index, len(leaves), proof, root)
    assert not verify_inclusion(leaves[index], index, len(leaves), [*proof, b"x" * 32], root)
    assert not verify_inclusion(leaves[index], index, len(leaves), proof, b"x" * 32)
    assert not verify_inclusion(leaves[index], len(leaves), len(leaves), proof, root)
    if proof:
        assert not verify_inclusion(leaves[index], index, len(leaves), proof[:-1], root)
        other = data.draw(st.integers(0, len(leaves) - 1))
        if leaves[other] != leaves[index]:
            assert not verify_inclusion(leaves[index], other, len(leaves), proof, root)


def test_a_node_cannot_pose_as_a_leaf() -> None:
    a, b = (hashlib.sha256(b"\x00" + leaf).digest() for leaf in (b"a", b"b"))
    assert merkle_root([b"a", b"b"]) != merkle_root([a + b])


def test_no_proof_for_a_leaf_that_is_not_there() -> None:
    with pytest.raises(IndexError):
        inclusion_proof([b"a"], 1)


# --- the seal ---


@pytest.mark.parametrize(
    "change",
    [
        {"battle": "b2"}, {"context": "c2"}, {"stratum": "novice"}, {"kind": "holdout"},
        {"x": "m3"}, {"y": "m3"}, {"left_is_x": False}, {"sha256_x": "2" * 64},
        {"sha256_y": "2" * 64}, {"x": "m2", "y": "m1"},
        {"prompt_sha256": "4" * 64}, {"summary_sha256": ""},
    ],
)  # fmt: skip
def test_the_leaf_covers_every_field(change: dict[str, object]) -> None:
    changed = replace(BATTLE, **change)  # type: ignore[arg-type]
    assert battle_leaf(changed, b"n") != battle_leaf(BATTLE, b"n")


def test_the_commitment_covers_protocol_root_and_salt() -> None:
    battles = [BATTLE, replace(BATTLE, battle="b0", left_is_x=False)]
    seal = seal_allocation({"weights": {"quality": 60}}, battles, SALT)
    assert seal.leaf_of == {"b0": 0, "b1": 1}
    assert seal == seal_allocation({"weights": {"quality": 60}}, battles[::-1], SALT)
    others = [
        seal_allocation({"weights": {"quality": 61}}, battles, SALT),
        seal_allocation({"weights": {"quality": 60}}, battles, b"t" * 32),
        seal_allocation({"weights": {"quality": 60}}, battles[:1], SALT),
    ]
    assert seal.commitment not in {other.commitment for other in others}


def test_a_receipted_battle_can_be_proved_in() -> None:
    battles = [replace(BATTLE, battle=f"b{i}") for i in range(7)]
    seal = seal_allocation({}, battles, SALT)
    leaves = allocation_leaves(battles, SALT)
    proof = inclusion_proof(leaves, seal.leaf_of["b3"])
    leaf = battle_leaf(battles[3], leaf_nonce(SALT, "b3"))
    assert verify_inclusion(leaf, 3, 7, proof, bytes.fromhex(seal.root))
    assert commitment(canonical_json({}), bytes.fromhex(seal.root)) == seal.commitment


def test_a_battle_cannot_be_sealed_twice() -> None:
    with pytest.raises(BlindingError, match="b1"):
        in_leaf_order([BATTLE, BATTLE])


def test_short_secrets_are_refused() -> None:
    with pytest.raises(BlindingError):
        leaf_nonce(b"short", "b1")
    with pytest.raises(BlindingError):
        derive_key(b"", "x")


def test_fresh_secrets_differ() -> None:
    assert len({new_salt(), new_salt(), new_seed(), new_seed()}) == 4
    assert len(new_salt()) == 32


def test_text_hash_is_plain_sha256_of_utf8() -> None:
    assert text_sha256("汉") == hashlib.sha256("汉".encode()).hexdigest()
    with pytest.raises(BlindingError):
        text_sha256("\ud800")


# --- votes ---


@pytest.mark.parametrize(
    "change",
    [
        {"round": "r2"}, {"battle": "b2"}, {"rater": "p2"}, {"revision": 2}, {"nonce": "cd"},
        {"verdicts": {"quality": "right", "personalization": "tie"}}, {"verdicts": {}},
        {"left_sha256": "2" * 64}, {"right_sha256": "2" * 64},
        {"left_sha256": "1" * 64, "right_sha256": "0" * 64},
    ],
)  # fmt: skip
def test_the_receipt_covers_every_field(change: dict[str, object]) -> None:
    assert vote_receipt(replace(RECORD, **change)) != vote_receipt(RECORD)  # type: ignore[arg-type]


def test_the_receipt_ignores_the_order_of_axes() -> None:
    turned = replace(RECORD, verdicts={"personalization": "tie", "quality": "left"})
    assert vote_receipt(turned) == vote_receipt(RECORD)


@given(st.permutations([text_sha256(str(i)) for i in range(6)]))
def test_the_digest_ignores_order_and_sees_a_missing_vote(receipts: list[str]) -> None:
    assert vote_digest(receipts) == vote_digest(sorted(receipts))
    assert vote_digest(receipts[1:]) != vote_digest(receipts)


def test_the_digest_refuses_a_double_vote() -> None:
    with pytest.raises(BlindingError):
        vote_digest([text_sha256("a")] * 2)


def test_pseudonyms_and_nonces_need_the_seed() -> None:
    assert rater_pseudonym(SEED, "7") == rater_pseudonym(SEED, "7")
    assert rater_pseudonym(SEED, "7") != rater_pseudonym(SALT, "7")
    assert vote_nonce(SEED, "b", "p", 1) != vote_nonce(SEED, "b", "p", 2)
    assert vote_nonce(SEED, "b1", "p", 1) != vote_nonce(SEED, "b", "1p", 1)


# --- keyed randomness ---


def test_streams_repeat_by_seed_and_differ_by_label() -> None:
    def words(seed: bytes, label: str) -> list[int]:
        stream = SeededStream(seed, label)
        return [stream.word() for _ in range(9)]

    assert words(SEED, "a") == words(SEED, "a")
    assert words(SEED, "a") != words(SEED, "b")
    assert words(SEED, "a") != words(SALT, "a")
    assert len(set(words(SEED, "a"))) == 9


def test_below_is_fair_and_bounded() -> None:
    stream = SeededStream(SEED, "dice")
    rolls = Counter(stream.below(6) for _ in range(12_000))
    assert set(rolls) == set(range(6))
    assert sum((n - 2000) ** 2 / 2000 for n in rolls.values()) < 25.7  # chi2, 5 df, p = 0.0001
    for bound in (0, -1, 2**64 + 1):
        with pytest.raises(BlindingError):
            stream.below(bound)


def test_every_order_of_three_is_equally_likely() -> None:
    stream = SeededStream(SEED, "orders")
    orders = Counter(tuple(stream.shuffled("abc")) for _ in range(6000))
    assert len(orders) == 6
    assert sum((n - 1000) ** 2 / 1000 for n in orders.values()) < 25.7


def test_coins_are_fair_and_their_parts_do_not_run_together() -> None:
    heads = sum(seeded_coin(SEED, "side", str(i)) for i in range(4000))
    assert abs(heads - 2000) < 4 * 32
    pairs = [(seeded_coin(SEED, f"{i}", "0"), seeded_coin(SEED, f"{i}0")) for i in range(200)]
    assert any(a != b for a, b in pairs)
