"""OpenAI's format for preference fine-tuning: JSON Lines; the provenance stands beside. Pure.

One line: {"input": {"messages": […], "tools": [], "parallel_tool_calls": true},
"preferred_output": [{"role": "assistant", "content": …}], "non_preferred_output": […]}. A service
that checks the keys refuses others, so provenance.jsonl says line by line where a row comes from.
"""

from __future__ import annotations

from typing import Any

from annotation.exports import rendering
from annotation.exports.options import Options
from annotation.exports.rows import FIRST, PairRow
from annotation.exports.selection import Verdict

ROLES = ("system", "developer", "user", "assistant", "tool")


def record(row: PairRow, verdict: Verdict, options: Options) -> dict[str, Any]:
    summary = row.summary if options.persona_in_prompt else ""
    good, bad = row.first, row.second
    if verdict.verdict != FIRST:
        good, bad = bad, good
    return {
        "input": {
            "messages": rendering.conversation(row.messages, summary),
            "tools": [],
            "parallel_tool_calls": True,
        },
        "preferred_output": rendering.answer(good),
        "non_preferred_output": rendering.answer(bad),
    }


def problem(value: Any) -> str:
    """What is wrong with one decoded line, "" if nothing is: the shape as it is documented."""
    if not isinstance(value, dict):
        return "not an object"
    if set(value) != {"input", "preferred_output", "non_preferred_output"}:
        return f"keys are {', '.join(sorted(value))}"
    asked = value["input"]
    if not isinstance(asked, dict) or set(asked) - {"messages", "tools", "parallel_tool_calls"}:
        return "input has other keys than messages, tools and parallel_tool_calls"
    found = _messages(asked.get("messages"), "input.messages")
    if found:
        return found
    if asked["messages"][-1]["role"] not in ("user", "tool"):
        return "input.messages does not end with the user's turn"
    for name in ("preferred_output", "non_preferred_output"):
        found = _messages(value[name], name)
        if found:
            return found
        if not any(turn["role"] == "assistant" for turn in value[name]):
            return f"{name} has no turn of the assistant"
        if any(turn["role"] not in ("assistant", "tool") for turn in value[name]):
            return f"{name} has a turn of somebody else"
    return ""


def _messages(value: Any, name: str) -> str:
    if not isinstance(value, list) or not value:
        return f"{name} is not a list of turns"
    for turn in value:
        if not isinstance(turn, dict) or turn.get("role") not in ROLES:
            return f"{name} has a turn without a known role"
        if not isinstance(turn.get("content"), str) or not turn["content"]:
            return f"{name} has a turn without text"
    return ""
