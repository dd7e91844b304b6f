"""The published bundle: what is in it, and that every kind of tampering is seen."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from arena import verify_bundle
from arena.blinding import (
    SealedBattle,
    VoteRecord,
    canonical_json,
    seal_allocation,
    text_sha256,
    vote_digest,
    vote_nonce,
    vote_receipt,
)
from arena.bundles import (
    BundleError,
    BundleInput,
    BundleVote,
    build_bundle,
    check_protocol,
    displayed,
    resolve,
    write_zip,
)

SALT, SEED = b"s" * 32, b"k" * 32
PROTOCOL: dict[str, object] = {
    "round": "r-2f",
    "contestants": [{"id": "alpha", "version": "1"}, {"id": "beta"}, {"id": "γάμμα"}],
    "axes": ["quality", "personalization"],
    "raters": ["p1", "p2", "p3", "p4"],
    "weights": {"quality": 60, "personalization": 40},
}
TEXTS = {text_sha256(text): text for text in ("One.", "Zwei.", "三。", "geheim 1", "geheim 2")}
ONE, TWO, THREE, SECRET, SECRET2 = TEXTS


def _mirrored(slot: int, context: str, kind: str, **pair: str) -> list[SealedBattle]:
    battle = SealedBattle(
        f"b{slot:02d}a", context, "novice" if context == "c0" else "expert", kind,
        pair["x"], pair["y"], True, pair["sx"], pair["sy"],
        text_sha256(f"question of {context}"), text_sha256("summary") if context == "c0" else "",
    )  # fmt: skip
    return [battle, replace(battle, battle=f"b{slot:02d}b", left_is_x=False)]


BATTLES = [
    *_mirrored(0, "c0", "rotating", x="alpha", y="beta", sx=ONE, sy=TWO),
    *_mirrored(1, "c0", "rotating", x="γάμμα", y="alpha", sx=THREE, sy=ONE),
    *_mirrored(2, "c1", "holdout", x="alpha", y="beta", sx=SECRET, sy=SECRET2),
]


def _vote(
    battle: str, rater: str, revision: int = 1, owner: bool = False, **verdicts: str
) -> BundleVote:
    nonce = vote_nonce(SEED, battle, rater, revision)
    left, right = displayed(next((b for b in BATTLES if b.battle == battle), BATTLES[0]))
    record = VoteRecord("r-2f", battle, rater, revision, verdicts, left, right, nonce)
    return BundleVote(record, owner)


VOTES = [
    _vote("b00a", "p1", quality="left", personalization="tie"),
    _vote("b00a", "p1", 2),
    _vote("b00a", "p1", 3, quality="right", personalization="both_bad"),
    _vote("b01b", "p2", quality="tie", personalization="left"),
    _vote("b02a", "p2", quality="left", personalization="left"),
    _vote("b00b", "p3", owner=True, quality="left", personalization="right"),
    _vote("b01a", "p3", owner=True, quality="left", personalization="left"),
    _vote("b01a", "p3", 2, owner=True, quality="tie", personalization="left"),
]
SEAL = seal_allocation(PROTOCOL, BATTLES, SALT)


def _digest(votes: Iterable[BundleVote]) -> str:
    return vote_digest(vote_receipt(vote.record) for vote in votes)


DIGEST = _digest(VOTES)
SOURCE = BundleInput(PROTOCOL, BATTLES, SALT, SEAL.commitment, DIGEST, VOTES, TEXTS)
Files = dict[str, bytes]


@dataclass
class Outcome:
    code: int
    output: str

    @property
    def failures(self) -> list[str]:
        return [line for line in self.output.splitlines() if line.startswith("FAIL")]


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run(files: Files, *options: str) -> Outcome:
        path = tmp_path / "bundle.zip"
        with path.open("wb") as target:
            write_zip(files.items(), target)
        code = verify_bundle.main([str(path), *options])
        return Outcome(code, capsys.readouterr().out)

    return run


def _files(source: BundleInput = SOURCE) -> Files:
    return dict(build_bundle(source))


def _rows(files: Files, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files[name].splitlines()]


def _put(files: Files, name: str, rows: Iterable[dict[str, Any]]) -> None:
    files[name] = b"".join(canonical_json(row) + b"\n" for row in rows)


def _manifest(files: Files, **changes: object) -> None:
    files["manifest.json"] = canonical_json({**json.loads(files["manifest.json"]), **changes})


# --- building ---


def test_an_honest_bundle_passes(verify: Callable[..., Outcome]) -> None:
    receipts = [vote_receipt(vote.record) for vote in VOTES]
    options = [item for receipt in receipts for item in ("--receipt", receipt)]
    result = verify(_files(), "--commitment", SEAL.commitment, "--vote-digest", DIGEST, *options)
    assert result.code == 0, result.output
    assert "NOTE" not in result.output
    assert result.output.count("is among the owner votes") == 3
    assert "is on battle b01b" in result.output


def test_it_runs_alone_with_the_standard_library(tmp_path: Path) -> None:
    script = tmp_path / "verify_bundle.py"
    script.write_bytes(Path(verify_bundle.__file__).read_bytes())
    with (tmp_path / "b.zip").open("wb") as target:
        write_zip(build_bundle(SOURCE), target)
    (tmp_path / "kept.txt").write_text(f"my receipt: {vote_receipt(VOTES[3].record).upper()}\n")
    command = [sys.executable, "-I", "-S", str(script), str(tmp_path / "b.zip")]
    command += ["--commitment", SEAL.commitment, "--receipt-file", str(tmp_path / "kept.txt")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "RESULT PASS"
    assert "is on battle b01b" in done.stdout


def test_equal_input_gives_equal_bytes() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    write_zip(build_bundle(SOURCE), first)
    shuffled = replace(SOURCE, battles=BATTLES[::-1], votes=VOTES[::-1])
    write_zip(build_bundle(shuffled), second)
    assert first.getvalue() == second.getvalue()


def test_holdout_texts_and_owner_battles_stay_out() -> None:
    everything = b"".join(_files().values()).decode()
    assert "geheim" not in everything
    assert b'"p3"' not in _files()["votes.jsonl"] + _files()["owner_votes.json"]
    assert "三。" in everything
    assert SEED.hex() not in everything
    assert {row["battle"] for row in _rows(_files(), "votes.jsonl")} == {"b00a", "b01b", "b02a"}


def test_owner_votes_are_counted_by_pair_as_they_stand() -> None:
    owner = json.loads(_files()["owner_votes.json"])
    assert len(owner["receipts"]) == 3
    assert owner["counts"] == [
        {"x": "alpha", "y": "beta", "axis": "personalization", "verdict": "x", "n": 1},
        {"x": "alpha", "y": "beta", "axis": "quality", "verdict": "y", "n": 1},
        {"x": "alpha", "y": "γάμμα", "axis": "personalization", "verdict": "y", "n": 1},
        {"x": "alpha", "y": "γάμμα", "axis": "quality", "verdict": "tie", "n": 1},
    ]


@pytest.mark.parametrize(
    ("verdict", "left_is_x", "winner"),
    [("left", True, "x"), ("left", False, "y"), ("right", True, "y"), ("right", False, "x"),
     ("tie", True, "tie"), ("both_bad", False, "both_bad")],
)  # fmt: skip
def test_resolving_sides(verdict: str, left_is_x: bool, winner: str) -> None:
    battle = replace(BATTLES[0], left_is_x=left_is_x)
    assert resolve(battle, verdict, battle.x) == winner


@pytest.mark.parametrize(
    "change",
    [
        {"commitment": "0" * 64},
        {"salt": b"t" * 32},
        {"battles": BATTLES[:4]},
        {"protocol": {**PROTOCOL, "weights": {}}},
        {"texts": {ONE: "One.", TWO: "Zwei."}},
        {"texts": {**TEXTS, ONE: "one."}},
        {"votes": [_vote("b99a", "p1", quality="tie", personalization="tie")]},
        {"votes": [BundleVote(replace(VOTES[0].record, round="other"))]},
        {"votes": [_vote("b00a", "stranger", quality="tie", personalization="tie")]},
        {"votes": [BundleVote(replace(VOTES[0].record, left_sha256=THREE))]},
        {"votes": [BundleVote(replace(VOTES[0].record, left_sha256=TWO, right_sha256=ONE))]},
    ],
)
def test_what_would_not_verify_is_not_published(change: dict[str, Any]) -> None:
    if "votes" in change:  # so that nothing but the vote itself is wrong
        change = {**change, "vote_digest": _digest(change["votes"])}
    with pytest.raises(BundleError):
        _files(replace(SOURCE, **change))


@pytest.mark.parametrize(
    "change", [{"vote_digest": "0" * 64}, {"vote_digest": ""}, {"votes": VOTES[:-1]}]
)
def test_votes_that_do_not_lead_to_the_stored_digest_are_not_published(
    change: dict[str, Any],
) -> None:
    with pytest.raises(BundleError, match="vote digest"):
        _files(replace(SOURCE, **change))


def test_the_manifest_names_the_audit_line_of_the_unsealing() -> None:
    assert json.loads(_files()["manifest.json"])["audit"] is None
    files = _files(replace(SOURCE, audit=(7, "ab")))
    assert json.loads(files["manifest.json"])["audit"] == {"n": 7, "hash": "ab"}


@pytest.mark.parametrize(
    "change",
    [
        {"round": 7}, {"axes": []}, {"axes": "quality"}, {"contestants": [{}]},
        {"contestants": None}, {"contestants": ["alpha", "alpha"]},
        {"contestants": [{"id": "alpha"}, "alpha"]}, {"raters": []}, {"raters": 3},
        {"raters": ["p1", "p1"]},
    ],
)  # fmt: skip
def test_a_protocol_that_could_not_be_verified_is_refused_early(change: dict[str, object]) -> None:
    check_protocol(PROTOCOL)
    with pytest.raises(BundleError):
        check_protocol({**PROTOCOL, **change})


# --- tampering ---


def swap_text(files: Files) -> None:
    rows = _rows(files, "texts.jsonl")
    rows[0]["text"] += " (better)"
    _put(files, "texts.jsonl", rows)


def swap_text_and_hash(files: Files) -> None:
    """Consistent: the new text, its hash in texts and allocation."""
    new = text_sha256("Better.")
    for name in ("texts.jsonl", "allocation.jsonl"):
        files[name] = files[name].replace(ONE.encode(), new.encode()).replace(b"One.", b"Better.")
    _put(files, "texts.jsonl", sorted(_rows(files, "texts.jsonl"), key=lambda row: row["sha256"]))


def drop_text(files: Files) -> None:
    _put(files, "texts.jsonl", _rows(files, "texts.jsonl")[1:])


def add_holdout_text(files: Files) -> None:
    rows = [*_rows(files, "texts.jsonl"), {"sha256": SECRET, "text": "geheim 1"}]
    _put(files, "texts.jsonl", rows)


def _each_battle(files: Files, number: int, **change: object) -> None:
    rows = _rows(files, "allocation.jsonl")
    rows[number].update(change)
    _put(files, "allocation.jsonl", rows)


def flip_side(files: Files) -> None:
    _each_battle(files, 0, left_is_x=False)


def flip_both_sides(files: Files) -> None:
    _each_battle(files, 0, left_is_x=False)
    _each_battle(files, 1, left_is_x=True)


def swap_contestant(files: Files) -> None:
    _each_battle(files, 0, x="beta", y="alpha")


def foreign_contestant(files: Files) -> None:
    _each_battle(files, 0, x="delta")


def move_stratum(files: Files) -> None:
    for number in range(4):
        _each_battle(files, number, stratum="expert")


def other_question(files: Files) -> None:
    for number in range(4):  # all battles of the context
        _each_battle(files, number, prompt_sha256="0" * 64)


def other_summary_in_one_battle(files: Files) -> None:
    _each_battle(files, 0, summary_sha256="")


def malformed_summary_hash(files: Files) -> None:
    for number in range(4):
        _each_battle(files, number, summary_sha256="guess me")


def drop_rater(files: Files) -> None:
    files["protocol.json"] = canonical_json({**PROTOCOL, "raters": ["p1"]})


def double_contestant(files: Files) -> None:
    listed = ["alpha", "beta", "beta", "γάμμα"]
    files["protocol.json"] = canonical_json({**PROTOCOL, "contestants": listed})


def swap_displayed(files: Files) -> None:
    """Consistent with its receipt: a vote that was given while the texts stood the other way."""
    rows = _rows(files, "votes.jsonl")
    row = rows[-1]
    row["left_sha256"], row["right_sha256"] = row["right_sha256"], row["left_sha256"]
    record = {key: value for key, value in row.items() if key != "receipt"}
    row["receipt"] = text_sha256(canonical_json({**record, "round": "r-2f"}).decode())
    _put(files, "votes.jsonl", rows)


def renumber_leaf(files: Files) -> None:
    _each_battle(files, 0, leaf=1)


def drop_battle(files: Files) -> None:
    _put(files, "allocation.jsonl", _rows(files, "allocation.jsonl")[:-1])


def double_battle(files: Files) -> None:
    rows = _rows(files, "allocation.jsonl")
    _put(files, "allocation.jsonl", [*rows, rows[-1]])


def change_weights(files: Files) -> None:
    files["protocol.json"] = canonical_json({**PROTOCOL, "weights": {"quality": 100}})


def reformat_protocol(files: Files) -> None:
    files["protocol.json"] = json.dumps(PROTOCOL, indent=1).encode()


def foreign_salt(files: Files) -> None:
    _manifest(files, salt=(b"t" * 32).hex())


def foreign_root(files: Files) -> None:
    _manifest(files, root="0" * 64)


def drop_vote(files: Files) -> None:
    _put(files, "votes.jsonl", _rows(files, "votes.jsonl")[:-1])


def alter_vote(files: Files) -> None:
    rows = _rows(files, "votes.jsonl")
    rows[-1]["verdicts"]["quality"] = "right"
    _put(files, "votes.jsonl", rows)


def reassign_vote(files: Files) -> None:
    rows = _rows(files, "votes.jsonl")
    rows[-1]["rater"] = "p9"
    _put(files, "votes.jsonl", rows)


def double_vote(files: Files) -> None:
    rows = _rows(files, "votes.jsonl")
    _put(files, "votes.jsonl", [*rows, rows[-1]])


def drop_owner_receipt(files: Files) -> None:
    owner = json.loads(files["owner_votes.json"])
    owner["receipts"].pop()
    files["owner_votes.json"] = canonical_json(owner)


def inflate_owner_count(files: Files) -> None:
    owner = json.loads(files["owner_votes.json"])
    for row in owner["counts"]:
        row["n"] += 5
    files["owner_votes.json"] = canonical_json(owner)


def uneven_owner_count(files: Files) -> None:
    owner = json.loads(files["owner_votes.json"])
    owner["counts"][0]["n"] += 1
    files["owner_votes.json"] = canonical_json(owner)


def false_counts(files: Files) -> None:
    _manifest(files, counts={})


def other_round(files: Files) -> None:
    _manifest(files, round="r-other")


ALLOCATION, ROOT, COMMITMENT = "allocation is well-formed", "give the root", "give the commitment"
MIRROR, TEXT, VOTE = "mirrored", "texts fit", "votes fit"
OWNER, DIGEST_CHECK, COUNT = "owner votes", "vote digest", "counts"


@pytest.mark.parametrize(
    ("tamper", "seen_by"),
    [
        (swap_text, {TEXT}),
        (swap_text_and_hash, {ROOT, COMMITMENT, VOTE}),
        (drop_text, {TEXT, COUNT}),
        (add_holdout_text, {TEXT, COUNT}),
        (flip_side, {ROOT, COMMITMENT, MIRROR, VOTE}),
        (flip_both_sides, {ROOT, COMMITMENT, VOTE}),
        (swap_contestant, {ROOT, COMMITMENT, MIRROR}),
        (foreign_contestant, {ALLOCATION, ROOT, COMMITMENT, MIRROR}),
        (move_stratum, {ROOT, COMMITMENT}),
        (renumber_leaf, {ALLOCATION}),
        (other_question, {ROOT, COMMITMENT}),
        (other_summary_in_one_battle, {ROOT, COMMITMENT, MIRROR}),
        (malformed_summary_hash, {ALLOCATION, ROOT, COMMITMENT}),
        (drop_rater, {COMMITMENT, VOTE}),
        (double_contestant, {ALLOCATION, COMMITMENT}),
        (swap_displayed, {VOTE, DIGEST_CHECK}),
        (drop_battle, {ROOT, COMMITMENT, MIRROR, COUNT}),
        (double_battle, {ALLOCATION, ROOT, COMMITMENT, MIRROR, COUNT}),
        (change_weights, {COMMITMENT}),
        (reformat_protocol, {"cannot be read"}),
        (foreign_salt, {ROOT, COMMITMENT}),
        (foreign_root, {ROOT}),
        (drop_vote, {DIGEST_CHECK, COUNT}),
        (alter_vote, {VOTE}),
        (reassign_vote, {VOTE, COUNT}),
        (double_vote, {VOTE, DIGEST_CHECK, COUNT}),
        (drop_owner_receipt, {DIGEST_CHECK, COUNT}),
        (inflate_owner_count, {OWNER}),
        (uneven_owner_count, {OWNER}),
        (false_counts, {COUNT}),
        (other_round, {VOTE, COUNT}),
    ],
)
def test_tampering_is_seen_by_the_right_check(
    verify: Callable[..., Outcome], tamper: Callable[[Files], None], seen_by: set[str]
) -> None:
    files = _files()
    tamper(files)
    result = verify(files)
    assert result.code == 1
    assert len(result.failures) == len(seen_by), result.output
    for check in seen_by:
        assert any(check in line for line in result.failures), result.output


def _rebuilt(**change: Any) -> tuple[Files, str]:
    """A forger's best: everything recomputed so that the bundle agrees with itself."""
    forged = replace(SOURCE, **change)
    seal = seal_allocation(forged.protocol, forged.battles, forged.salt)
    forged = replace(forged, commitment=seal.commitment, vote_digest=_digest(forged.votes))
    return _files(forged), seal.commitment


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": {**PROTOCOL, "weights": {"quality": 100}}},
        {"salt": b"t" * 32},
        {"battles": BATTLES[:2] + BATTLES[4:], "votes": VOTES[:3]},
        {"battles": [replace(b, x=b.y, y=b.x) for b in BATTLES]},
    ],
)
def test_a_consistent_forgery_fails_against_the_published_commitment(
    verify: Callable[..., Outcome], change: dict[str, Any]
) -> None:
    files, forged = _rebuilt(**change)
    assert verify(files).code == 0
    assert verify(files, "--commitment", forged).code == 0
    result = verify(files, "--commitment", SEAL.commitment)
    assert result.code == 1
    assert "commitment" in result.failures[0]


