"""Files of an unsealed round: tables for people and programs, the bundle, and its verification."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from arena import verify_bundle
from arena.blinding import SealedBattle, VoteRecord
from arena.bundles import BundleError, BundleVote, build_bundle, write_zip
from arena.models import Round
from arena.protocol import round_key
from arena.selectors.leaderboard import Board, BoardRow, check_unsealed
from arena.selectors.sealed import bundle_input, bundle_votes, erased_texts, sealed_battles
from arena.selectors.statements import axis_label, variant_label
from webapp.catalog.strata import stratum_label
from webapp.core.charts import IntervalRow, interval_chart
from webapp.core.errors import Refused
from webapp.core.kept import kept_file

FORMAT = "palate-leaderboard-1"
FORM = 1  # count up when the same rows come to be written otherwise: kept files are then made anew
log = logging.getLogger("palate.bundle")
HEAD = 56  # height of the lines above a standalone chart
FORBIDDEN = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")  # not allowed in XML
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
COLUMNS = (
    "round",
    "simulated",
    "axis",
    "stratum",
    "variant",
    "rank_lo",
    "rank_hi",
    "contestant",
    "rating",
    "lo",
    "hi",
    "strength",
    "votes",
    "tie_rate",
    "both_bad_rate",
    "commitment",
)


def file_name(round_: Round, what: str) -> str:
    """A plain file name; a simulated round says so even on disk."""
    mark = "-simulated" if round_.simulated else ""
    return f"palate-{round_key(round_)}{mark}-{what}"


# --- tables -----------------------------------------------------------------------------------


def safe_cell(value: Any) -> Any:
    """A cell that no spreadsheet runs as a formula; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return "'" + value
    return "" if value is None else value


def leaderboard_csv(boards: Iterable[Board]) -> Iterator[str]:
    """The boards as CSV, one line per contestant, streamed."""
    yield _csv_line(COLUMNS)
    for board in boards:
        for row in board.rows:
            yield _csv_line([safe_cell(cell) for cell in _cells(board, row)])


def _cells(board: Board, row: BoardRow) -> list[Any]:
    return [
        board.round.name,
        "simulated" if board.simulated else "no",
        board.axis,
        board.stratum,
        board.variant,
        row.rank_lo,
        row.rank_hi,
        row.contestant,
        row.rating,
        row.lo,
        row.hi,
        row.strength,
        row.votes,
        row.tie_rate,
        row.both_bad_rate,
        board.round.commitment,
    ]


def _csv_line(cells: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def leaderboard_json(round_: Round, boards: Iterable[Board]) -> dict[str, Any]:
    """The boards with their matrices and notes as plain data."""
    return {"format": FORMAT, "round": round_facts(round_), "boards": list(map(board_data, boards))}


def round_facts(round_: Round) -> dict[str, Any]:
    """What identifies an unsealed round and proves that nothing was changed."""
    return {
        "id": round_.pk,
        "key": round_key(round_),
        "name": round_.name,
        "simulated": round_.simulated,
        "unsealed_at": round_.unsealed_at.isoformat() if round_.unsealed_at else None,
        "commitment": round_.commitment,
        "merkle_root": round_.merkle_root,
        "vote_digest": round_.vote_digest,
    }


def board_data(board: Board) -> dict[str, Any]:
    """One board as plain data, without NaN or infinity."""
    result = board.result
    return {
        "axis": board.axis,
        "stratum": board.stratum,
        "variant": board.variant,
        "simulated": board.simulated,
        "first": board.first,
        "votes": result["votes"],
        "raters": result["raters"],
        "contexts": result["contexts"],
        "spec": board.snapshot.spec,
        "code_version": board.snapshot.code_version,
        "rows": [row_data(row) for row in board.rows],
        "win_fraction": result["win_fraction"],
        "battles": result["battles"],
        "side": result["side"],
        "nu": result["nu"],
        "weights": result["weights"],
        "notes": result["notes"],
        "flow": dict(board.flow),
    }


def row_data(row: BoardRow) -> dict[str, Any]:
    return {
        "contestant_id": row.contestant_id,
        "contestant": row.contestant,
        "rank_lo": row.rank_lo,
        "rank_hi": row.rank_hi,
        "rating": row.rating,
        "lo": row.lo,
        "hi": row.hi,
        "strength": row.strength,
        "votes": row.votes,
        "tie_rate": row.tie_rate,
        "both_bad_rate": row.both_bad_rate,
        "first": row.first,
    }


# --- picture ----------------------------------------------------------------------------------


def interval_rows(board: Board) -> list[IntervalRow]:
    """The rows as charts take them: NaN where there is no rating, infinity where no bound."""
    return [_interval_row(row) for row in board.rows]


def _interval_row(row: BoardRow) -> IntervalRow:
    rating = float("nan") if row.rating is None else row.rating
    lo, hi = row.lo, row.hi
    if lo is None and hi is None:  # no interval at all: the point alone
        lo = hi = rating
    return IntervalRow(
        rank=row.rank,
        name=row.contestant,
        rating=rating,
        lo=float("-inf") if lo is None else lo,
        hi=float("inf") if hi is None else hi,
        votes=row.votes,
    )


def picture_title(board: Board) -> str:
    """What the picture shows, in one line; a simulated round says so first."""
    parts = [_("SIMULATED VOTES")] if board.simulated else []
    parts += [
        board.round.name,
        axis_label(board.axis),
        stratum_label(board.stratum),
        variant_label(board.variant),
    ]
    return " · ".join(parts)


def leaderboard_svg(board: Board) -> str:
    """A picture that stands on its own, with its title and source written into it."""
    title = picture_title(board)
    chart = interval_chart(interval_rows(board), title=title, standalone=True)
    sizes = re.search(r' width="(\d+)" height="(\d+)"', chart)
    assert sizes is not None, "every chart states its size"
    width, height = int(sizes[1]), int(sizes[2])
    unsealed = board.round.unsealed_at
    source = _("Palate · unsealed %(date)s · commitment %(code)s…") % {
        "date": unsealed.date().isoformat() if unsealed else "–",
        "code": board.round.commitment[:16],
    }
    head = _svg_line(title, width, 24, 15, "#1e1b22") + _svg_line(source, width, 46, 12, "#5c5664")
    frame = f'width="{width}" height="{height + HEAD}" viewBox="0 0 {width} {height + HEAD}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {frame} aria-label="{_xml(title)}" '
        f'font-family="system-ui, sans-serif"><title>{_xml(title)}</title>'
        f'<rect width="{width}" height="{height + HEAD}" fill="#ffffff"/>{head}'
        f'<g transform="translate(0 {HEAD})">{chart}</g></svg>'
    )


