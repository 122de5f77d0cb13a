"""Rounds of differential fuzzing until the time is up or two ways disagree.

Every round has a seed of its own, printed when the two disagree, so that `--seed N --rounds 1` repeats it. The input
is then also written to the folder given by --keep.
"""

import argparse
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Protocol


class Subject(Protocol):
    """A module that is fuzzed."""

    __doc__: str | None

    def make_input(self, chance: random.Random) -> bytes: ...

    def compare(self, data: bytes, chance: random.Random) -> None:
        """Raises where two ways disagree."""


def run(subject: Subject, seconds: float, seed: int, rounds: int | None, keep: Path | None) -> int:
    started = time.monotonic()
    done = 0
    while time.monotonic() - started < seconds and done != rounds:
        chance = random.Random(seed + done)
        data = subject.make_input(chance)
        try:
            subject.compare(data, chance)
        except Exception:
            traceback.print_exc()
            print(f"seed {seed + done} disagrees on {data[:10_000]!r}", file=sys.stderr)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{seed + done}.ndjson").write_bytes(data)
            return 1
        done += 1
    print(f"{done} rounds from seed {seed} on agree")
    return 0


def main(subject: Subject) -> int:
    """The command line of a subject."""
    parser = argparse.ArgumentParser(
        description=f"{subject.__doc__}\n{__doc__}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    return run(subject, options.seconds, options.seed, options.rounds, options.keep)