def test_a_vote_dropped_consistently_fails_against_digest_and_receipt(
    verify: Callable[..., Outcome],
) -> None:
    files, _ = _rebuilt(votes=[*VOTES[:3], *VOTES[4:]])
    assert verify(files, "--commitment", SEAL.commitment).code == 0
    assert "digest" in verify(files, "--vote-digest", DIGEST).failures[0]
    missing = verify(files, "--receipt", vote_receipt(VOTES[3].record))
    assert "not in the bundle" in missing.failures[0]


def test_a_vote_dropped_from_the_middle_of_a_history(verify: Callable[..., Outcome]) -> None:
    files, _ = _rebuilt(votes=[VOTES[0], *VOTES[2:]])
    assert "gaps" in verify(files).failures[0]


# --- malformed input ---


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b""),
        ("manifest.json", b"[]"),
        ("manifest.json", b"{}"),
        ("manifest.json", b"\xff\xfe"),
        ("manifest.json", b'{"a":1,"a":2}'),
        ("manifest.json", b'{"a":1.5}'),
        ("manifest.json", b'{"a":NaN}'),
        ("manifest.json", b'{"a":"\\ud800"}'),
        ("manifest.json", b"[" * 200_000),
        ("manifest.json", b'{"a":' + b"9" * 5000 + b"}"),
        ("protocol.json", b'{"axes":"quality","contestants":[],"round":"r"}'),
        ("protocol.json", b'{"axes":[],"contestants":[7],"round":"r"}'),
        ("protocol.json", b'{"axes":[],"contestants":[],"raters":3,"round":"r"}'),
        ("allocation.jsonl", b'{"battle":1}\n'),
        ("allocation.jsonl", b"null\n"),
        ("allocation.jsonl", b"{}"),
        (
            "votes.jsonl",
            b'{"battle":[],"nonce":"","rater":"","receipt":"","revision":1,"verdicts":{}}\n',
        ),
        ("owner_votes.json", b'{"counts":7,"receipts":[]}'),
        ("owner_votes.json", b'{"counts":[],"receipts":[{}]}'),
    ],
)  # fmt: skip
def test_malformed_files_give_a_clear_message(
    verify: Callable[..., Outcome], name: str, content: bytes
) -> None:
    result = verify({**_files(), name: content})
    assert result.code == 1
    assert name.split(".")[0] in result.failures[0]