def _svg_line(text: str, width: int, y: int, size: int, colour: str) -> str:
    """One line of text, squeezed only where it would not fit."""
    room = width - 32
    squeeze = f' textLength="{room}" lengthAdjust="spacingAndGlyphs"'
    long = sum(1.0 if ord(c) > 0x2E7F else 0.56 for c in text) * size > room
    place = f'x="16" y="{y}" font-size="{size}" fill="{colour}"'
    return f"<text {place}{squeeze if long else ''}>{_xml(text)}</text>"


def _xml(text: str) -> str:
    return escape(FORBIDDEN.sub("", text))


# --- bundle -----------------------------------------------------------------------------------


def bundle_file(round_: Round) -> BinaryIO:
    """The bundle as an open zip file at its beginning; the same round gives the same bytes.

    It is built once and kept, until a text of the round is erased. Refused unless the round is
    unsealed, and where its rows no longer lead to the commitment.
    """
    check_unsealed(round_)

    def write(target: BinaryIO) -> None:
        try:
            write_zip(build_bundle(bundle_input(round_)), target)
        except BundleError as error:
            log.error("bundle cannot be built: %s", error, extra={"round": round_.pk})
            raise Refused(
                _("The bundle does not fit what was sealed, so it is not published. See the log."),
                code="bundle_broken",
            ) from error

    erased = len(erased_texts(round_))
    return kept_file(f"bundle-{round_.pk}", _kept_name(round_, f"{erased}.zip"), write)


def _kept_name(round_: Round, end: str) -> str:
    """What was sealed, what was voted, and in which form it is written."""
    fixed = f"{FORM} {round_.commitment} {round_.vote_digest}"
    return f"{hashlib.sha256(fixed.encode()).hexdigest()[:32]}-{end}"


def verify_script() -> str:
    """The stand-alone script that checks a bundle, as it is kept in the source."""
    return Path(verify_bundle.__file__).read_text(encoding="utf-8")


def votes_file(round_: Round) -> BinaryIO:
    """The lines of `vote_lines` as an open file, written once and kept."""
    check_unsealed(round_)

    def write(target: BinaryIO) -> None:
        for line in vote_lines(round_):
            target.write(line.encode())

    return kept_file(f"votes-{round_.pk}", _kept_name(round_, "votes.jsonl"), write)


def vote_lines(round_: Round) -> Iterator[str]:
    """The standing votes of everybody but owners as JSON lines that `manage.py rate` reads.

    Nothing that the bundle does not say already: allocation and votes, joined.
    """
    check_unsealed(round_)
    battles = {battle.battle: battle for battle in sealed_battles(round_)}
    for record in _standing(bundle_votes(round_)):
        if record.verdicts:
            yield json.dumps(_vote_row(record, battles[record.battle]), ensure_ascii=False) + "\n"


def _standing(votes: Iterable[BundleVote]) -> list[VoteRecord]:
    """The newest revision of every vote that the bundle publishes, in the order of the bundle."""
    newest: dict[tuple[str, str], VoteRecord] = {}
    for vote in votes:
        record = vote.record
        known = newest.get((record.battle, record.rater))
        if not vote.owner and (known is None or known.revision < record.revision):
            newest[record.battle, record.rater] = record
    return [newest[key] for key in sorted(newest)]


def _vote_row(record: VoteRecord, battle: SealedBattle) -> Mapping[str, Any]:
    left, right = (battle.x, battle.y) if battle.left_is_x else (battle.y, battle.x)
    return {
        "contestant_left": left,
        "contestant_right": right,
        **record.verdicts,
        "rater": record.rater,
        "context": battle.context,
    }
