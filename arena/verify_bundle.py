#!/usr/bin/env python3
"""Verify the published bundle of a blind round. Needs Python 3.9+ and nothing else.

    python verify_bundle.py bundle.zip --commitment HEX [--vote-digest HEX]
                                       [--receipt HEX ...] [--receipt-file FILE]

Give the commitment that was shown when the round opened, the vote digest that was shown when it
closed, and the receipts that you kept; without them the script can only check that the bundle
agrees with itself. Prints PASS, FAIL or NOTE per check; exit code 0 if nothing failed, else 1.
The format is described in Palate's documentation (arena/bundles.py).
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import io
import json
import re
import sys
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

FILES = (
    "manifest.json", "protocol.json", "allocation.jsonl", "texts.jsonl", "votes.jsonl",
    "owner_votes.json",
)  # fmt: skip
MAX_FILE = 1 << 29  # bytes of one unpacked file
MAX_LINE = 16 << 20
MAX_LINES = 2_000_000
MAX_RATIO = 200  # unpacked : packed, beyond 10 MB
HEX64 = re.compile(r"[0-9a-f]{64}")
VERDICTS = {"left", "right", "tie", "both_bad"}
OWNER_VERDICTS = {"x", "y", "tie", "both_bad"}
BATTLE_KEYS = {
    "battle": str, "context": str, "stratum": str, "kind": str, "x": str, "y": str,
    "left_is_x": bool, "sha256_x": str, "sha256_y": str, "prompt_sha256": str,
    "summary_sha256": str, "leaf": int,
}  # fmt: skip
VOTE_KEYS = {
    "battle": str, "rater": str, "revision": int, "verdicts": dict, "left_sha256": str,
    "right_sha256": str, "nonce": str, "receipt": str,
}  # fmt: skip
Row = dict[str, Any]


class MalformedError(Exception):
    """The bundle cannot be read as one; the message says where."""


# --- reading ----------------------------------------------------------------------------------


def canonical(value: Any) -> bytes:
    """Encode as RFC 8785 does; floats have no place in a bundle."""
    return json.dumps(ordered(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return value


def parse(raw: bytes, where: str) -> Any:
    """Parse strict JSON: UTF-8, no duplicate keys, no floats, canonical as it stands."""

    def unique(pairs: list[tuple[str, Any]]) -> Row:
        if len({key for key, _ in pairs}) != len(pairs):
            raise MalformedError(where + ": a key occurs twice")
        return dict(pairs)

    def no_float(text: str) -> Any:
        raise MalformedError(where + ": " + text[:20] + " is not a whole number")

    try:
        text = raw.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=unique, parse_float=no_float, parse_constant=no_float
        )
        if canonical(value) != raw:
            raise MalformedError(where + ": not in canonical form")
    except UnicodeError as error:
        raise MalformedError(where + ": not valid UTF-8 text") from error
    except RecursionError as error:
        raise MalformedError(where + ": nested too deeply") from error
    except ValueError as error:
        raise MalformedError(where + ": not JSON (" + str(error)[:80] + ")") from error
    return value


def open_bundle(path: str) -> zipfile.ZipFile:
    """Open the zip and check its list of files before unpacking any."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise MalformedError("cannot open " + path + ": " + str(error)[:200]) from error
    infos = archive.infolist()
    names = Counter(info.filename for info in infos)
    for name in FILES:
        if names[name] != 1:
            raise MalformedError(name + " occurs " + str(names[name]) + " times, must occur once")
    if extra := sorted(set(names) - set(FILES)):
        raise MalformedError("unexpected file " + repr(extra[0][:80]))
    for info in infos:
        bomb = info.file_size > 10 << 20 and info.file_size > MAX_RATIO * info.compress_size
        if info.file_size > MAX_FILE or bomb:
            size = str(info.file_size)
            raise MalformedError(info.filename + " would unpack to " + size + " bytes")
        if info.flag_bits & 1:
            raise MalformedError(info.filename + " is encrypted")
    return archive