def test_odd_values_inside_good_form_fail_and_do_not_crash(verify: Callable[..., Outcome]) -> None:
    files = _files()
    rows = _rows(files, "votes.jsonl")
    rows[0]["verdicts"] = {"quality": ["left"], "personalization": {}}
    rows[1]["receipt"] = "\x1b[2Jzz"
    _put(files, "votes.jsonl", rows)
    owner = json.loads(files["owner_votes.json"])
    owner["counts"][0]["x"] = ["alpha"]
    files["owner_votes.json"] = canonical_json(owner)
    result = verify(files)
    assert result.code == 1
    assert "\x1b" not in result.output


def test_missing_extra_and_doubled_files(verify: Callable[..., Outcome], tmp_path: Path) -> None:
    files = _files()
    without = {name: content for name, content in files.items() if name != "votes.jsonl"}
    assert "votes.jsonl occurs 0 times" in verify(without).failures[0]
    assert "unexpected file" in verify({**files, "../evil": b""}).failures[0]
    path = tmp_path / "double.zip"
    with pytest.warns(UserWarning, match="Duplicate"), path.open("wb") as target:
        write_zip([*files.items(), ("votes.jsonl", b"")], target)
    assert verify_bundle.main([str(path)]) == 1


def test_not_a_zip_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    assert verify_bundle.main([str(path)]) == 1
    path.write_bytes(b"PK\x03\x04 nothing")
    assert verify_bundle.main([str(path)]) == 1


