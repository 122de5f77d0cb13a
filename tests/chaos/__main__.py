"""``python -m tests.chaos``: histories with faults, the injected faults by point, and the number of violations."""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from local.cloud import LocalCloud
from local.limits import Limits
from tests.chaos.glue_history import HISTORIES, run_glue_history
from tests.chaos.history import Report, connect_to, play
from tests.chaos.world import clients

WORKERS = 2
HISTORIES_PER_PROGRESS_LINE = 100


def main(argv: list[str]) -> int:
    """Play the histories; return 1 if a promise was broken, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first history; it grows by 1 per history")
    parser.add_argument("--glue", type=int, default=0, help="number of histories with real Glue runs; -1: all")
    parser.add_argument("--first", type=int, default=0, help="number of the first history with real Glue runs")
    parser.add_argument("--log", action="store_true", help="print what happened in each history")
    options = parser.parse_args(argv)
    end = HISTORIES if options.glue < 0 else min(options.first + options.glue, HISTORIES)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, LocalCloud.start(Path(folder)) as cloud:
        cloud.limit(Limits(index_lag_seconds=0))
        connect_to(cloud.environment)
        bad = _histories(options.histories, options.seed, cloud.environment, log=options.log)
        shared = clients()
        runs = (run_glue_history(cloud, shared, number, options.seed) for number in range(options.first, end))
        replay = f"python -m tests.chaos --histories 0 --glue 1 --seed {options.seed} --first {{}} --log"
        bad += _show("histories with real Spark processes", runs, replay, log=options.log, per_line=1)
    print(f"{bad} violations")
    return min(bad, 1)


def _histories(count: int, seed: int, environment: Mapping[str, str], *, log: bool) -> int:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context, initializer=partial(connect_to, dict(environment))) as pool:
        reports = pool.map(play, range(seed, seed + count))
        per_line = HISTORIES_PER_PROGRESS_LINE
        return _show("histories in one process", reports, "make chaos SEED={}", log=log, per_line=per_line)


def _show(kind: str, reports: Iterable[Report], replay: str, *, log: bool, per_line: int) -> int:
    """Print progress, violations with their replay command, and the faults by point; return the number of bad ones."""
    fired: defaultdict[str, Counter[str]] = defaultdict(Counter)
    bad, number, started = 0, 0, time.monotonic()
    inputs = unpublished = 0
    for number, report in enumerate(reports, start=1):
        for fault in report.fired:
            fired[f"{fault.when} {fault.point}"][fault.action] += 1
        inputs, unpublished = inputs + report.inputs, unpublished + report.unpublished
        if report.violations:
            bad += 1
            print(f"VIOLATION, replay with: {replay.format(report.seed)}")
            print("".join(f"  {text}\n" for text in report.violations))
        if log or report.violations:
            print("".join(f"    {line}\n" for line in report.log))
        if number % per_line == 0:
            seconds = time.monotonic() - started
            faults = sum(counts.total() for counts in fired.values())
            print(f"{number} {kind}, {faults} faults, {seconds:.0f} s, {bad} violations", flush=True)
    for point, counts in sorted(fired.items()):
        print(f"{point:26} {', '.join(f'{times} {action}' for action, times in sorted(counts.items()))}")
    if inputs:
        print(f"{unpublished} of {inputs} inputs were in FAILED manifests until these were reprocessed")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
