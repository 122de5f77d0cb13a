"""A short set of histories, and proof that the checker sees what it is there to see."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import router.ownership.own
import router.sweep.objects
import router.sweep.uploads
import transform.finalize
from lake.ledger import State
from lake.ledger.arrivals import Arrivals, _attributes, arrival_key
from lake.ledger.manifests import Manifests
from tests.chaos import runtime_patches
from tests.chaos.fault_space import combinations
from tests.chaos.history import run_history
from tests.chaos.processes import Clients, clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.cloud import LocalCloud

SHORT_SET = range(0, len(combinations()), 29)
"""Every 29th fault of the list."""


@pytest.fixture(scope="module")
def shared(cloud: LocalCloud) -> Iterator[Clients]:
    os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "chaos")
    with runtime_patches.installed():
        yield clients()


def test_every_line_is_published_once_whatever_happens(shared: Clients) -> None:
    fired = 0
    for seed in SHORT_SET:
        report = run_history(shared, seed)
        assert not report.violations, f"SEED={seed}: {report.violations}\n" + "\n".join(report.log)
        fired += len(report.fired)
    assert fired >= len(SHORT_SET)


def test_the_same_seed_gives_the_same_history(shared: Clients) -> None:
    seed = combinations().index(("commit", "before", "stall"))
    first, second = run_history(shared, seed), run_history(shared, seed)
    assert first.fired == second.fired
    assert len(first.log) == len(second.log)


def seeds_of(point: str) -> list[int]:
    """Histories that strike this point, and reach it."""
    return [seed for seed, (name, _, _) in enumerate(combinations()) if name == point]


def violations(shared: Clients, seeds: list[int]) -> list[str]:
    """Of the first history that has any."""
    for seed in seeds:
        report = run_history(shared, seed)
        if report.violations:
            return list(report.violations)
    return []


def test_an_arrival_that_is_put_without_a_condition_is_seen(shared: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(self: Arrivals, row: Any) -> Any:
        self._table.put(arrival_key(row.file.bucket, row.file.key, row.file.version), _attributes(row), [])
        return row

    monkeypatch.setattr(Arrivals, "put", put)
    assert violations(shared, seeds_of("pointer"))


def test_an_owner_that_is_given_up_without_a_fence_is_seen(shared: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    def abandon(self: Manifests, manifest: str, _now: object) -> Any:
        row = self.get(manifest)
        known = self._table.get(arrival_key("", "", ""))
        assert known is None
        return row or replace(_abandoned(), id=manifest)

    def _abandoned() -> Any:
        from lake.ledger.manifest_row import row_of

        return row_of({"id": "", "state": State.ABANDONED})

    monkeypatch.setattr(Manifests, "abandon", abandon)
    monkeypatch.setattr(router.ownership.own, "OWNER_GRACE", router.ownership.own.OWNER_GRACE * 0)
    asleep = combinations().index(("enqueue", "before", "stall"))
    assert violations(shared, [asleep + number * len(combinations()) for number in range(40)])


def test_a_supersede_that_leaves_its_sources_is_seen(shared: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    def supersede(self: Manifests, _sources: object, successors: Any, _reason: str, _now: object) -> bool:
        return all(self.enqueue(manifest) == State.QUEUED for manifest in successors)

    monkeypatch.setattr(Manifests, "supersede", supersede)
    assert violations(shared, seeds_of("supersede"))


def test_a_sweep_that_forgets_which_generation_is_published_is_seen(
    shared: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router.sweep.objects, "may_delete", lambda row, generation, *_: row.state == State.DONE)
    assert violations(shared, seeds_of("finish"))


def test_a_roll_forward_that_completes_nothing_is_seen(shared: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.publish.complete_all", lambda *_: None)
    assert violations(shared, seeds_of("commit"))


def test_uploads_that_nobody_cleans_up_are_seen(shared: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router.sweep.uploads, "may_abort", lambda *_: False)
    monkeypatch.setattr(transform.finalize, "abort_strays", lambda *_: None)
    assert violations(shared, seeds_of("upload part"))
