"""Leases are renewed while the work goes on; losing all of them stops it, losing one of several does not."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lake.errors import LeaseLostError
from lake.ledger import Claim, ManifestRow, State
from lake.manifest import Lane, Partition
from transform.claim_manifest import LeaseKeeper
from transform.task_model import ConversionContext

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
LEASE = timedelta(seconds=0.04)


def claim(manifest: str) -> Claim:
    row = ManifestRow(manifest, State.RUNNING, Lane.BATCH, Partition("d", "2026-03-04", 12), "2026", 1, 1)
    return Claim(row, "run-1")


@dataclass
class FakeManifests:
    lost: set[str] = field(default_factory=set)
    broken: bool = False
    renewed: list[str] = field(default_factory=list)
    tried: threading.Event = field(default_factory=threading.Event)

    def renew(self, claim: Claim, now: datetime, lease: timedelta) -> None:
        assert (now, lease) == (NOON, LEASE)
        self.renewed.append(claim.row.id)
        self.tried.set()
        if self.broken:
            raise ConnectionError("no route")
        if claim.row.id in self.lost:
            raise LeaseLostError("lost")


def keeper(
    manifests: FakeManifests, ids: str, all_lost: threading.Event, log: Callable[[str], None] = print
) -> LeaseKeeper:
    settings = SimpleNamespace(batch=SimpleNamespace(lease_seconds=LEASE.total_seconds()))
    services: Any = SimpleNamespace(ledger=SimpleNamespace(manifests=manifests), settings=settings)
    spark: Any = None
    context = ConversionContext(spark, services, "run-1", lambda: NOON, lambda _: False, log)
    return LeaseKeeper(context, [claim(name) for name in ids], all_lost.set)


def test_renewals_go_on_in_the_background_and_end_with_the_work() -> None:
    manifests, stopped = FakeManifests(), threading.Event()
    with keeper(manifests, "a", stopped):
        for _ in range(3):
            assert manifests.tried.wait(10)
            manifests.tried.clear()
    count = len(manifests.renewed)
    assert not manifests.tried.wait(LEASE.total_seconds() * 2)
    assert len(manifests.renewed) == count
    assert not stopped.is_set()


def test_losing_one_of_two_leases_does_not_stop_the_other() -> None:
    manifests, stopped = FakeManifests(lost={"a"}), threading.Event()
    subject = keeper(manifests, "ab", stopped)
    subject.renew_all()
    subject.renew_all()
    assert (subject.lost("a"), subject.lost("b"), stopped.is_set()) == (True, False, False)
    assert manifests.renewed == ["a", "b", "b"]


def test_losing_all_leases_stops_the_work() -> None:
    manifests, stopped = FakeManifests(lost={"a", "b"}), threading.Event()
    keeper(manifests, "ab", stopped).renew_all()
    assert stopped.is_set()


def test_a_ledger_that_does_not_answer_does_not_lose_a_lease() -> None:
    manifests, stopped = FakeManifests(broken=True), threading.Event()
    subject = keeper(manifests, "a", stopped)
    subject.renew_all()
    assert not subject.lost("a")
    assert not stopped.is_set()


def test_a_round_without_answers_is_one_line_of_the_log_and_says_what_happens_next() -> None:
    # Given a ledger that answers no renewal
    manifests, stopped, lines = FakeManifests(broken=True), threading.Event(), list[str]()
    # When
    keeper(manifests, "ab", stopped, lines.append).renew_all()
    # Then both were tried
    assert manifests.renewed == ["a", "b"]
    assert lines == [
        "2 of 2 leases were not renewed (first: a: ConnectionError: no route); "
        "the next try is in 0.01 s, each lease ends 0.04 s after its last renewal"
    ]


def test_a_committed_manifest_is_no_longer_renewed() -> None:
    manifests, stopped = FakeManifests(lost={"a"}), threading.Event()
    subject = keeper(manifests, "a", stopped)
    subject.stop_renewing("a")
    subject.renew_all()
    assert (manifests.renewed, stopped.is_set()) == ([], False)
