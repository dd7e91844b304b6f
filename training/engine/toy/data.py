"""Snapshots of the toy world for each stage. The parts share no action–object pair (V11)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from training.engine.snapshots import Row, write_rows
from training.engine.toy import world
from training.engine.toy.world import Ask


@dataclass(frozen=True)
class Sizes:
    instructions: int = 2000
    quality: int = 2400
    personalization: int = 800
    noise: float = 0.05  # wrong labels
    bad: float = 0.2  # broken answers among the instructions
    ties: float = 0.1  # pairs of two good answers, decided by chance: style is not quality


SMALL = Sizes(instructions=1200, quality=1200, personalization=400)
PARTS = {"train": 32, "heldout": 4, "gate": 4, "policy": 8}
OFTEN = 3  # pairs of every action and every object that training holds at least


def split(rng: random.Random) -> dict[str, list[Ask]]:
    """Questions by part; what training shows too rarely cannot be known elsewhere."""
    while True:
        pairs = world.combinations(rng)
        parts, start = {}, 0
        for name, n in PARTS.items():
            parts[name] = pairs[start : start + n]
            start += n
        seen = Counter(word for pair in parts["train"] for word in pair)
        if all(seen[word] >= OFTEN for word in (*world.TOOLS, *world.OBJECTS)):
            return {name: world.asks(part) for name, part in parts.items()}


def persona(style: str, rng: random.Random) -> str:
    return rng.choice(world.PERSONAS[style])


def styles(rng: random.Random) -> str:
    return rng.choice(list(world.PERSONAS))


def instructions(asks: list[Ask], n: int, bad: float, rng: random.Random) -> list[Row]:
    """Answers whose style has nothing to do with the persona."""
    rows = []
    for _ in range(n):
        ask, style = rng.choice(asks), styles(rng)
        make = world.broken if rng.random() < bad else world.good
        rows.append(
            {
                "persona": persona(styles(rng), rng),
                "prompt": ask.text,
                "answer": make(ask, style, rng),
            }
        )
    return rows


def quality_pairs(asks: list[Ask], n: int, sizes: Sizes, rng: random.Random) -> list[Row]:
    rows = []
    for _ in range(n):
        ask, style = rng.choice(asks), styles(rng)
        if rng.random() < sizes.ties:
            rows.append(_pair("", ask, *rng.sample([style, world.OTHER[style]], 2), rng=rng))
            continue
        form = rng.randrange(2)  # mostly the same form twice: only the defect differs
        better = world.good(ask, style, rng, form)
        worse = world.broken(ask, style, rng, form if rng.random() < 0.7 else None)
        if rng.random() < sizes.noise:
            better, worse = worse, better
        rows.append({"persona": "", "prompt": ask.text, "chosen": better, "rejected": worse})
    return rows


def personal_pairs(asks: list[Ask], n: int, noise: float, rng: random.Random) -> list[Row]:
    """Both directions of every pair of styles; sometimes both answers are broken alike."""
    rows = []
    for _ in range(n // 2):
        ask = rng.choice(asks)
        make = world.good if rng.random() < 0.75 else rng.choice(list(world.DEFECTS.values()))
        texts = {style: make(ask, style, rng, None) for style in world.PERSONAS}
        for style in world.PERSONAS:
            better, worse = texts[style], texts[world.OTHER[style]]
            if rng.random() < noise:
                better, worse = worse, better
            row = {"persona": persona(style, rng), "prompt": ask.text}
            rows.append({**row, "chosen": better, "rejected": worse})
    return rows


def _pair(who: str, ask: Ask, chosen: str, rejected: str, *, rng: random.Random) -> Row:
    texts = {"chosen": world.good(ask, chosen, rng), "rejected": world.good(ask, rejected, rng)}
    return {"persona": who, "prompt": ask.text, **texts}


def probes(asks: list[Ask], each: int, rng: random.Random) -> list[Row]:
    rows = []
    for defect, breaks in world.DEFECTS.items():
        for _ in range(each):
            ask, style = rng.choice(asks), styles(rng)
            texts = {"good": world.good(ask, style, rng), "bad": breaks(ask, style, rng, None)}
            rows.append({"persona": "", "prompt": ask.text, "defect": defect, **texts})
    return rows


def swaps(asks: list[Ask], n: int, rng: random.Random) -> list[Row]:
    rows = []
    for _ in range(n):
        ask = rng.choice(asks)
        row: Row = {"prompt": ask.text}
        for name, style in (("first", "brief"), ("second", "steps")):
            row[name] = world.good(ask, style, rng)
            row[f"persona_{name}"] = persona(style, rng)
        rows.append(row)
    return rows


def prompts(asks: list[Ask], rng: random.Random, n: int = 0) -> list[Row]:
    """The same question under both personas, one after the other."""
    chosen = asks[:]
    rng.shuffle(chosen)
    rows: list[Row] = []
    while not rows or len(rows) < n:
        for ask in chosen:
            for style in world.PERSONAS:
                task = {"entities": [world.TOOLS[ask.verb]]}
                who = persona(style, rng)
                row = {"id": f"{len(rows):05d}", "persona": who, "prompt": ask.text, "task": task}
                rows.append(row)
    return rows


def write(folder: Path, seed: int, sizes: Sizes) -> dict[str, Path]:
    """All snapshots under one folder; returns their paths by name."""
    rng = random.Random(seed)
    parts = split(rng)
    clean = Sizes(noise=0.0, ties=0.0)
    tables = {
        "instructions": instructions(parts["train"], sizes.instructions, sizes.bad, rng),
        "instructions-heldout": instructions(parts["heldout"], 100, 0.0, rng),
        "quality": quality_pairs(parts["train"], sizes.quality, sizes, rng),
        "quality-heldout": quality_pairs(parts["heldout"], 200, clean, rng),
        "quality-gate": quality_pairs(parts["gate"], 300, clean, rng),
        "probes": probes(parts["gate"], 40, rng),
        "personalization": personal_pairs(parts["train"], sizes.personalization, sizes.noise, rng),
        "personalization-heldout": personal_pairs(parts["heldout"], 200, 0.0, rng),
        "personalization-gate": personal_pairs(parts["gate"], 300, 0.0, rng),
        "swaps": swaps(parts["gate"], 100, rng),
        "prompts": prompts(parts["train"], rng),
        "prompts-heldout": prompts(parts["policy"], rng),
        "policy-probes": probes(parts["policy"], 40, rng),
        "policy-swaps": swaps(parts["policy"], 100, rng),
    }
    paths = {}
    for name, rows in tables.items():
        paths[name] = folder / f"{name}.jsonl"
        write_rows(paths[name], rows)
    return paths
