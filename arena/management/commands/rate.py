"""`manage.py rate FILE`: rate any battle file, without the database."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from arena.ratings import BothBad, Cluster, Interval, Method, RatingResult, RatingSpec, rate
from arena.votefiles import LoadedVotes, VoteFileError, VoteFormat, load_votes

SHOWN_ERRORS = 20


class Command(BaseCommand):
    help = "Rate a battle file: strengths, intervals and rank intervals. Uses no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        _choice(parser, "--format", VoteFormat, VoteFormat.PALATE, "format of the file")
        _choice(parser, "--method", Method, Method.BRADLEY_TERRY, "how votes become strengths")
        _choice(parser, "--ci", Interval, Interval.SANDWICH, "where intervals come from")
        _choice(parser, "--cluster", Cluster, Cluster.BOTH, "what votes may have in common")
        _choice(parser, "--both-bad", BothBad, BothBad.AS_TIE, "how both-bad enters the fit")
        parser.add_argument("--axis", help="the verdict to rate in a palate file")
        parser.add_argument("--anchor", help="the contestant whose rating is --base")
        parser.add_argument("--base", type=float, default=1000.0)
        parser.add_argument("--confidence", type=float, default=0.95)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--replicates", type=int, default=1000, help="bootstrap replicates")
        parser.add_argument("--skip-bad", action="store_true", help="leave out refused rows")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        loaded = _load(options)
        try:
            result = rate(loaded.votes, _spec(options))
        except ValueError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            data = to_json(result, refused=len(loaded.errors))
            self.stdout.write(json.dumps(data, ensure_ascii=False, indent=1))
        else:
            self.stdout.write(to_table(result, refused=len(loaded.errors)))


def to_json(result: RatingResult, *, refused: int = 0) -> dict[str, Any]:
    """The documented answer: method, ratings strongest first, and everything said about them."""
    data = result.to_dict()
    del data["battles"]
    ratings = data.pop("rows")
    return {"method": data.pop("method"), "ratings": ratings, "refused_rows": refused, **data}


def to_table(result: RatingResult, *, refused: int = 0) -> str:
    """The same for reading: one line per contestant, then the statements."""
    width = max([len(row.contestant) for row in result.rows] + [10])
    lines = [f"{'rank':>9}  {'contestant':<{width}}  rating      interval    votes   tie  both bad"]
    for row in result.rows:
        interval = f"{_whole(row.lo)} … {_whole(row.hi)}"
        lines.append(
            f"{row.rank:>9}  {row.contestant:<{width}}  {_whole(row.rating):>6}  {interval:>14}"
            f"  {row.votes:>5}  {_percent(row.tie_rate):>4}  {_percent(row.both_bad_rate):>8}"
        )
    lines.append(f"{result.votes} votes, method {result.spec.method}")
    if result.side is not None and result.side.elo is not None:
        lines.append(f"The left side is worth {result.side.elo:+.0f} points.")
    if refused:
        lines.append(f"{refused} rows were refused and left out.")
    return "\n".join([*lines, *(note.text for note in result.notes)])


def _choice(parser: ArgumentParser, flag: str, kind: Any, default: Any, what: str) -> None:
    words = [str(member) for member in kind]
    parser.add_argument(flag, choices=words, default=str(default), help=f"{what} ({default})")


def _load(options: dict[str, Any]) -> LoadedVotes:
    path: Path = options["file"]
    try:
        loaded = load_votes(path, VoteFormat(options["format"]), axis=options["axis"])
    except VoteFileError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    if loaded.errors and not options["skip_bad"]:
        shown = "\n".join(map(str, loaded.errors[:SHOWN_ERRORS]))
        rest = len(loaded.errors) - SHOWN_ERRORS
        more = f"\n… and {rest} more" if rest > 0 else ""
        raise CommandError(f"{shown}{more}\nNothing was rated; --skip-bad leaves these rows out.")
    return loaded


def _spec(options: dict[str, Any]) -> RatingSpec:
    return RatingSpec(
        method=Method(options["method"]),
        ci=Interval(options["ci"]),
        cluster=Cluster(options["cluster"]),
        both_bad=BothBad(options["both_bad"]),
        anchor=options["anchor"],
        base=options["base"],
        confidence=options["confidence"],
        seed=options["seed"],
        replicates=options["replicates"],
    )


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
