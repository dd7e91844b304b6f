"""The engine by hand: `python -m training.engine COMMAND`; --help lists the commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from training.engine.answer import run as run_answers
from training.engine.config.load import Refused, load, preset_names, read_preset
from training.engine.config.preflight import check, this_machine
from training.engine.rundir import RunDir, read_json
from training.engine.start import QUIET, execute


def show_presets() -> int:
    for name in preset_names():
        print(f"{name}\n    {read_preset(name)['about'].strip()}")
    return 0


def check_run(folder: Path) -> int:
    """Say everything that would keep this run from starting."""
    run = RunDir(folder)
    try:
        problems = check(load(read_json(run.config)), this_machine(folder), run)
    except Refused as refused:
        problems = refused.problems
    for problem in problems:
        print(problem)
    return 2 if problems else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="training.engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("presets", help="what there is to start from")
    commands.add_parser("check", help="why a run would not start").add_argument("dir", type=Path)
    commands.add_parser("run", help="execute or resume a run").add_argument("dir", type=Path)
    tiny = commands.add_parser("tiny", help="the whole loop on a toy world, in minutes")
    tiny.add_argument("dir", type=Path)
    tiny.add_argument("--seed", type=int, default=1)
    tiny.add_argument("--short", action="store_true", help="a few steps of each stage")
    smol = commands.add_parser("smol", help="a real small model on the CPU, by rules alone")
    smol.add_argument("dir", type=Path)
    smol.add_argument("--seed", type=int, default=1)
    smol.add_argument("--steps", type=int, default=20)
    node = commands.add_parser("node", help="whether this machine can train, with a short run")
    node.add_argument("--seconds", type=float, default=60, help="how long the run may take")
    node.add_argument("--model", type=Path, help="a model on disk whose speed is measured")
    node.add_argument("--json", action="store_true")
    answer = commands.add_parser("answer", help="answer questions from standard input")
    answer.add_argument("place", help="the folder of a model or run, or package:NAME")
    answer.add_argument("--batch", type=int, default=8)
    answer.add_argument("--weights", default="", help="the digest that the weights must have")
    options = parser.parse_args(arguments)
    if options.command == "presets":
        return show_presets()
    if options.command == "check":
        return check_run(options.dir)
    if options.command == "run":
        return execute(options.dir)
    if options.command == "answer":
        os.environ.update(QUIET)
        return run_answers(options.place, batch=options.batch, weights=options.weights)
    if options.command == "smol":
        return run_smol(options.dir, options.steps, options.seed)
    if options.command == "node":
        return check_node(options.seconds, options.model, as_json=options.json)
    return run_tiny(options.dir, options.seed, short=options.short)


def run_smol(folder: Path, steps: int, seed: int) -> int:
    from training.engine import smol

    code, report = smol.run_smol(folder, steps, seed)
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return code


def check_node(seconds: float, model: Path | None, *, as_json: bool) -> int:
    from training.engine import node

    code, report = node.check_node(seconds, model)
    print(json.dumps(report, indent=2, ensure_ascii=False) if as_json else node.show(report))
    return code


def run_tiny(folder: Path, seed: int, *, short: bool) -> int:
    """SFT, reward models, gate, GRPO; prints what came of it."""
    from training.engine.tiny import SHORT, SHORT_SIZES, StageFailed, run_all

    try:
        report = run_all(folder, seed, *((SHORT_SIZES, SHORT) if short else ()))
    except StageFailed as failed:
        print(failed)
        return 3
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
