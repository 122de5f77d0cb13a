"""``make hostile``: converts every hostile file at full size and prints what each cost.

The exit code is 1 if one costs too much.
"""

import argparse
import sys

from tests.hostile.conversion import cost_of, problems_of_verify
from tests.hostile.corpus import CORPUS

SIZES = ("stored", "inflated", "peak memory", "Parquet", "quarantine")
COLUMNS = ("file", *SIZES, "fetched / stored", "processor seconds", "outcome")


def main() -> int:
    """Print the table of all files as Markdown, sizes in MB, or of those whose name contains ``--only``."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--only", default="", help="files whose name contains this text")
    parser.add_argument("--small", action="store_true", help="small files, as in the tests")
    arguments = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|---|{'---:|' * (len(COLUMNS) - 2)}---|")
    problems = []
    for file in (item for item in CORPUS if arguments.only in item.name):
        count = file.small if arguments.small else file.full
        cost = cost_of(file, count)
        sizes = [cost.stored, cost.inflated, cost.peak, cost.parquet, cost.quarantine]
        cells = [f"{size / 1e6:,.1f}" for size in sizes] + [f"{cost.fetched / cost.stored:.1f}", f"{cost.seconds:,.1f}"]
        print(f"| {file.name} | {' | '.join(cells)} | {'refused' if cost.refused else 'converted'} |", flush=True)
        found = [*cost.problems(file), *(problems_of_verify(file, count, cost) if file.verified else ())]
        problems += [f"{file.name}: {problem}" for problem in found]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
