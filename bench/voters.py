"""Raters over HTTP: they log in and vote on the real pages, as browsers do, in one event loop."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field

import httpx

CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
TOKEN = re.compile(r'name="token" value="([^"]+)"')
RECEIPT = re.compile(r'class="receipt">([0-9a-f]{16})')  # the newest comes first
CHOICES = ("left", "tie", "right", "both_bad")


@dataclass
class Record:
    """What happened, as the raters saw it."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    receipts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    resent: int = 0
    doubled: int = 0
    bytes_of_vote: list[int] = field(default_factory=list)


@dataclass
class Rater:
    """One person with a browser. `patience`: how long to send the same vote again after errors."""

    client: httpx.AsyncClient
    record: Record
    round_pk: int
    name: str
    password: str
    double_clicks: float = 0.0
    patience: float = 0.0
    think: float = 0.0
    form_page: str = "/vote/"

    async def work(self, votes: int) -> None:
        """Vote until `votes` are given or nothing is left. Log in before."""
        stream = random.Random(self.name)
        html = (await self.send("page", "GET", f"/vote/?round={self.round_pk}")).text
        for _number in range(votes):
            token, csrf = TOKEN.search(html), CSRF.search(html)
            if token is None or csrf is None:
                return
            form = {"token": token[1], "csrfmiddlewaretoken": csrf[1]}
            await self.send("prefetch", "POST", "/vote/prefetch/", form)
            await asyncio.sleep(self.think * stream.uniform(0.5, 1.5))
            ballot = {axis: stream.choice(CHOICES) for axis in ("quality", "personalization")}
            html = await self.vote({**form, **ballot, "active_ms": "15000"}, stream)

    async def log_in(self) -> None:
        page = await self.send("login page", "GET", "/accounts/login/")
        csrf = CSRF.search(page.text)
        form = {"username": self.name, "password": self.password}
        form["csrfmiddlewaretoken"] = csrf[1] if csrf else ""
        answer = await self.send("login", "POST", "/accounts/login/", form, fine=(302,))
        if answer.status_code != 302:
            raise RuntimeError(f"{self.name} could not log in: {answer.status_code}")

    async def vote(self, form: dict[str, str], stream: random.Random) -> str:
        """Send the vote (now and then by a double click) and return the next battle's page."""
        one = self.send("vote and next", "POST", "/vote/", form)
        if stream.random() < self.double_clicks:
            self.record.doubled += 1
            two = self.send("vote and next", "POST", "/vote/", form)
            answers = list(await asyncio.gather(one, two))
        else:
            answers = [await one]
        told = {found[1] for a in answers if (found := RECEIPT.search(a.text))}
        self.record.receipts += sorted(told)
        if len(told) != 1:
            self.record.errors.append(f"{len(told)} receipts, {answers[0].status_code}")
        self.record.bytes_of_vote.append(len(answers[0].content))
        return answers[-1].text

    async def send(
        self,
        kind: str,
        method: str,
        path: str,
        form: dict[str, str] | None = None,
        fine: tuple[int, ...] = (200, 204),
    ) -> httpx.Response:
        """One request with its time. Sent again while the server is away, as vote.js does."""
        by_script = path == self.form_page and method == "POST"
        headers = {"HX-Request": "true"} if by_script else {}
        deadline = time.monotonic() + self.patience
        while True:
            started = time.perf_counter()
            try:
                answer = await self.client.request(method, path, data=form, headers=headers)
            except httpx.TransportError as error:
                if time.monotonic() > deadline:
                    self.record.errors.append(f"{kind}: {type(error).__name__}")
                    raise
                self.record.resent += 1
                await asyncio.sleep(0.3)
                continue
            self.record.seconds[kind].append(time.perf_counter() - started)
            if answer.status_code not in fine:
                self.record.errors.append(f"{kind}: status {answer.status_code}")
            return answer


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def timings(record: Record, seconds: float) -> dict[str, dict[str, float]]:
    """Per kind of request: how many, a second, and percentiles in milliseconds."""
    return {
        kind: {
            "n": len(values),
            "per_s": round(len(values) / seconds, 1),
            **{
                f"p{round(100 * share)}_ms": round(1000 * percentile(values, share), 1)
                for share in (0.5, 0.95, 0.99)
            },
        }
        for kind, values in record.seconds.items()
    }


async def everybody(
    kind: type[Rater],
    address: str,
    record: Record,
    place: int,
    names: list[str],
    password: str,
    *,
    amount: int,
    double_clicks: float,
    think: float,
) -> float:
    """All of them at once until `amount` is given. Seconds from the first page on, logins aside."""
    limits = httpx.Limits(max_connections=2, max_keepalive_connections=2)
    clients = [httpx.AsyncClient(base_url=address, timeout=60, limits=limits) for _name in names]
    people = [
        kind(client, record, place, name, password, double_clicks, think=think)
        for client, name in zip(clients, names, strict=True)
    ]
    for person in people:
        await person.log_in()
    started = time.perf_counter()
    results = await asyncio.gather(*(p.work(amount) for p in people), return_exceptions=True)
    seconds = time.perf_counter() - started
    record.errors += [repr(result) for result in results if isinstance(result, BaseException)]
    for client in clients:
        await client.aclose()
    return seconds


def show_requests(requests: dict[str, dict[str, float]]) -> None:
    """A line for each kind of request."""
    print(f"  {'request':<16}{'n':>7}{'/s':>8}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}")
    for kind, row in requests.items():
        figures = f"{row['p50_ms']:>9}{row['p95_ms']:>9}{row['p99_ms']:>9}"
        print(f"  {kind:<16}{row['n']:>7}{row['per_s']:>8}{figures}")
