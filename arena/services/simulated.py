"""Simulated votes: through the same services as people's, on rounds sealed as simulated only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.contrib.auth.hashers import make_password
from django.db import transaction

from arena.enums import AssignmentState, RoundState, Variant
from arena.models import Battle, Rating, Round
from arena.services import leases, votes
from arena.simulation import SimulatedRater, Strengths, Temperament, rank_correlation
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.core.errors import InvalidInput, Refused

NAME = "sim-rater-{n:02d}"
NORMAL = Temperament()


@dataclass(frozen=True)
class Simulation:
    """What to simulate. `votes` counts all votes of the round, those of an earlier run included."""

    raters: int
    votes: int
    seed: int = 1
    temperament: Temperament = NORMAL


def make_simulated_raters(n: int) -> list[User]:
    """Accounts that vote in simulations. Nobody can log in to them: they have no password."""
    names = [NAME.format(n=number) for number in range(1, n + 1)]
    known = set(User.objects.filter(username__in=names).values_list("username", flat=True))
    User.objects.bulk_create(
        User(
            username=name,
            role=Role.RATER,
            password=make_password(None),
            preferences={"simulated": True},
        )
        for name in names
        if name not in known
    )
    found = User.objects.filter(username__in=names, preferences__simulated=True)
    if found.count() != n:
        raise Refused("A person's account has the name of a simulated rater.", code="taken")
    return list(found.order_by("username"))


def check_simulated(round_: Round) -> None:
    """Raise unless the round was sealed as simulated: real rounds hold people's votes alone."""
    if not round_.simulated:
        raise Refused(
            f"Round {round_.pk} (“{round_}”) is not sealed as simulated, so only people vote in "
            "it. Compose a round with simulated votes instead.",
            code="not_simulated",
        )


def simulated_raters(round_: Round, wanted: int) -> list[User]:
    """The first `wanted` simulated accounts among the raters of the round."""
    rows = User.objects.filter(
        pk__in=round_.round_raters.values("user"), preferences__simulated=True
    ).order_by("username")
    found = list(rows[:wanted])
    if len(found) < wanted:
        raise InvalidInput(
            f"The round has {len(found)} simulated raters, {wanted} were asked for. Raters are "
            "fixed when a round opens: make accounts first (simulate_raters --make-raters "
            f"{wanted}) and choose them in a new round.",
            field="raters",
        )
    return found


def vote_count(round_: Round) -> int:
    return round_.assignments.filter(state=AssignmentState.VOTED).count()


def simulate_votes(
    *,
    round_: Round,
    strengths: Strengths,
    simulation: Simulation,
    on_vote: Callable[[], object] = lambda: None,
) -> int:
    """Let the raters take turns until the round has the votes asked for. Number of new votes.

    Goes on where an interrupted run stopped; the same seed gives the same verdict on a battle.
    Raises Refused for rounds that are not simulated, and InvalidInput for too few raters.
    """
    check_simulated(round_)
    users = simulated_raters(round_, simulation.raters)
    people = {
        user.pk: SimulatedRater(user.username, simulation.seed, simulation.temperament)
        for user in users
    }
    battles = _battles(round_)
    missing = simulation.votes - vote_count(round_)
    given, waiting = 0, deque(users)
    while waiting and given < missing:
        user = waiting.popleft()
        if _vote_once(round_, user, people[user.pk], strengths, battles):
            given += 1
            waiting.append(user)
            on_vote()
    return given


Battles = dict[int, tuple[str, str, str]]  # battle → contestants left and right, its public id


def _battles(round_: Round) -> Battles:
    """Who stands where. Only the simulation knows; the services hand out blind leases."""
    rows = Battle.objects.filter(round=round_).select_related(
        "slot__x__contestant", "slot__y__contestant"
    )
    found: Battles = {}
    for row in rows:
        sides = [str(row.slot.x.contestant), str(row.slot.y.contestant)]
        left, right = sides if row.left_is_x else reversed(sides)
        found[row.pk] = (left, right, row.public_id)
    return found


def _vote_once(
    round_: Round, user: User, person: SimulatedRater, strengths: Strengths, battles: Battles
) -> bool:
    """Take the next battle and vote on it. False: nothing is left for this rater."""
    with transaction.atomic():
        row = leases.current_ballot(user=user, round_=round_)
        if row is None:
            return False
        left, right, battle = battles[row.battle_id]
        ballot = votes.Ballot(
            verdicts=person.verdicts(strengths, left, right, battle),
            active_ms=person.active_ms(battle),
        )
        votes.cast_vote(user=user, token=row.token, ballot=ballot)
    return True


def recovered(round_: Round, strengths: Strengths) -> dict[str, float]:
    """Rank correlation of the ratings with the planted strengths, per axis."""
    check_simulated(round_)
    if round_.state not in (RoundState.CLOSED, RoundState.UNSEALED):
        raise Refused("The round is not closed yet, so it has no ratings.", code="not_closed")
    return {
        axis: rank_correlation(values, _found(round_, axis)) for axis, values in strengths.items()
    }


def _found(round_: Round, axis: str) -> dict[str, float]:
    rows: Iterable[Rating] = Rating.objects.filter(
        snapshot__round=round_, snapshot__variant=Variant.ALL, axis=axis, stratum=""
    ).select_related("contestant")
    return {str(row.contestant): row.strength for row in rows if row.strength is not None}