def read_lines(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Yield the lines of a file, of bounded number and length."""
    try:
        with archive.open(name) as stream:
            number = 0
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE or number > MAX_LINES:
                    raise MalformedError(name + ": too long")
                yield line
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise MalformedError(name + ": cannot be unpacked, " + str(error)[:200]) from error


def read_object(archive: zipfile.ZipFile, name: str) -> tuple[Row, bytes]:
    raw = b"".join(read_lines(archive, name))
    value = parse(raw, name)
    if not isinstance(value, dict):
        raise MalformedError(name + ": not an object")
    return value, raw


def read_rows(archive: zipfile.ZipFile, name: str, keys: dict[str, type]) -> Iterator[Row]:
    """Yield the objects of a .jsonl with exactly ``keys`` of the right types."""
    for number, line in enumerate(read_lines(archive, name), 1):
        where = name + " line " + str(number)
        if not line.endswith(b"\n"):
            raise MalformedError(where + ": no newline at the end")
        row = parse(line[:-1], where)
        if not isinstance(row, dict) or set(row) != set(keys):
            raise MalformedError(where + ": keys must be " + ", ".join(sorted(keys)))
        for key, kind in keys.items():
            if type(row[key]) is not kind:
                raise MalformedError(where + ": " + key + " has the wrong type")
        yield row


# --- hashing ----------------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tree_root(leaves: list[bytes]) -> str:
    """RFC 6962 tree hash."""
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        pairs = [b"\x01" + level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
        level = [hashlib.sha256(pair).digest() for pair in pairs] + odd
    return level[0].hex() if level else sha256(b"")


# --- checks -----------------------------------------------------------------------------------


class Report:
    """Prints one line per check and remembers whether any failed."""

    def __init__(self) -> None:
        self.failed = False

    def check(self, name: str, problems: list[str]) -> None:
        if problems:
            self.failed = True
            more = " (and " + str(len(problems) - 1) + " more)" if len(problems) > 1 else ""
            say("FAIL  " + name + ": " + problems[0][:400] + more)
        else:
            say("PASS  " + name)


def say(text: str) -> None:
    """Print one line; what a bundle says cannot steer the terminal."""
    print("".join(char if char.isprintable() else "?" for char in text))


class Bundle:
    """The parsed files of a bundle."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.manifest, _ = read_object(archive, "manifest.json")
        self.protocol, self.protocol_raw = read_object(archive, "protocol.json")
        self.battles = list(read_rows(archive, "allocation.jsonl", BATTLE_KEYS))
        self.votes = list(read_rows(archive, "votes.jsonl", VOTE_KEYS))
        self.owner, _ = read_object(archive, "owner_votes.json")
        self.text_hashes: list[tuple[str, str]] = [
            (row["sha256"], sha256(row["text"].encode("utf-8")))
            for row in read_rows(archive, "texts.jsonl", {"sha256": str, "text": str})
        ]
        if self.manifest.get("format") != "palate-bundle" or self.manifest.get("version") != 1:
            raise MalformedError("manifest.json: not a palate-bundle of version 1")
        for key in ("salt", "root", "commitment", "vote_digest"):
            if not is_hash(self.manifest.get(key)):
                raise MalformedError("manifest.json: " + key + " is not 64 hex digits")
        self.contestants = self._contestants()
        self.erased = text_list(self.manifest.get("erased"), "manifest.json: erased")
        self.axes = text_list(self.protocol.get("axes"), "protocol.json: axes")
        self.raters = set(text_list(self.protocol.get("raters"), "protocol.json: raters"))
        self.owner_receipts = text_list(self.owner.get("receipts"), "owner_votes.json: receipts")
        if not isinstance(self.owner.get("counts"), list):
            raise MalformedError("owner_votes.json: counts is not a list")

    def _contestants(self) -> list[str]:
        listed = self.protocol.get("contestants")
        if isinstance(listed, list):
            listed = [item.get("id") if isinstance(item, dict) else item for item in listed]
        return text_list(listed, "protocol.json: contestants")


def is_hash(value: Any) -> bool:
    return isinstance(value, str) and bool(HEX64.fullmatch(value))


def text_list(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise MalformedError(where + " is not a list of texts")
    return value


def allocation_problems(bundle: Bundle) -> list[str]:
    """Every battle well-formed, in leaf order, between two contestants of the protocol."""
    problems, last, names = [], "", set(bundle.contestants)
    if len(names) != len(bundle.contestants):
        problems.append("two contestants of the protocol have the same name")
    for number, row in enumerate(bundle.battles):
        where = "battle " + row["battle"][:80]
        if row["leaf"] != number or row["battle"] <= last:
            problems.append(where + " is out of leaf order or occurs twice")
        if row["x"] not in names or row["y"] not in names or row["x"] == row["y"]:
            problems.append(where + " is not between two contestants of the protocol")
        if row["kind"] not in ("rotating", "holdout"):
            problems.append(where + " has an unknown kind")
        summary = row["summary_sha256"] or row["prompt_sha256"]  # "" without a persona
        if not all(map(is_hash, (row["sha256_x"], row["sha256_y"], row["prompt_sha256"], summary))):
            problems.append(where + " has a malformed hash")
        last = row["battle"]
    return problems


def root_of(bundle: Bundle) -> str:
    """Recompute the root from every line of the allocation and the salt."""
    salt, leaves = bytes.fromhex(bundle.manifest["salt"]), []
    for row in bundle.battles:
        leaf = {key: value for key, value in row.items() if key != "leaf"}
        leaf["nonce"] = hmac.new(salt, row["battle"].encode("utf-8"), hashlib.sha256).hexdigest()
        leaves.append(canonical(leaf))
    return tree_root(leaves)


def commitment_of(bundle: Bundle, root: str) -> str:
    statement = {"format": "palate-commitment-1", "root": root}
    statement["protocol_sha256"] = sha256(bundle.protocol_raw)
    return sha256(canonical(statement))


def mirror_problems(bundle: Bundle) -> list[str]:
    """Two battles per context and pair, sides swapped; question, persona, stratum, kind as one."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    said: dict[str, list[str]] = {}
    problems = []
    for row in bundle.battles:
        first, second = sorted((row["x"], row["y"]))
        groups[row["context"], first, second].append(row)
        parts = [row[key] for key in ("prompt_sha256", "summary_sha256", "stratum", "kind")]
        if said.setdefault(row["context"], parts) != parts:
            problems.append("context " + row["context"] + " differs between its battles")
    for (context, first, second), rows in groups.items():
        left = Counter(row["x"] if row["left_is_x"] else row["y"] for row in rows)
        shown = {
            tuple(sorted([(row["x"], row["sha256_x"]), (row["y"], row["sha256_y"])]))
            for row in rows
        }
        if len(rows) != 2 or left != {first: 1, second: 1} or len(shown) != 1:
            problems.append(first + " and " + second + " in context " + context)
    return problems


def text_problems(bundle: Bundle) -> list[str]:
    """Every rotating text is there and unaltered, no holdout text is."""
    rotating = [row for row in bundle.battles if row["kind"] == "rotating"]
    wanted = {row[key] for row in rotating for key in ("sha256_x", "sha256_y")}
    claimed = [claim for claim, _ in bundle.text_hashes]
    problems = ["text " + c + " was altered" for c, actual in bundle.text_hashes if c != actual]
    gone = set(bundle.erased)
    problems += ["text " + c + " is missing" for c in sorted(wanted - set(claimed) - gone)]
    problems += ["text " + c + " is called erased and is there" for c in set(claimed) & gone]
    problems += [
        "text " + c + " belongs to no rotating battle" for c in (set(claimed) | gone) - wanted
    ]
    if len(set(claimed)) != len(claimed):
        problems.append("a text occurs twice")
    return problems


def vote_problems(bundle: Bundle) -> list[str]:
    """Every vote is on an allocated battle, its receipt fits, its revisions are complete."""
    shown = {row["battle"]: displayed(row) for row in bundle.battles}
    axes, problems = set(bundle.axes), []
    revisions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in bundle.votes:
        where = "vote " + row["receipt"][:64]
        record = {key: value for key, value in row.items() if key != "receipt"}
        record["round"] = bundle.manifest.get("round")
        if sha256(canonical(record)) != row["receipt"]:
            problems.append(where + " does not fit its receipt")
        if row["battle"] not in shown:
            problems.append(where + " is on a battle that was not allocated")
        elif [row["left_sha256"], row["right_sha256"]] != shown[row["battle"]]:
            problems.append(where + " is on other texts than those of its battle")
        if row["rater"] not in bundle.raters:
            problems.append(where + " is by a rater that the protocol does not list")
        verdicts = row["verdicts"]
        if verdicts and (set(verdicts) != axes or not known(verdicts.values(), VERDICTS)):
            problems.append(where + " has unknown axes or verdicts")
        revisions[row["battle"], row["rater"]].append(row["revision"])
    for (battle, rater), numbers in revisions.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            problems.append("revisions of rater " + rater + " on battle " + battle + " have gaps")
    return problems


def displayed(battle: Row) -> list[str]:
    return [battle["sha256_" + side] for side in ("xy" if battle["left_is_x"] else "yx")]


def known(values: Any, allowed: set[str]) -> bool:
    return all(isinstance(value, str) and value in allowed for value in values)


def owner_problems(bundle: Bundle) -> list[str]:
    """The aggregate of owner votes is well-formed and no larger than its receipts."""
    problems: list[str] = []
    per_axis: Counter[str] = Counter()
    for row in bundle.owner["counts"]:
        if not isinstance(row, dict) or set(row) != {"x", "y", "axis", "verdict", "n"}:
            return ["a count is malformed"]
        if not known((row["x"], row["y"]), set(bundle.contestants)):
            problems.append("a count is not between two contestants of the protocol")
        if not known((row["axis"],), set(bundle.axes)) or not known(
            (row["verdict"],), OWNER_VERDICTS
        ):
            problems.append("a count has an unknown axis or verdict")
        elif type(row["n"]) is not int or row["n"] < 1:
            problems.append("a count is not a positive number")
        else:
            per_axis[row["axis"]] += row["n"]
    if len({per_axis[axis] for axis in bundle.axes}) > 1:
        problems.append("the axes count different numbers of votes")
    if per_axis and max(per_axis.values()) > len(bundle.owner_receipts):
        problems.append("more votes are counted than there are receipts")
    if not all(is_hash(receipt) for receipt in bundle.owner_receipts):
        problems.append("a receipt is malformed")
    return problems


def digest_problems(bundle: Bundle, published: str | None) -> list[str]:
    """The vote digest covers exactly the receipts of both vote files."""
    receipts = [row["receipt"] for row in bundle.votes] + bundle.owner_receipts
    if not all(is_hash(receipt) for receipt in receipts):
        return ["a receipt is malformed"]
    if len(set(receipts)) != len(receipts):
        return ["a receipt occurs twice"]
    digest = tree_root([bytes.fromhex(receipt) for receipt in sorted(receipts)])
    problems = []
    if digest != bundle.manifest["vote_digest"]:
        problems.append("the votes give " + digest + ", the bundle says otherwise")
    if published and digest != published:
        problems.append("the votes give " + digest + ", published at closing was " + published)
    return problems


def count_problems(bundle: Bundle) -> list[str]:
    actual = {
        "battles": len(bundle.battles),
        "texts": len(bundle.text_hashes),
        "votes": len(bundle.votes),
        "raters": len({row["rater"] for row in bundle.votes}),
        "owner_receipts": len(bundle.owner_receipts),
    }
    stated = bundle.manifest.get("counts")
    problems = [] if stated == actual else ["counted " + str(actual) + ", stated " + str(stated)]
    if bundle.manifest.get("round") != bundle.protocol.get("round"):
        problems.append("manifest and protocol name different rounds")
    return problems


def expect(actual: str, claims: list[tuple[str, str | None]]) -> list[str]:
    wrong = [(source, claim) for source, claim in claims if claim and claim != actual]
    return ["recomputed " + actual + ", " + source + " " + str(claim) for source, claim in wrong]


def verify(bundle: Bundle, options: argparse.Namespace, report: Report) -> None:
    """Run every check."""
    root = root_of(bundle)
    commitment = commitment_of(bundle, root)
    report.check("allocation is well-formed", allocation_problems(bundle))
    report.check(
        "leaves and salt give the root", expect(root, [("stated", bundle.manifest["root"])])
    )
    claims = [("stated", bundle.manifest["commitment"]), ("published", options.commitment)]
    report.check("protocol and root give the commitment", expect(commitment, claims))
    report.check("each pair is mirrored in its context", mirror_problems(bundle))
    report.check("texts fit their hashes", text_problems(bundle))
    report.check("votes fit receipts and battles", vote_problems(bundle))
    report.check("owner votes in aggregate", owner_problems(bundle))
    report.check("vote digest", digest_problems(bundle, options.vote_digest))
    report.check("counts", count_problems(bundle))
    places = dict.fromkeys(bundle.owner_receipts, " is among the owner votes")
    places.update((row["receipt"], " is on battle " + row["battle"]) for row in bundle.votes)
    for receipt in options.receipt:
        missing = [] if receipt in places else ["not in the bundle"]
        report.check("receipt " + receipt + places.get(receipt, ""), missing)
    if bundle.erased:
        say("NOTE  " + str(len(bundle.erased)) + " texts were erased after consent was withdrawn")
    if not options.commitment:
        say("NOTE  not compared with the commitment shown at opening (--commitment)")
    if not options.vote_digest:
        say("NOTE  not compared with the vote digest shown at closing (--vote-digest)")


def hex_argument(text: str) -> str:
    text = text.strip().lower()
    if not HEX64.fullmatch(text):
        raise argparse.ArgumentTypeError("not 64 hex digits: " + text[:80])
    return text


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Verify the bundle of a blind round.")
    parser.add_argument("bundle", help="the published zip")
    parser.add_argument("--commitment", type=hex_argument, help="as shown at opening")
    parser.add_argument("--vote-digest", type=hex_argument, help="as shown at closing")
    parser.add_argument("--receipt", type=hex_argument, action="append", default=[])
    parser.add_argument("--receipt-file", help="your downloaded receipts, or a text with them")
    options = parser.parse_args(argv)
    if options.receipt_file:
        try:
            with open(options.receipt_file, encoding="utf-8", errors="replace") as stream:
                words = receipts_in(stream.read(MAX_LINE), options.commitment)
        except OSError as error:
            parser.error(str(error))
        if not words:
            parser.error("no receipt in " + options.receipt_file)
        options.receipt += [word for word in words if word not in options.receipt]
    return options


def receipts_in(text: str, commitment: str | None) -> list[str]:
    """The downloaded JSON's receipts (of the round with this commitment), or every hex word."""
    try:
        rows = json.loads(text)["receipts"]
        return [
            row["receipt"]
            for row in rows
            if not commitment or row.get("commitment") in (None, commitment)
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return re.findall(r"\b[0-9a-f]{64}\b", text.lower())


def main(argv: list[str] | None = None) -> int:
    """Verify and return the exit code."""
    options, report = arguments(argv), Report()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with open_bundle(options.bundle) as archive:
            verify(Bundle(archive), options, report)
    except MalformedError as error:
        say("FAIL  bundle cannot be read: " + str(error))
        report.failed = True
    say("RESULT " + ("FAIL" if report.failed else "PASS"))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
