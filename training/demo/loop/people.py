"""Simulated annotators and seed users. They know the site by its API alone, and judge by texts.

The same person says the same of the same texts whenever she is asked, so that a loop that was
killed and goes on ends as one that was not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

OTHER_SIDE = {"left": "right", "right": "left"}
PATIENCE = 120.0  # seconds that the site may be away
Opinion = Callable[[str, str, str, tuple[str, str]], str]


class SiteGoneError(Exception):
    """The site did not answer for too long, or refused what it should take."""


@dataclass(frozen=True)
class Person:
    """`accuracy` is the share of verdicts that follow the truth; others are any of the rest."""

    name: str
    token: str
    accuracy: float = 0.95
    seed: int = 1

    def verdict(self, axis: str, truth: str, allowed: Iterable[str], key: str) -> str:
        chance = random.Random("\x1f".join((str(self.seed), self.name, axis, key)))  # noqa: S311
        if chance.random() < self.accuracy and truth in allowed:
            return truth
        rest = [verdict for verdict in allowed if verdict != truth]
        return chance.choice(rest) if rest else truth

    def active_ms(self, key: str) -> int:
        chance = random.Random("\x1f".join((self.name, "time", key)))  # noqa: S311
        return int(1000 * chance.lognormvariate(3.0, 0.5))


class Api:
    """The API as one person may use it. A site that is away for a while is asked again."""

    def __init__(self, address: str, person: Person) -> None:
        headers = {"Authorization": f"Token {person.token}"}
        base = f"{address}/api/v1/"
        self.client = httpx.Client(base_url=base, headers=headers, timeout=60)

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        end, pause = time.monotonic() + PATIENCE, 0.05
        while True:
            try:
                found = self.client.request(method, path, json=body)
                if found.status_code < 500 and found.status_code != 429:
                    return found
                said = f"{found.status_code}"
            except httpx.TransportError as error:
                said = type(error).__name__
            if time.monotonic() > end:
                raise SiteGoneError(f"{method} {path}: {said}")
            time.sleep(pause)
            pause = min(2.0, 2 * pause)

    def close(self) -> None:
        self.client.close()


def label(address: str, person: Person, project: int, opinion: Opinion) -> int:
    """Label until nothing is left or the account is paused. The number of labels."""
    api, given = Api(address, person), 0
    work = f"annotation/work/{project}/"
    try:
        newest = api.send("GET", f"{work}guidelines/").json()["n"]
        api.send("POST", f"{work}guidelines/", {"n": newest})
        while True:
            found = api.send("POST", f"{work}next/")
            if found.status_code != 200:
                return given  # 204: nothing is left; 403, 409: paused or closed
            answer = judged(person, found.json(), opinion, found.json()["verdicts"])
            given += api.send("POST", "annotation/work/labels/", answer).status_code == 200
    finally:
        api.close()


def vote(address: str, person: Person, round_: int, opinion: Opinion) -> int:
    """Vote until the round has nothing more for this person. The number of votes."""
    api, given = Api(address, person), 0
    try:
        while True:
            found = api.send("POST", f"voting/rounds/{round_}/ballot/")
            if found.status_code != 200:
                return given
            allowed = ("left", "right", "tie", "both_bad")
            ballot = judged(person, found.json(), opinion, allowed)
            given += api.send("POST", "voting/votes/", ballot).status_code == 200
    finally:
        api.close()


def judged(
    person: Person, task: Mapping[str, Any], opinion: Opinion, allowed: Iterable[str]
) -> dict[str, Any]:
    """What this person says of a blind pair, as the API takes it."""
    texts = (str(task["left"]), str(task["right"]))
    summary, question = str(task["persona_summary"]), str(task["messages"][-1]["content"])
    swapped = texts[0] > texts[1]  # she judges the texts, whichever side they stand on
    first, second = sorted(texts)
    key = "\x1f".join((summary, question, first, second))
    verdicts = {}
    for axis in task["axes"]:
        truth = opinion(axis, summary, question, (first, second))
        said = person.verdict(axis, truth, list(allowed), key)
        verdicts[axis] = OTHER_SIDE.get(said, said) if swapped else said
    return {"token": task["token"], "verdicts": verdicts, "active_ms": person.active_ms(key)}


def together(work: Callable[[Person], int], everybody: Iterable[Person]) -> dict[str, int]:
    """All at once, each in a thread of her own. What each did, by name."""
    people = list(everybody)
    with ThreadPoolExecutor(len(people)) as pool:
        return dict(zip([p.name for p in people], pool.map(work, people), strict=True))
