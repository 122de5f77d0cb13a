"""plan: packing looks at few runs for each manifest, and fills them as well as looking at all of them does."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings import parse_settings
from router.plan.pack import pack_runs
from tests.unit.lake.world import PARTITION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMITS = parse_settings({"stage": "t"}).batch
MANIFESTS = 1500


class CountedSize(int):
    """A size that counts what is done with it."""

    uses = 0

    def __radd__(self, other: int) -> int:
        CountedSize.uses += 1
        return other + int(self)

    __add__ = __radd__

    def __gt__(self, other: object) -> bool:
        CountedSize.uses += 1
        return int(self) > other  # type: ignore[operator]


def backlog(sizes: Iterator[int], files: Iterator[int]) -> list[ManifestRow]:
    return [
        ManifestRow(f"m{number:05}", State.QUEUED, Lane.BATCH, PARTITION, "", CountedSize(size), count)
        for number, size, count in zip(range(MANIFESTS), sizes, files, strict=False)
    ]


def forever(value: Callable[[], int]) -> Iterator[int]:
    while True:
        yield value()


@pytest.mark.parametrize("smallest", [0.0, 0.2, 0.51], ids=["many in a run", "some in a run", "one in a run"])
def test_the_work_for_a_manifest_does_not_grow_with_the_number_of_runs(smallest: float) -> None:
    # Given: sizes between a share of a run and a whole run
    random = Random(1)
    rows = backlog(forever(lambda: int(LIMITS.run_bytes * random.uniform(smallest, 0.9))), forever(lambda: 1))
    CountedSize.uses = 0
    # When
    pack_runs(rows, LIMITS)
    # Then: about twice the depth of the tree, where every run would be hundreds
    assert CountedSize.uses <= MANIFESTS * 30


def test_files_that_do_not_fit_where_bytes_do_cost_a_bounded_search() -> None:
    # Given: manifests that differ in the limit that they come close to
    random = Random(1)
    rows = backlog(
        forever(lambda: random.choice([0, LIMITS.run_bytes // 2 + 1])),
        forever(lambda: random.randint(1, LIMITS.run_files)),
    )
    CountedSize.uses = 0
    # When
    runs = pack_runs(rows, LIMITS)
    # Then
    assert CountedSize.uses <= MANIFESTS * 260
    assert sum(len(run.manifests) for run in runs) == MANIFESTS


def test_gaps_that_large_manifests_leave_are_filled_with_small_ones() -> None:
    # Given: as many of six tenths of a run as of four tenths
    sizes = [LIMITS.run_bytes * 6 // 10] * 700 + [LIMITS.run_bytes * 4 // 10] * 700
    # When
    runs = pack_runs(backlog(iter(sizes), forever(lambda: 1)), LIMITS)
    # Then
    assert [len(run.manifests) for run in runs] == [2] * 700
