"""The long run: ``python -m tests.model --seconds 600 --seed 1``. Random histories until time is up."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.model.histories import SCENARIOS, at_random


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", choices=SCENARIOS, action="append")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds
    histories: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    seed = arguments.seed
    while time.monotonic() < until:
        for name in arguments.scenario or SCENARIOS:
            history = at_random(SCENARIOS[name], seed)
            histories[name] += 1
            faults.update(fault.partition(":")[0] for fault in history.faults.values())
            if history.violation:
                print(f"seed {seed}: {history.describe()}")
                return 1
        seed += 1
    print(f"{histories.total()} histories, 0 violations: {dict(histories)}")
    print(f"faults and changes of actor: {dict(sorted(faults.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
