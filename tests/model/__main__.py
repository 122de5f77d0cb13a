"""The long run: ``python -m tests.model --seconds 600 --seed 1``. Random histories until the time is over."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.model.random_histories import explore
from tests.model.scenarios import SCENARIOS

HISTORIES_PER_SEED = 50


def main() -> int:
    """Print the number of histories and faults; 1 when a promise was broken, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1, help="first seed; it grows by 1 after each round of scenarios")
    parser.add_argument("--scenario", choices=SCENARIOS, action="append")
    arguments = parser.parse_args()
    names = arguments.scenario or list(SCENARIOS)
    until = time.monotonic() + arguments.seconds
    histories: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    seed = arguments.seed
    while time.monotonic() < until:
        for name in names:
            explored = explore(SCENARIOS[name], seed, HISTORIES_PER_SEED)
            histories[name] += explored.histories
            faults.update(explored.faults)
            if explored.violation:
                print(explored.violation.describe())
                print(f"replay with: python -m tests.model --seconds 0.1 --scenario {name} --seed {seed}")
                return 1
        seed += 1
    print(f"{histories.total()} histories, 0 violations: {dict(histories)}")
    print(f"faults, events and switches: {dict(sorted(faults.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