def test_a_damaged_zip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = io.BytesIO()
    write_zip(build_bundle(SOURCE), packed)
    raw = packed.getvalue()
    path = tmp_path / "x.zip"
    for place in range(0, len(raw), 7):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0x55]) + raw[place + 1 :])
        verify_bundle.main([str(path)])  # may pass where a time or a flag was hit; never crashes
    path.write_bytes(raw[: len(raw) // 2])
    assert verify_bundle.main([str(path)]) == 1
    assert "Traceback" not in capsys.readouterr().out


def test_a_zip_bomb_is_refused_before_unpacking(verify: Callable[..., Outcome]) -> None:
    result = verify({**_files(), "texts.jsonl": b"\n" * (30 << 20)})
    assert "would unpack to" in result.failures[0]


def test_a_lying_size_does_not_unpack_more(tmp_path: Path) -> None:
    """The directory claims 10 bytes where 30 MB come out."""
    packed = io.BytesIO()
    write_zip({**_files(), "votes.jsonl": b"\n" * (30 << 20)}.items(), packed)
    raw = packed.getvalue().replace(struct.pack("<L", 30 << 20), struct.pack("<L", 10))
    path = tmp_path / "x.zip"
    path.write_bytes(raw)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("votes.jsonl").file_size == 10
    assert verify_bundle.main([str(path)]) == 1


def test_bad_arguments_stop_early(tmp_path: Path) -> None:
    for options in (["--receipt", "xyz"], ["--receipt-file", str(tmp_path / "none")]):
        with pytest.raises(SystemExit) as stop:
            verify_bundle.main(["b.zip", *options])
        assert stop.value.code == 2
