"""Everyday questions for a real small model: two personas that want few words or many.

What a right answer must name is a rule, and so is how long this person wants it: no reward model is
needed to see whether a model learns to read the persona.
"""

from __future__ import annotations

from pathlib import Path

from training.engine.snapshots import Row, write_rows

PERSONAS: dict[str, tuple[int, int]] = {  # least and most words
    "Busy expert. Wants one short sentence and nothing else.": (0, 20),
    "Beginner. Wants every step explained, one after the other.": (25, 0),
}
QUESTIONS = {
    "How do I boil an egg?": "water",
    "How do I make tea?": "water",
    "How do I clean a window?": "window",
    "How do I plant a tree?": "soil",
    "How do I wash a wool sweater?": "water",
    "How do I sharpen a kitchen knife?": "knife",
    "How do I change a light bulb?": "bulb",
    "How do I paint a wall?": "paint",
}
HELD_OUT = {"How do I cook rice?": "water", "How do I polish leather shoes?": "shoes"}


def prompts(questions: dict[str, str]) -> list[Row]:
    """Each question under both personas, one after the other."""
    return [
        {"id": f"{i}-{j}", "persona": who, "prompt": text,
         "task": {"entities": [named], "words": list(words)}}
        for i, (text, named) in enumerate(questions.items())
        for j, (who, words) in enumerate(PERSONAS.items())
    ]  # fmt: skip


def labelled() -> list[Row]:
    """Right answers name what is needed; wrong ones talk."""
    rows: list[Row] = []
    for text, named in QUESTIONS.items():
        task = {"entities": [named]}
        right = f"You need the {named}; take your time with it."
        rows.append({"prompt": text, "answer": right, "right": True, "task": task})
        wrong = "What a good question, many people ask this."
        rows.append({"prompt": text, "answer": wrong, "right": False, "task": task})
    return rows


def write(folder: Path) -> dict[str, Path]:
    tables = {
        "prompts": prompts(QUESTIONS),
        "prompts-heldout": prompts(HELD_OUT),
        "labelled": labelled(),
    }
    for name, rows in tables.items():
        write_rows(folder / f"{name}.jsonl", rows)
    return {name: folder / f"{name}.jsonl" for name in tables}
