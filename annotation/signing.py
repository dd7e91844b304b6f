"""How a webhook is signed and when it is tried again. Pure: no Django, no models.

The signature covers the time and the exact bytes of the body:

    Palate-Signature: t=1764420000,v1=<hex of HMAC-SHA256(secret, "1764420000." + body)>

A receiver computes the same and refuses what is older than TOLERANCE_S (docs/annotation-api.md).
"""

from __future__ import annotations

import hashlib
import hmac

TOLERANCE_S = 300
FIRST_S, FACTOR, LONGEST_S = 10.0, 3.0, 4 * 3600.0
DAY_S = 24 * 3600.0


def sign(secret: str, at: int, body: bytes) -> str:
    """The value of the header Palate-Signature for a body sent at this Unix time."""
    return f"t={at},v1={_digest(secret, at, body)}"


def verify(secret: str, header: str, body: bytes, now: int, tolerance: int = TOLERANCE_S) -> bool:
    """Whether the header was made with the secret for this body, not longer ago than allowed."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    stamp = parts.get("t", "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return False
    if abs(now - int(stamp)) > tolerance:
        return False
    wanted = _digest(secret, int(stamp), body)
    return hmac.compare_digest(wanted.encode(), parts.get("v1", "").encode())


def _digest(secret: str, at: int, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def pause_s(attempts: int, share: float) -> float:
    """Seconds until the next attempt after `attempts` failed ones; `share` (0 to 1) spreads them.

    10 s, 30 s, 90 s … up to four hours, each a fifth shorter or longer.
    """
    exact = min(FIRST_S * FACTOR ** min(attempts - 1, 20), LONGEST_S)
    return exact * (0.8 + 0.4 * share)
