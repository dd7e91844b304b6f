"""The engine by hand: `python -m training.engine presets | check DIR | run DIR | tiny DIR`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from training.engine.config.load import Refused, load, preset_names, read_preset
from training.engine.config.preflight import check, this_machine
from training.engine.rundir import RunDir, read_json
from training.engine.start import execute


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
    options = parser.parse_args(arguments)
    if options.command == "presets":
        return show_presets()
    if options.command == "check":
        return check_run(options.dir)
    if options.command == "run":
        return execute(options.dir)
    return run_tiny(options.dir, options.seed, short=options.short)


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
