"""Rounds of differential fuzzing: two implementations get the same random input and must give the same result.

Each round draws the seed of the next one, so two runs with neighboring seeds have no round in common.
"""

import os
import random
import time
from types import ModuleType


def run(target: ModuleType, seed: int, rounds: int) -> None:
    """Compare for a number of rounds; for ``FUZZ_SECONDS`` from ``FUZZ_SEED`` instead, if the environment has them.

    ``target``: a module with ``make_input``, and ``compare``, which raises an error if the results differ.
    """
    seconds, started = float(os.environ.get("FUZZ_SECONDS", "0")), time.monotonic()
    seed = int(os.environ.get("FUZZ_SEED", seed))
    while time.monotonic() - started < seconds or (rounds > 0 and not seconds):
        rng = random.Random(seed)
        data = target.make_input(rng)
        try:
            target.compare(data, rng)
        except Exception as error:
            raise AssertionError(f"the results differ, again with FUZZ_SEED={seed}, for {data[:10_000]!r}") from error
        rounds, seed = rounds - 1, rng.getrandbits(63)
