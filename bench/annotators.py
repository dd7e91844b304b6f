"""Annotators over HTTP on the real pages, in one event loop; the browser part is that of raters."""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass

from bench.voters import CSRF, TOKEN, Rater

LAST = re.compile(r'name="last" value="([0-9a-f]{32})"')
USUAL = 0.75  # how often somebody chooses what most would choose
CHOICES = ("left", "tie", "right", "both_bad")
ITEM = re.compile(r"In short: number (\d+)")


@dataclass
class Annotator(Rater):
    """One person with a browser; the `receipts` are tokens of what she was told is saved."""

    async def work(self, votes: int) -> None:
        """Label until `votes` are given or nothing is left. Log in before."""
        stream = random.Random(self.name)
        self.form_page = f"/annotation/{self.round_pk}/label/"
        html = (await self.send("page", "GET", self.form_page)).text
        for _number in range(votes):
            token, csrf = TOKEN.search(html), CSRF.search(html)
            if token is None or csrf is None:
                return
            form = {"token": token[1], "csrfmiddlewaretoken": csrf[1]}
            await self.send("prefetch", "POST", f"{self.form_page}prefetch/", form, fine=(204, 409))
            await asyncio.sleep(self.think * stream.uniform(0.5, 1.5))
            choice = self.choose(html, stream)
            answer = {"quality": choice, "personalization": choice, "active_ms": "15000"}
            html = await self.label({**form, **answer}, stream)

    def choose(self, html: str, stream: random.Random) -> str:
        """Mostly the answer that is better by its number, else anything."""
        if stream.random() > USUAL:
            return stream.choice(CHOICES)
        found = ITEM.search(html)
        first_left = found is not None and html.find("In short") < html.find("Begin with")
        first_better = found is not None and int(found[1]) % 3 > 0
        return "left" if first_left == first_better else "right"

    async def label(self, form: dict[str, str], stream: random.Random) -> str:
        """Submit (now and then by a double click) and return the page of the next item."""
        one = self.send("submit and next", "POST", self.form_page, form)
        if stream.random() < self.double_clicks:
            self.record.doubled += 1
            two = self.send("submit and next", "POST", self.form_page, form)
            answers = list(await asyncio.gather(one, two))
        else:
            answers = [await one]
        told = {found[1] for a in answers if (found := LAST.search(a.text))}
        if told == {form["token"]}:
            self.record.receipts.append(form["token"])
        else:
            self.record.errors.append(f"told {len(told)} others, {answers[0].status_code}")
        self.record.bytes_of_vote.append(len(answers[0].content))
        return answers[-1].text
