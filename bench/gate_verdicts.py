"""How often a gate is wrong: verdicts over planted models, and the false-pass rate of equal ones.

    python -m bench.gate_verdicts [--times 1000]

Exit code 1 where equal models pass more often than in 5 % of the gates, over the whole decision
(upper bound of a Clopper–Pearson interval at 95 %).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import numpy as np
from scipy.stats import binomtest

from training.gating.decision import decide
from training.gating.planted import planted
from training.gating.rules import Rules

LIMIT = 0.05
MODELS: dict[str, dict[str, float]] = {
    "equal": {},
    "better": {"personalization": 0.1},
    "much better": {"personalization": 0.25},
    "worse": {"quality": -0.1},
    "flattering": {"quality": -0.15, "personalization": 0.2},
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=1000)
    times = parser.parse_args(arguments).times
    rng, rules, wrong = np.random.default_rng(11), Rules(resamples=1000), False
    print("prompts  model        pass  fail  no difference  ms a decision")
    for prompts in (30, 100, 300):
        for name, shifts in MODELS.items():
            n = times if name == "equal" else times // 10
            began = time.perf_counter()
            found = Counter(
                decide(planted(rng, prompts, shifts=shifts), rules).verdict for _ in range(n)
            )
            ms = 1000 * (time.perf_counter() - began) / n
            share = {v: found[v] / n for v in ("pass", "fail", "no_difference")}
            print(
                f"{prompts:7}  {name:11}  {share['pass']:4.0%}  {share['fail']:4.0%}  "
                f"{share['no_difference']:13.0%}  {ms:13.0f}"
            )
            if name == "equal":
                limit = binomtest(found["pass"], n).proportion_ci(0.95).high
                print(f"         equal models passed: {found['pass']} of {n}, at most {limit:.1%}")
                wrong = wrong or bool(limit > LIMIT)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
