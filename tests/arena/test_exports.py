"""Files of an unsealed round: safe cells, a bundle that strangers can verify, nothing too much."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from arena import exports, verify_bundle
from arena.enums import Variant
from arena.models import Assignment, Rating, Round, Vote
from arena.ratings import RatingSpec, VoteTable, rate, rate_composite
from arena.selectors import leaderboard, sealed
from arena.selectors.ballots import progress_of
from arena.services import closing, leases, ratings, votes
from tests.arena.factories import (
    World,
    closed_round,
    make_world,
    open_round,
    unsealed_round,
    vote_all,
)
from webapp.catalog.models import PersonaText
from webapp.catalog.services.personas import withdraw_consent
from webapp.core.errors import Refused

pytestmark = pytest.mark.django_db


def mixed(row: Assignment) -> dict[str, str]:
    """Verdicts that make every contestant win and lose somewhere."""
    words = ("left", "right", "tie", "both_bad")
    return {"quality": words[row.pk % 3], "personalization": words[row.pk * 7 % 4]}


@pytest.fixture
def world() -> World:
    return make_world()


def fetch(name: str, round_: Round, query: str = "") -> bytes:
    response = Client().get(reverse(f"arena:{name}", args=[round_.pk]) + query)
    assert response.status_code == 200
    return b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]


def bundle_files(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def json_lines(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        yield json.loads(line)


# --- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_cell_starts_a_formula(start: str) -> None:
    assert exports.safe_cell(f"{start}1+1") == f"'{start}1+1"


@pytest.mark.parametrize("cell", [-1.5, 0, 7, "Harbor", "a=b"])
def test_other_cells_stay_as_they_are(cell: Any) -> None:
    assert exports.safe_cell(cell) == cell


def test_a_hostile_contestant_name_is_harmless_in_the_csv() -> None:
    names = ('=HYPERLINK("http://x")', "@SUM(A1)", "-2+3")
    round_ = unsealed_round(make_world(names=names), name="+Round", choose=mixed)
    rows = list(csv.DictReader(io.StringIO(fetch("leaderboard_csv", round_).decode())))
    assert {row["contestant"] for row in rows} == {f"'{name} 1" for name in names}
    assert {row["round"] for row in rows} == {"'+Round"}
    ratings_ = [float(row["rating"]) for row in rows if row["rating"]]
    assert ratings_


def test_the_csv_holds_every_board_or_the_chosen_one(world: World) -> None:
    round_ = unsealed_round(world, choose=mixed)
    everything = list(csv.DictReader(io.StringIO(fetch("leaderboard_csv", round_).decode())))
    assert len(everything) == Rating.objects.filter(snapshot__round=round_).count()
    query = "?axis=quality&stratum=&variant=all"
    chosen = list(csv.DictReader(io.StringIO(fetch("leaderboard_csv", round_, query).decode())))
    assert [row["axis"] for row in chosen] == ["quality"] * 3
    assert {row["simulated"] for row in chosen} == {"no"}


def test_a_simulated_round_is_marked_in_csv_and_json(world: World) -> None:
    round_ = unsealed_round(world, simulated=True)
    rows = csv.DictReader(io.StringIO(fetch("leaderboard_csv", round_).decode()))
    assert {row["simulated"] for row in rows} == {"simulated"}
    data = json.loads(fetch("leaderboard_json", round_))
    assert data["round"]["simulated"] is True
    assert all(board["simulated"] for board in data["boards"])


def test_the_json_says_what_the_snapshot_says(world: World) -> None:
    round_ = unsealed_round(world, choose=mixed)
    data = json.loads(fetch("leaderboard_json", round_))
    assert data["format"] == exports.FORMAT
    details = round_.snapshots.get(variant=Variant.ALL).details["results"]
    for board in data["boards"]:
        if board["variant"] == Variant.ALL:
            stored = details[board["axis"]][board["stratum"]]
            assert [row["contestant"] for row in board["rows"]] == stored["order"]
            assert board["win_fraction"] == stored["win_fraction"]


def test_the_picture_is_valid_and_carries_its_source(world: World) -> None:
    round_ = unsealed_round(world, name="A <b>&\x07 round", choose=mixed)
    text = fetch("leaderboard_svg", round_).decode()
    tree = ElementTree.fromstring(text)
    words = " ".join(node.text or "" for node in tree.iter() if node.tag.endswith("text"))
    assert "A <b>& round" in words
    assert round_.commitment[:16] in words
    assert "Harbor 1" in words
    assert "style=" not in text
    assert "<script" not in text


# --- bundle -----------------------------------------------------------------------------------


def test_the_bundle_passes_the_stand_alone_script(world: World, tmp_path: Path) -> None:
    round_ = open_round(world, planned_votes=24, holdout_percent=0)
    vote_all(round_, world.raters, mixed, limit=20)
    token = progress_of(world.raters[0], round_).last
    taken_back = votes.undo_vote(user=world.raters[0], round_=round_, token=token)
    assert taken_back is not None
    receipts = list(Vote.objects.values_list("receipt", flat=True)[:3])
    round_ = finish(world, round_)
    bundle, script = tmp_path / "bundle.zip", tmp_path / "verify_bundle.py"
    bundle.write_bytes(fetch("bundle", round_))
    script.write_bytes(Client().get(reverse("arena:verify_script")).content)
    command = [sys.executable, "-I", str(script), str(bundle), "--commitment", round_.commitment]
    command += ["--vote-digest", round_.vote_digest]
    for receipt in receipts:
        command += ["--receipt", receipt]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert done.stdout.rstrip().endswith("PASS")
    wrong = [*command[:5], "0" * 64]
    assert subprocess.run(wrong, capture_output=True, check=False).returncode == 1


def finish(world: World, round_: Round) -> Round:
    round_ = closing.close_round(actor=world.admin, round_=round_, reason="enough for a test")
    ratings.rate_round(round_.pk)
    for actor in (world.admin, world.second_admin):
        round_ = closing.approve_unsealing(actor=actor, round_=round_, reason="all votes are in")
    return round_


def test_the_same_round_gives_the_same_bytes(world: World) -> None:
    round_ = unsealed_round(world, choose=mixed)
    assert fetch("bundle", round_) == fetch("bundle", round_)


def test_the_bundle_names_no_person_and_no_secret(world: World) -> None:
    round_ = unsealed_round(world, choose=mixed)
    files = bundle_files(fetch("bundle", round_))
    everything = b"\n".join(files.values()).decode()
    assert round_.salt in everything
    assert round_.seed not in everything
    for summary in PersonaText.objects.values_list("summary", flat=True):
        assert summary not in everything
    for user in world.raters:
        assert user.username not in everything


def test_holdout_contexts_give_hashes_and_no_texts() -> None:
    world = make_world(personas=4, prompts=4)
    round_ = unsealed_round(
        world, holdout_percent=50, planned_votes=12, minimum_strata=1, choose=mixed
    )
    files = bundle_files(fetch("bundle", round_))
    battles = list(json_lines(files["allocation.jsonl"]))
    kinds = {kind: {b["sha256_x"] for b in battles if b["kind"] == kind} for kind in
             ("holdout", "rotating")}  # fmt: skip
    assert kinds["holdout"]
    published = {row["sha256"] for row in json_lines(files["texts.jsonl"])}
    assert kinds["rotating"] <= published
    assert not kinds["holdout"] & published


def test_texts_are_published_as_they_were_shown() -> None:
    world = make_world(text=lambda c, p, q: f"I am Quarry number {c}, for {p}, on {q}.")
    round_ = unsealed_round(world, screening_policy={"self_reference": "mask"})
    files = bundle_files(fetch("bundle", round_))
    texts = [row["text"] for row in json_lines(files["texts.jsonl"])]
    assert texts
    assert not any("Quarry" in text for text in texts)


def test_owner_votes_stand_in_the_bundle_only_in_aggregate(world: World) -> None:
    owner = world.raters[0]
    for persona in world.personas[:2]:
        persona.owner = owner
        persona.save(update_fields=["owner"])
    round_ = unsealed_round(world, choose=mixed, planned_votes=24)
    owned = Vote.objects.filter(assignment__round=round_, owner=True).select_related("battle")
    assert owned.count() > 1
    files = bundle_files(fetch("bundle", round_))
    open_receipts = {row["receipt"] for row in json_lines(files["votes.jsonl"])}
    part = json.loads(files["owner_votes.json"])
    for vote in owned:
        assert vote.receipt in part["receipts"]
        assert vote.receipt not in open_receipts
        assert vote.nonce.encode() not in b"".join(files.values())
    assert sum(row["n"] for row in part["counts"]) == 2 * owned.count()
    lines = fetch("votes_file", round_).decode().splitlines()
    assert len(lines) == len(open_receipts)
    assert leaderboard.read_board(round_, axis="owner").result["votes"] == owned.count()


@pytest.mark.parametrize("make", [open_round, closed_round])
def test_no_part_of_a_bundle_is_made_of_a_sealed_round(make: Any, world: World) -> None:
    round_ = make(world)
    for read in (sealed.bundle_input, exports.bundle_file):
        with pytest.raises(Refused):
            read(round_)
    with pytest.raises(Refused):
        next(exports.vote_lines(round_))
    with pytest.raises(Refused):
        sealed.find_receipt(round_, "0" * 16)


def test_a_bundle_says_which_texts_were_erased_and_still_verifies(
    world: World, tmp_path: Path
) -> None:
    round_ = unsealed_round(world, choose=mixed)
    withdraw_consent(actor=world.admin, persona=world.personas[0])
    path = tmp_path / "bundle.zip"
    path.write_bytes(Client().get(reverse("arena:bundle", args=[round_.pk])).getvalue())
    command = [sys.executable, "-I", verify_bundle.__file__, str(path)]
    command += ["--commitment", round_.commitment, "--vote-digest", round_.vote_digest]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "texts were erased" in result.stdout


# --- the same numbers -------------------------------------------------------------------------


def test_ratings_can_be_computed_again_from_the_bundle_alone(world: World) -> None:
    round_ = unsealed_round(world, choose=mixed, planned_votes=36)
    files = bundle_files(fetch("bundle", round_))
    protocol = json.loads(files["protocol.json"])
    spec = RatingSpec.from_dict(round_.snapshots.get(variant=Variant.ALL).spec)
    tables = {axis: table_of(files, axis, protocol["contestants"]) for axis in protocol["axes"]}
    weights = {axis: float(share) for axis, share in protocol["weights_percent"].items()}
    results = {axis: rate(table, spec) for axis, table in tables.items()}
    results["overall"] = rate_composite(tables, weights, spec)
    for axis, result in results.items():
        board = leaderboard.read_board(round_, axis=axis)
        for stored, again in zip(board.rows, result.rows, strict=True):
            assert stored.contestant == again.contestant
            for name in ("strength", "rating", "lo", "hi", "rank_lo", "rank_hi", "votes"):
                assert getattr(stored, name) == getattr(again, name), (axis, name)


def table_of(files: dict[str, bytes], axis: str, contestants: list[str]) -> VoteTable:
    """The standing votes of one axis, joined with the allocation."""
    battles = {row["battle"]: row for row in json_lines(files["allocation.jsonl"])}
    standing = {(row["battle"], row["rater"]): row for row in json_lines(files["votes.jsonl"])}
    rows = []
    for vote in standing.values():
        battle = battles[vote["battle"]]
        sides = (battle["x"], battle["y"])
        left, right = sides if battle["left_is_x"] else sides[::-1]
        if vote["verdicts"]:
            rows.append((left, right, vote["verdicts"][axis], vote["rater"], battle["context"]))
    return VoteTable.from_rows(rows, contestants=contestants)


def test_the_votes_file_feeds_the_rate_command(world: World, tmp_path: Path) -> None:
    round_ = unsealed_round(world, choose=mixed, planned_votes=36)
    path = tmp_path / "votes.jsonl"
    path.write_bytes(fetch("votes_file", round_))
    out = io.StringIO()
    call_command(
        "rate", str(path), format="palate", axis="quality", method="davidson", json=True, stdout=out
    )
    again = {row["contestant"]: row for row in json.loads(out.getvalue())["ratings"]}
    for row in leaderboard.read_board(round_, axis="quality").rows:
        assert again[row.contestant]["rating"] == pytest.approx(row.rating, abs=1e-9)
        assert again[row.contestant]["lo"] == pytest.approx(row.lo, abs=1e-9)


def test_an_undone_vote_is_published_and_counts_for_nothing(world: World) -> None:
    round_ = open_round(world, planned_votes=24)
    vote_all(round_, world.raters, mixed, limit=5)
    token = progress_of(world.raters[0], round_).last
    votes.undo_vote(user=world.raters[0], round_=round_, token=token)
    leases.current_ballot(user=world.raters[0], round_=round_)
    round_ = finish(world, round_)
    files = bundle_files(fetch("bundle", round_))
    rows = list(json_lines(files["votes.jsonl"]))
    assert len(rows) == 6
    assert [row["verdicts"] for row in rows].count({}) == 1
    assert len(fetch("votes_file", round_).splitlines()) == 4
