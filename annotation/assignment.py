"""Who gets what, where it stands, and for how long. Pure: no Django, no models.

Everything random comes from the project's secret seed by HMAC-SHA256, so that it can be repeated
by who has the seed and foretold by nobody else.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum

LEASE_FACTOR = 3  # times the usual active time
SHORTEST_S, LONGEST_S, FIRST_S = 120, 1800, 900
REPEAT_AFTER = 10  # submissions between an item and its repeat


class Serving(StrEnum):
    ITEM = "item"
    GOLD = "gold"
    REPEAT = "repeat"


def draw(seed: str, *parts: object) -> int:
    """A number from 0 to 2**62 - 1 that depends on the seed and all parts."""
    message = "\x1f".join(str(part) for part in parts).encode()
    return int.from_bytes(hmac.digest(bytes.fromhex(seed), message, hashlib.sha256)[:8]) >> 2


def shuffle_key(seed: str, content_sha256: str) -> int:
    """The place of an item in the queue: random, and the same whenever it is imported."""
    return draw(seed, "queue", content_sha256)


def pseudonym(seed: str, user_pk: int) -> str:
    return f"a-{draw(seed, 'pseudonym', user_pk):016x}"[:12]


def serving(seed: str, member: int, position: int, gold: int, repeat: int) -> Serving:
    """What the member's lease number `position` is: gold in `gold` of 100, a repeat in `repeat`.

    Each lease is drawn alone, so that nothing about the next can be told from those before.
    """
    drawn = draw(seed, "serving", member, position) % 100
    if drawn < gold:
        return Serving.GOLD
    return Serving.REPEAT if drawn < gold + repeat else Serving.ITEM


def first_stands_left(seed: str, item: str, nth: int) -> bool:
    """The side of the item's first answer for its `nth` lease: every second one is mirrored."""
    return (draw(seed, "side", item) + nth) % 2 == 0


def lease_seconds(minutes: int | None, median_active_ms: int) -> int:
    """How long an item is somebody's: as the project says, else three times the usual time."""
    if minutes:
        return minutes * 60
    if not median_active_ms:
        return FIRST_S
    return min(max(LEASE_FACTOR * median_active_ms // 1000, SHORTEST_S), LONGEST_S)
