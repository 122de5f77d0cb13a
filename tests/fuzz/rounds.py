"""Rounds of differential fuzzing: two implementations get the same random input and must give the same result.

It runs until the time is over or the results differ. Each round draws the seed of the next one, so two runs with
neighboring seeds have no round in common. The seed of a round is printed when the results differ: `--seed N --rounds 1`
repeats the round. Its input is written to the folder of --keep.
"""

import argparse
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Protocol


class FuzzTarget(Protocol):
    """A module that compares two implementations."""

    __doc__: str | None

    def make_input(self, rng: random.Random) -> bytes: ...

    def compare(self, data: bytes, rng: random.Random) -> None:
        """Raises if the results differ."""


def run(target: FuzzTarget, seconds: float, seed: int, rounds: int | None, keep: Path | None) -> int:
    """The exit code: 1 if the results of a round differ. At most `rounds` rounds, None for no limit."""
    started = time.monotonic()
    done, first = 0, seed
    while time.monotonic() - started < seconds and done != rounds:
        rng = random.Random(seed)
        data = target.make_input(rng)
        try:
            target.compare(data, rng)
        except Exception:
            traceback.print_exc()
            print(f"the results differ for seed {seed}, input {data[:10_000]!r}", file=sys.stderr)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{seed}.ndjson").write_bytes(data)
            return 1
        done, seed = done + 1, rng.getrandbits(63)
    print(f"the results agree in {done} rounds from seed {first}")
    return 0


def main(target: FuzzTarget) -> int:
    """Runs the command line of a target: its exit code."""
    parser = argparse.ArgumentParser(
        description=f"{target.__doc__}\n{__doc__}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first round")
    parser.add_argument("--rounds", type=int, help="stop after this number of rounds")
    parser.add_argument("--keep", type=Path, help="the folder for an input whose results differ")
    options = parser.parse_args()
    return run(target, options.seconds, options.seed, options.rounds, options.keep)
