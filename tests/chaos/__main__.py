"""``python -m tests.chaos``: histories with faults, a table of what was injected, and the number of violations."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from local.cloud import LocalCloud


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first history; the next ones count up")
    parser.add_argument("--log", action="store_true", help="print what happened in each history")
    options = parser.parse_args(argv)
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    os.environ["POWERTOOLS_LOG_LEVEL"] = "CRITICAL"
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, LocalCloud.start(Path(folder)) as cloud:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(cloud.environment)
        return histories(options.histories, options.seed, log=options.log)


def histories(count: int, seed: int, *, log: bool) -> int:
    from tests.chaos import patches
    from tests.chaos.history import run_history
    from tests.chaos.world import clients

    patches.install()
    shared = clients()
    fired: Counter[tuple[str, str, str]] = Counter()
    bad, started = 0, time.monotonic()
    for number in range(seed, seed + count):
        report = run_history(shared, number)
        fired.update((fault.point, fault.when, fault.action) for fault in report.fired)
        if report.violations:
            bad += 1
            print(f"VIOLATION in the history SEED={number}")
            print("".join(f"  {text}\n" for text in report.violations))
        if log or report.violations:
            print("".join(f"    {line}\n" for line in report.log))
    print(table(fired))
    seconds = time.monotonic() - started
    print(f"{count} histories, {sum(fired.values())} faults, {seconds:.0f} s: {bad} violations")
    return 1 if bad else 0


def table(fired: Counter[tuple[str, str, str]]) -> str:
    """How often each point was struck, by action."""
    actions = sorted({action for _, _, action in fired})
    lines = [f"{'point':26}" + "".join(f"{action:>13}" for action in actions)]
    for point, when in sorted({(point, when) for point, when, _ in fired}):
        numbers = "".join(f"{fired[point, when, action]:>13}" for action in actions)
        lines.append(f"{when + ' ' + point:26}{numbers}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
