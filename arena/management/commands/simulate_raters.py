"""Simulated votes for a round that is sealed as simulated. Real rounds are refused."""

from __future__ import annotations

import math
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from arena.demo.contestants import PLANTED
from arena.enums import RoundState
from arena.models import Round
from arena.services import closing, ratings
from arena.services.rounds import contestants_of
from arena.services.simulated import (
    Simulation,
    check_simulated,
    make_simulated_raters,
    recovered,
    simulate_votes,
    vote_count,
)
from arena.simulation import Strengths, Temperament, planted_strengths
from webapp.core.errors import PalateError


class Command(BaseCommand):
    help = (
        "Vote with simulated raters, through the same services as the browser, on a round that "
        "is sealed as simulated. An interrupted run goes on when it is called again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        normal = Temperament()
        parser.add_argument("--round", type=int, help="number of the round")
        parser.add_argument("--raters", type=int, default=30)
        parser.add_argument("--votes", type=int, default=6000, help="all votes of the round")
        parser.add_argument("--seed", type=int, default=1, help="the same seed, the same votes")
        parser.add_argument("--taste", type=float, default=normal.taste_sd, help="raters' spread")
        parser.add_argument("--ties", type=float, default=normal.tie, help="Davidson's nu")
        parser.add_argument("--both-bad", type=float, default=normal.both_bad)
        parser.add_argument(
            "--side-bias", type=float, default=0.0, help="for the left, on the log scale"
        )
        parser.add_argument(
            "--make-raters", type=int, metavar="N", help="make N simulated accounts, then stop"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["make_raters"] is not None:
                made = make_simulated_raters(options["make_raters"])
                self.stdout.write(f"{len(made)} simulated raters can be chosen in a new round.")
                return
            self._simulate(options)
        except PalateError as error:
            raise CommandError(str(error)) from error

    def _simulate(self, options: dict[str, Any]) -> None:
        round_ = Round.objects.filter(pk=options["round"]).first()
        if round_ is None:
            raise CommandError("There is no such round. Give its number: --round N")
        check_simulated(round_)
        strengths = strengths_for(round_, options["seed"])
        if round_.state == RoundState.OPEN:
            self._vote(round_, strengths, options)
            round_ = self._close_when_due(round_)
        elif round_.state not in (RoundState.CLOSED, RoundState.UNSEALED):
            raise CommandError(f"The round is {round_.get_state_display()}; open it first.")
        if round_.state in (RoundState.CLOSED, RoundState.UNSEALED):
            ratings.rate_round(round_.pk)
            self._report(recovered(round_, strengths))

    def _vote(self, round_: Round, strengths: Strengths, options: dict[str, Any]) -> None:
        simulation = Simulation(
            raters=options["raters"],
            votes=options["votes"],
            seed=options["seed"],
            temperament=Temperament(
                taste_sd=options["taste"],
                tie=options["ties"],
                both_bad=options["both_bad"],
                side_bias=options["side_bias"],
            ),
        )
        before, started = vote_count(round_), time.perf_counter()
        with tqdm(total=options["votes"], initial=before, unit=" votes", disable=None) as bar:
            given = simulate_votes(
                round_=round_, strengths=strengths, simulation=simulation, on_vote=bar.update
            )
        seconds = time.perf_counter() - started
        self.stdout.write(
            f"{given:,} simulated votes in {seconds:.1f} s ({given / max(seconds, 1e-9):.0f} "
            f"votes/s); the round has {before + given:,}."
        )
        if before + given < options["votes"]:
            self.stdout.write("No battle is left for these raters: the plan has no more places.")

    def _close_when_due(self, round_: Round) -> Round:
        if not closing.is_due(round_):
            self.stdout.write("The round stays open: its stopping rule is not met yet.")
            return round_
        return closing.close_round(actor=None, round_=round_)

    def _report(self, found: dict[str, float]) -> None:
        for axis, value in found.items():
            note = "" if value >= 0.9 else "  (below 0.9: more votes are needed)"
            shown = "not to be had" if math.isnan(value) else f"{value:.3f}"
            self.stdout.write(f"Rank correlation with the planted strengths, {axis}: {shown}{note}")


def strengths_for(round_: Round, seed: int) -> dict[str, dict[str, float]]:
    """The demo's planted strengths where all contestants are the demo's, else drawn by the seed."""
    names = [str(contestant) for contestant in contestants_of(round_)]
    if all(name in PLANTED["quality"] for name in names):
        return {axis: {name: PLANTED[axis][name] for name in names} for axis in round_.axes}
    return planted_strengths(names, round_.axes, seed)
