"""``python -m tests.mutants``: mutants of the protocol, how they are noticed, and those that survive."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.mutants.operators import Mutant, mutants
from tests.mutants.runs import Judged, judge_all, judge_unchanged

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs/mutants.md"
MODULES = (
    "lake/ledger/arrivals.py",
    "lake/ledger/column_room.py",
    "lake/ledger/conflicts.py",
    "lake/ledger/fence.py",
    "lake/ledger/force.py",
    "lake/ledger/manifest_row.py",
    "lake/ledger/manifests.py",
    "lake/ledger/reasons.py",
    "lake/ledger/relinquish.py",
    "lake/ledger/supersede.py",
    "lake/ledger/table.py",
    "lake/publish.py",
    "router/ownership/draft.py",
    "router/ownership/enqueue.py",
    "router/ownership/intent.py",
    "router/ownership/known.py",
    "router/ownership/outcome.py",
    "router/ownership/pointer.py",
    "router/ownership/record.py",
    "router/ownership/resolve.py",
    "router/ownership/returned.py",
    "router/ownership/take.py",
    "router/reprocess/next_step.py",
    "transform/audit.py",
    "transform/claim_manifest.py",
    "transform/finalize.py",
    "transform/give_up.py",
    "transform/poison_manifest.py",
)
"""Ownership, the ledger, publishing, claims and the end of an attempt: the protocol."""
WORKERS = 2


def main(argv: Sequence[str]) -> int:
    """Judge a sample, or all; 1 if a mutant survives that docs/mutants.md does not explain, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="no mutant is started after it")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--all", action="store_true", help="every mutant, however long it takes")
    parser.add_argument("--only", default="", help="only mutants whose name contains this text")
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args(argv)
    os.chdir(CHECKOUT)
    found = [mutant for path in MODULES for mutant in mutants(path, (CHECKOUT / path).read_text())]
    chosen = [mutant for mutant in found if options.only in mutant.name]
    Random(options.seed).shuffle(chosen)
    noticed = judge_unchanged({mutant.path for mutant in chosen})
    if noticed:
        print(f"the product without a mutation is noticed by {noticed}: mend it or the test first")
        return 1
    until = time.monotonic() + options.seconds
    judged = []
    for item in judge_all(chosen, options.workers, lambda: options.all or time.monotonic() < until):
        judged.append(item)
        print(f"{len(judged):4d} of {len(chosen)} {item.noticed_by or 'SURVIVES':30} {item.mutant.name}", flush=True)
    return _report(judged, len(found), options.seed)


def _report(judged: Sequence[Judged], number: int, seed: int) -> int:
    print(f"\nseed {seed}: {len(judged)} of {number} mutants\n")
    print(table(judged))
    explained = PAGE.read_text() if PAGE.exists() else ""
    unexplained = [item for item in judged if not item.noticed_by and f"`{item.mutant.name}`" not in explained]
    for item in unexplained:
        print(f"\nsurvives, and {PAGE.name} does not explain it: {item.mutant.name}")
    return min(len(unexplained), 1)


def table(judged: Sequence[Judged]) -> str:
    """Markdown: for each module its mutants, those that each judge was the first to notice, and the survivors."""
    by_module: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in judged:
        by_module[item.mutant.path][item.noticed_by or "survive"] += 1
    columns = [*sorted({name for counts in by_module.values() for name in counts} - {"survive"}), "survive"]
    lines = [f"| module | mutants | {' | '.join(columns)} |", f"|---|---:|{'---:|' * len(columns)}"]
    for path, counts in sorted(by_module.items()):
        lines.append(f"| `{path}` | {counts.total()} | {' | '.join(str(counts[name]) for name in columns)} |")
    return "\n".join(lines)


def names_of(modules: Sequence[str] = MODULES) -> set[str]:
    """The names of all mutants of the modules as they are now."""
    listed: list[Mutant] = [mutant for path in modules for mutant in mutants(path, (CHECKOUT / path).read_text())]
    return {mutant.name for mutant in listed}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
