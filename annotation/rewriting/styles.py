"""Which style suits whom, what its opposite is, and whether a rewrite really changed it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from annotation.rewriting import phrases
from annotation.rewriting.parts import outside_code

CONCISE, STEPWISE, FORMAL, CASUAL = "concise", "stepwise", "formal", "casual"
STYLES = (CONCISE, STEPWISE, FORMAL, CASUAL)
OPPOSITE = {CONCISE: STEPWISE, STEPWISE: CONCISE, FORMAL: CASUAL, CASUAL: FORMAL}
# Feature values that name a style, looked at in this order.
SUITS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("detail", CONCISE, frozenset({"concise", "brief", "short", "low", "简短", "简洁", "简要"})),
    (
        "detail",
        STEPWISE,
        frozenset({"detailed", "steps", "stepwise", "long", "high", "full", "详细", "步骤"}),
    ),
    ("expertise", CONCISE, frozenset({"expert", "professional", "senior", "专家", "资深"})),
    ("expertise", STEPWISE, frozenset({"novice", "beginner", "layperson", "新手", "初学者"})),
    ("tone", FORMAL, frozenset({"formal", "polite", "正式", "礼貌"})),
    ("tone", CASUAL, frozenset({"casual", "informal", "relaxed", "friendly", "随意", "轻松"})),
)
LONGER, SHORTER = 1.2, 0.9  # stepwise has at least so many times the characters, concise at most
MORE_LISTED = 0.2  # and at least this share more of its lines stands in lists
TONE_STEP = 1.0  # casual minus formal marks in 100 words


def style_of(features: Mapping[str, str]) -> str:
    """The style that suits a persona with these features; "" where they do not say."""
    for name, style, values in SUITS:
        if str(features.get(name, "")).lower() in values:
            return style
    return ""


def changed(
    to: str, before: Mapping[str, float], after: Mapping[str, float], tone: tuple[float, float]
) -> bool:
    """Whether the style went the right way, by the measures of `style_features` and the tone."""
    ratio = after["characters"] / max(before["characters"], 1)
    listed = after["lists"] - before["lists"]
    if to == STEPWISE:
        return ratio >= LONGER and listed >= min(MORE_LISTED, 1 - before["lists"])
    if to == CONCISE:
        return ratio <= SHORTER and listed <= 0
    moved = tone[1] - tone[0]
    return moved >= TONE_STEP if to == CASUAL else moved <= -TONE_STEP


def tone_of(text: str) -> float:
    """Marks of casual text minus marks of formal text, in 100 words (characters of Han: 200)."""
    prose = outside_code(text)
    size = max(len(prose.split()), len(prose) / 2 if prose.isascii() is False else 0, 20)
    marks = len(phrases.CASUAL_MARK.findall(prose)) - len(phrases.FORMAL_MARK.findall(prose))
    return round(100 * marks / size, 2)
