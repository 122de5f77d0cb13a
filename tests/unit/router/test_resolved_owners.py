"""What becomes of an arrival whose row exists: a duplicate, one to adopt, or one whose owner may still be alive."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lake.errors import TransientError
from lake.ledger import ArrivalRow, ManifestRow, State
from lake.manifest import Identity, Lane, Partition
from lake.shards import Shards
from lake.time import iso_utc
from router.ownership.outcome import ArrivalOutcome, Ownership
from router.ownership.owner import RoutedArrival
from router.ownership.resolve import OWNER_GRACE, resolve_owners
from tests.unit.lake.world import file_of

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 11, 20, 11, 30, tzinfo=UTC)
FILE, OTHER_FILE, UNVERSIONED = file_of("orders/a"), file_of("orders/b"), file_of("orders/c", version=None)
ROW = ArrivalRow(
    FILE, "m", Partition("orders", "2026-11-20", 3), Lane.BATCH, "for the night", iso_utc(NOW - OWNER_GRACE)
)
IGNORED = ArrivalRow(FILE, None, None, None, "no rule", iso_utc(NOW))
OWNER = ManifestRow("m", State.RUNNING, Lane.BATCH, Partition("orders", "2026-11-20", 3), "", 1, 1)
OFFERED = RoutedArrival(FILE, Partition("sales", "2026-11-20", 11), Lane.STREAM, "by a rule")
DUPLICATE = ArrivalOutcome.DUPLICATE
SHARDS = Shards(3)


@dataclass
class FakeManifests:
    """Manifest rows by id; an error is raised."""

    rows: dict[str, ManifestRow | Exception | None]
    reads: list[str] = field(default_factory=list)
    abandoned: list[tuple[str, datetime]] = field(default_factory=list)

    def get(self, manifest: str) -> ManifestRow | None:
        self.reads.append(manifest)
        row = self.rows[manifest]
        if isinstance(row, Exception):
            raise row
        return row

    def abandon(self, manifest: str, now: datetime) -> ManifestRow:
        self.abandoned.append((manifest, now))
        return replace(OWNER, id=manifest, state=State.ABANDONED)


def resolved(
    manifests: FakeManifests, rows: Sequence[ArrivalRow], *offered: RoutedArrival
) -> tuple[list[RoutedArrival], Ownership]:
    ownership = Ownership()
    services: Any = SimpleNamespace(
        ledger=SimpleNamespace(manifests=manifests), settings=SimpleNamespace(shards=SHARDS)
    )
    by_identity = {Identity.of(arrival.file): arrival for arrival in offered}
    orphans, duplicates = resolve_owners(services, rows, by_identity, NOW)
    ownership.add_duplicates(duplicates, SHARDS)
    return orphans, ownership


def test_an_arrival_that_is_ignored_as_before_is_a_duplicate() -> None:
    orphans, ownership = resolved(FakeManifests({}), [IGNORED])
    assert (orphans, ownership.outcomes) == ([], {Identity.of(FILE): DUPLICATE})


@pytest.mark.parametrize("urgent", [False, True])
def test_an_arrival_that_is_no_longer_ignored_is_adopted_in_the_hour_of_its_first_event(urgent: bool) -> None:
    offered = replace(OFFERED, urgent=urgent)
    orphans, ownership = resolved(FakeManifests({}), [IGNORED], offered)
    first_hour = Partition("sales", "2026-11-20", 9)
    reason = "by a rule (was IGNORED: no rule)"
    assert orphans == [RoutedArrival(FILE, first_hour, Lane.STREAM, reason, IGNORED, urgent)]
    assert ownership.outcomes == {}


@pytest.mark.parametrize(
    ("state", "lane", "waiting"),
    [
        (State.QUEUED, Lane.STREAM, {SHARDS.of(OWNER.id): {Identity.of(FILE)}}),
        (State.QUEUED, Lane.BATCH, {}),
        (State.RUNNING, Lane.STREAM, {}),
        (State.DONE, Lane.BATCH, {}),
        (State.FAILED, Lane.STREAM, {}),
    ],
)
@pytest.mark.parametrize("offered", [(), (OFFERED,)])
def test_an_arrival_with_a_living_owner_is_a_duplicate_and_may_wait_for_the_streaming_job(
    state: State, lane: Lane, waiting: dict[str, set[Identity]], offered: tuple[RoutedArrival, ...]
) -> None:
    manifests = FakeManifests({"m": replace(OWNER, state=state, lane=lane)})
    old = replace(ROW, recorded_at=iso_utc(NOW - timedelta(days=1)))
    orphans, ownership = resolved(manifests, [old], *offered)
    assert (orphans, ownership.outcomes) == ([], {Identity.of(FILE): DUPLICATE})
    assert ownership.waiting_in_stream == waiting
    assert manifests.abandoned == []


@pytest.mark.parametrize(
    ("offered", "urgent"), [((), False), ((OFFERED,), False), ((replace(OFFERED, urgent=True),), True)]
)
def test_an_arrival_of_an_abandoned_owner_is_adopted_as_it_was_recorded(
    offered: tuple[RoutedArrival, ...], urgent: bool
) -> None:
    orphans, ownership = resolved(FakeManifests({"m": replace(OWNER, state=State.ABANDONED)}), [ROW], *offered)
    assert ROW.partition is not None
    reason = "for the night (adopted from m)"
    assert orphans == [RoutedArrival(FILE, ROW.partition, Lane.BATCH, reason, ROW, urgent)]
    assert ownership.outcomes == {}


def test_an_owner_without_a_row_may_be_alive_until_its_grace_has_passed() -> None:
    # Given an arrival exactly as old, and one a moment older
    older = replace(ROW, file=OTHER_FILE, manifest="n", recorded_at=iso_utc(NOW - OWNER_GRACE - timedelta(seconds=1)))
    manifests = FakeManifests({"m": None, "n": None})
    # When, Then
    orphans, ownership = resolved(manifests, [ROW, older])
    assert [orphan.file for orphan in orphans] == [OTHER_FILE]
    assert ownership.outcomes == {}
    assert manifests.abandoned == [("n", NOW)]


def test_an_owner_is_read_once_and_one_that_does_not_answer_decides_nothing() -> None:
    # Given two arrivals of an abandoned owner, and one of an owner that does not answer
    unknown = replace(ROW, file=OTHER_FILE, manifest="n")
    manifests = FakeManifests({"m": replace(OWNER, state=State.ABANDONED), "n": TransientError("later")})
    # When, Then
    orphans, ownership = resolved(manifests, [ROW, replace(ROW, file=UNVERSIONED), unknown])
    assert [orphan.file for orphan in orphans] == [FILE, UNVERSIONED]
    assert ownership.outcomes == {}
    assert manifests.reads == ["m", "n"]


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.DONE, State.FAILED])
def test_a_file_that_was_put_again_with_the_same_bytes_is_a_duplicate(state: State) -> None:
    # Given a file of a bucket without versions that is younger than its row
    row = replace(ROW, file=UNVERSIONED)
    later = replace(OFFERED, file=replace(UNVERSIONED, arrived_at=iso_utc(NOW + timedelta(hours=1))))
    # When, Then
    orphans, ownership = resolved(FakeManifests({"m": replace(OWNER, state=state)}), [row], later)
    assert (orphans, ownership.outcomes) == ([], {Identity.of(UNVERSIONED): DUPLICATE})
