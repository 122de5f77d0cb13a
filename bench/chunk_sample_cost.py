"""``python -m bench.chunk_sample_cost``: what a task pays for decoding a sample of its column chunks."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench.__main__ import CACHE
from bench.input_files import Recipe, prepare
from bench.product_competitor import convert_tasks, plan_tasks
from lake.settings import ConvertSettings
from transform.chunk_sample import ChunkSample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.input_files import InputFiles

FILES = 8
FILE_BYTES = 150_000_000
"""Two tasks of 600 MB: what a task of such data reads in production. Of each file at least one chunk is decoded, so the
sample would be a larger share of a smaller task."""
MAX_SHARE = 0.03
"""Of a task's time."""
METHODS = ("add", "end_row_group", "check")


@dataclass(slots=True)
class Cost:
    """Processor time of one conversion, in seconds."""

    total: float = 0.0
    """Of all threads of this process."""
    sample: float = 0.0
    """Inside the sample, which uses no other thread."""


def main() -> int:
    """Print what the sample costs for each shape; 1 if its time is above ``MAX_SHARE`` of a task's, otherwise 0."""
    parser = argparse.ArgumentParser(prog="bench.chunk_sample_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="measurements with and without the sample, in turn")
    options = parser.parse_args()
    shares = []
    for shape in ("flat", "nested"):
        files = prepare(Recipe(shape, FILES, FILE_BYTES), CACHE, 1)
        convert(files, 0, sampled=True)
        costs: dict[bool, list[Cost]] = {False: [], True: []}
        for number in range(2 * options.rounds):
            # The order changes with each round.
            sampled = number % 4 in (1, 2)
            costs[sampled].append(convert(files, number // 2, sampled=sampled))
        before, after = (statistics.median(cost.total for cost in costs[sampled]) for sampled in (False, True))
        shares.append(share_inside(costs[True]))
        sys.stdout.write(
            f"{shape}: {before:.3f} s without, {after:.3f} s with the sample "
            f"({added_share(costs[False], costs[True]):+.1%} in a round); {shares[-1]:.1%} of the time is inside it, "
            f"at most {MAX_SHARE:.0%} may be ({options.rounds} rounds, {files.bytes / 1e6:.0f} MB)\n"
        )
    return int(max(shares) > MAX_SHARE)


def share_inside(costs: Sequence[Cost]) -> float:
    """Median share of a conversion's time that is inside the sample.

    Both times are of the same conversion, so a busy machine lengthens both: it is what ``MAX_SHARE`` limits.
    """
    return statistics.median(cost.sample / cost.total for cost in costs)


def added_share(without: Sequence[Cost], sampled: Sequence[Cost]) -> float:
    """Median, over the rounds, of what the sample adds to the time of a conversion right before or after it."""
    return statistics.median(after.total / before.total - 1 for before, after in zip(without, sampled, strict=True))


def convert(files: InputFiles, seed: int, *, sampled: bool) -> Cost:
    """Run the tasks of these files in this process. Columns differ in size: each ``seed`` samples other chunks."""
    cost = Cost()
    with ExitStack() as stack:
        output = stack.enter_context(tempfile.TemporaryDirectory())
        for name in METHODS:
            stack.enter_context(patch.object(ChunkSample, name, _method(name, cost, sampled=sampled)))
        started = time.process_time()
        tasks = (replace(task, manifest=f"bench-{seed}") for task in plan_tasks(files, ConvertSettings()))
        list(convert_tasks(output, tasks))
        cost.total = time.process_time() - started
    return cost


def _method(name: str, cost: Cost, *, sampled: bool) -> Any:  # noqa: ANN401
    """The method with its time added to ``cost``, or one that does nothing."""
    method = getattr(ChunkSample, name)

    def timed(*arguments: object) -> None:
        started = time.thread_time()
        method(*arguments)
        cost.sample += time.thread_time() - started

    return timed if sampled else lambda *_: None


if __name__ == "__main__":
    sys.exit(main())
