"""The batch lane's small manifests of an hour become large ones when the hour is over.

A plan has time for about 50,000 of them, and an invocation of ``route`` makes one of what a few seconds bring.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from lake.counted import format_count
from lake.ledger import State
from lake.manifest import Lane
from router.merge.merge import PARALLEL_GROUPS, Supersede, is_mergeable, is_small, mergeable_groups
from router.merge.write_pace import MAX_INDEX_WRITES_PER_SECOND, WritePace
from router.requests.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lake.ledger import ManifestRow
    from router.sweep.repair import Repair

SMALL_SHARE = 4
"""A manifest of at most this part of a manifest's limits is merged, 16 GiB by default, so at least four become one.

Each source costs three write units, a successor five; the conversion of a manifest takes nine and about 15 requests.
"""
HOUR_ENDS_AFTER = timedelta(minutes=5)
"""Events of an hour that come later have manifests of their own, which a later sweep merges."""
MAX_CANDIDATES = 50_000
"""Rows that are held at the same time, about 60 MB; twice of what the pace allows in the time of a repair."""
WRITES_PER_SECOND = MAX_INDEX_WRITES_PER_SECOND // 2
"""A plan may merge at the same time."""


def _is_planned(row: ManifestRow, plan: Mapping[str, Any] | None) -> bool:
    return (
        plan is not None
        and row.created_at <= plan["planned_at"]
        and Selection(plan["dataset"], plan["first"], plan["last"]).selects(row.partition)
    )


def merge_small(repair: Repair) -> None:
    """Merge small manifests hour by hour; counts those that took the place of others as ``merged``.

    What the newest plan has given to its runs stays as it is: merged across runs, it would be converted by one of them,
    and the others would begin for nothing. The next plan merges what is left of it.
    """
    services = repair.services
    planned = services.ledger.executions.newest_plan()
    limits, over = services.settings.batch, (services.clock() - HOUR_ENDS_AFTER).strftime("%Y-%m-%dT%H")
    candidates = (
        row
        for row in services.ledger.manifests.open(Lane.BATCH, State.QUEUED)
        if row.partition.stamp < over
        and is_mergeable(row)
        and is_small(row, limits, SMALL_SHARE)
        and not _is_planned(row, planned)
    )
    groups = mergeable_groups(islice(candidates, MAX_CANDIDATES), limits, SMALL_SHARE)
    if repair.dry_run:
        for group in groups:
            repair.only_counts("merged", f"{format_count(len(group), 'manifest')} of {group[0].partition}")
        return
    supersede = Supersede(services, WritePace(WRITES_PER_SECOND), repair.stop_at)

    def attempt(group: Sequence[ManifestRow]) -> None:
        with repair.isolated("merge", partition=str(group[0].partition)):
            supersede(group)

    with ThreadPoolExecutor(PARALLEL_GROUPS) as pool:
        list(pool.map(attempt, groups))
    repair.counts["merged"] += len(supersede.merged)
