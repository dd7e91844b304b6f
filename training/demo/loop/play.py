"""The loop in its order. Every step finds what an earlier, killed start of it has made."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from arena.demo.people import DEMO_PASSWORD, LOOP_LOGINS
from arena.models import Round
from training.demo.loop import judging, labelling, learning, second, tasting, town
from training.demo.loop.endpoint import Endpoint
from training.demo.loop.labelling import Labelling
from training.demo.loop.learning import Runs
from training.demo.world import Sizes
from training.enums import Verdict
from training.models import ChainRun, GateRun, GateSpec
from training.selectors.evidence import as_json, read_evidence
from training.services.predictions import launch_predictions
from webapp.accounts.enums import Role
from webapp.accounts.models import User
from webapp.accounts.services import create_api_token, create_user
from webapp.catalog.models import Contestant
from webapp.core.errors import Refused

VERIFIER = Path("arena") / "verify_bundle.py"
SHORT_VOTES = 60
FIELD = 4  # contestants for whom the votes are planned


@dataclass
class Play:
    """What a start of the loop knows, and what it has found or made so far."""

    address: str
    seed: int
    model_port: int
    short: bool = False
    say: Callable[[str], object] = print
    work: list[Labelling] = field(default_factory=list)
    gates: dict[str, GateRun] = field(default_factory=dict)
    gate: GateSpec = field(init=False)
    chain: ChainRun = field(init=False)
    contestants: dict[str, Contestant] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ada, self.ben = administrators()
        self.sizes: Sizes = town.SHORT if self.short else town.FULL
        self.place = town.town(self.seed)
        self.votes = SHORT_VOTES if self.short else tasting.VOTES

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        started = time.monotonic()
        self.say(f"— {name}")
        found = work()
        self.seconds[name] = time.monotonic() - started
        return found


def administrators() -> tuple[User, User]:
    """Two, because an override and an unsealing need two."""
    found = []
    for name, _role in LOOP_LOGINS:
        user = User.objects.filter(username=name).first()
        found.append(user or create_user(username=name, password=DEMO_PASSWORD, role=Role.ADMIN))
    return found[0], found[1]


def play(it: Play) -> Play:
    """From an empty database to a second policy, made by the chain."""
    runs = it.step("people label pairs", lambda: teach(it))
    it.step("reward models and policies", lambda: learning.policies(runs, short=it.short))
    it.step("gates", lambda: judge(it, runs))
    it.step("contestants", lambda: enter(it, runs))
    who = tasting.of_corners(it.place.tastings[0])
    first = f"Loop {it.seed}: first round"
    it.step("first round", lambda: taste(it, runs, first, list(it.contestants.values()), who))
    if judging.POLICY in it.contestants:
        it.step("predictions", lambda: predict(it, runs))
        it.step("second policy by the chain", lambda: go_on(it, runs))
    return it


def teach(it: Play) -> Runs:
    """The base trains while simulated annotators label."""
    first = learning.instructions(it.ada, it.place, it.sizes, it.seed)
    corners = learning.placed(first, it.place)
    broken = learning.defects(it.ada, corners, it.sizes, it.seed)
    runs = Runs(
        learning.workshop({"instructions": first, "quality": first, "personalization": first,
                           "defects": broken}),
        it.ada, f"Loop {it.seed}", learning.SHORT if it.short else {}, say=it.say,
    )  # fmt: skip
    learning.fine_tuned(runs)
    it.work = labelling.prepared(it.ada, f"Loop {it.seed}", corners, it.sizes, it.seed)
    given = labelling.label_all(it.address, labelling.annotators(it.seed), it.work)
    labelling.close(it.ada, it.work)
    it.facts["labels"] = labelling.labels_of(it.work)
    it.facts["paused"] = labelling.paused(it.work)
    it.say(f"{sum(given.values())} labels; paused by gold: {', '.join(it.facts['paused'])}")
    sets = {work.axis: learning.preferences(it.ada, work, it.seed) for work in it.work}
    runs.workshop = learning.workshop({"instructions": first, "defects": broken, **sets})
    runs.wait("SFT")
    return runs


def judge(it: Play, runs: Runs) -> None:
    """The policy before, in the middle and at the end of its training; the hacked one."""
    it.gate = judging.spec(runs, f"Loop {it.seed}", short=it.short)
    along = judging.along(runs, it.gate, "GRPO")
    (hacked,) = judging.judged(runs, it.gate, "hacked")
    it.gates = {**along, "hacked": hacked}
    it.facts["gates"] = {name: run.verdict for name, run in it.gates.items()}


def enter(it: Play, runs: Runs) -> None:
    """The base as a baseline, the policy by its gate, the hacked one by an override."""
    sound = it.gates["100 %"]
    if sound.verdict == Verdict.PASS:
        it.facts["fakes"] = judging.read_successes(it.ada, sound)
        it.say(f"successes read: {sound.spec.audit}, fake: {it.facts['fakes']}")
        try:
            it.contestants[judging.POLICY] = judging.promoted(it.ada, sound, judging.POLICY)
        except Refused as refused:  # the report says that the policy is missing
            it.say(f"not promoted: {refused}")
    it.contestants[judging.BASE] = judging.baseline(it.ada, runs.runs["SFT"])
    key = f"{runs.prefix}:override"
    it.contestants[judging.HACKED] = judging.let_in(it.ada, it.ben, it.gates["hacked"], key)
    url = f"http://127.0.0.1:{it.model_port}/v1"
    it.contestants[judging.BLIND] = judging.blind(it.ada, url)


def taste(
    it: Play, runs: Runs, name: str, contestants: list[Contestant], who: tasting.Guests
) -> Round:
    """A sealed round of both axes, voted on by simulated seed users over HTTP."""
    pairs = math.comb(len(contestants), 2)  # fewer without a policy that may enter
    votes = it.votes * pairs // math.comb(FIELD, 2)
    draft = tasting.composed(it.ada, name, contestants, who, votes)
    place = Path(settings.PALATE_RUNS) / runs.runs["SFT"].directory / "model"
    with Endpoint(str(place), it.model_port, dict(judging.TASTED)):
        round_ = tasting.opened(it.ada, draft, it.say)
    tasting.voted(it.address, tasting.raters(it.seed), round_, town.opinion)
    round_ = tasting.unsealed((it.ada, it.ben), round_)
    token = create_api_token(user=it.ada, name="loop")
    script = Path(settings.BASE_DIR) / VERIFIER
    folder = Path(settings.PALATE_HOME)
    fine = tasting.verified(it.address, token, round_, folder, script)
    it.facts.setdefault("verified", []).append(fine)
    it.say(f"bundle of “{round_}”: {'verified' if fine else 'NOT verified'}")
    it.rounds.append(round_)
    return round_


def predict(it: Play, runs: Runs) -> None:
    """What the reward models say of the answers that people judged."""
    policy, round_ = it.contestants[judging.POLICY], it.rounds[0]
    runs.runs["predictions"] = launch_predictions(actor=it.ada, contestant=policy, round_=round_)
    runs.wait("predictions")
    it.facts["evidence"] = as_json(read_evidence(policy, round_))


def go_on(it: Play, runs: Runs) -> None:
    """The votes join the labels, and the chain does everything that an administrator did above."""
    stand_by = [it.contestants[judging.BASE], it.contestants[judging.POLICY]]
    raters = [row.pk for row in tasting.seed_users()]
    who = second.guests(it.place)
    name = f"Loop {it.seed}: round of the chain {{n}}"
    what = second.recipe(runs, it.gate, name, stand_by, who, raters, it.votes // 2)
    it.chain = second.chained(it.ada, runs, what)
    it.facts["votes as pairs"] = second.votes_in(it.chain)
    found = Contestant.objects.filter(name=judging.SECOND).first()
    if found is not None:
        it.contestants[judging.SECOND] = found
    gate = it.chain.steps.get(stage="gate").links.first()
    if gate is not None and gate.gate is not None:
        it.facts["gates"]["second"] = gate.gate.verdict
