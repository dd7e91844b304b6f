"""What every template may use."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

THEMES = ("light", "dark")


def site(request: HttpRequest) -> dict[str, Any]:
    """`theme` ("light", "dark" or "" for the system's), and what the navigation depends on."""
    theme = request.COOKIES.get("theme", "")
    return {
        "theme": theme if theme in THEMES else "",
        "demo": settings.DEMO,
        "leaderboard_public": settings.LEADERBOARD_PUBLIC,
    }
