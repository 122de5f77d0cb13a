"""Which manifest gives a file back that was put again, and the outcome of a file that it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lake.commit import CommitDocument, SourceCount
from lake.errors import TransientError
from lake.ledger import ArrivalRow, CommitReference, ManifestRow, Published, State
from lake.manifest import Identity, Lane
from lake.partition import Partition
from router.ownership import returned
from router.ownership.draft import RoutedArrival
from router.ownership.outcome import ArrivalOutcome, Ownership
from router.ownership.returned import RELINQUISHED, by_owner, take_back, was_put_again
from tests.unit.lake.world import PARTITION, file_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lake.manifest import ObjectVersion
    from router.ownership.returned import ReturnedFile

RECORDED_AT, BEFORE, AFTER = "2026-11-20T10:00:00Z", "2026-11-20T09:59:59Z", "2026-11-20T10:00:01Z"
TODAY = Partition("orders", "2026-11-20", 12)
LOST, ALSO_LOST, READ = (replace(file_of(f"orders/{name}", version=None), arrived_at=BEFORE) for name in "abc")
OWNER = ManifestRow("m", State.DONE, Lane.BATCH, PARTITION, "", 1, 1, published=Published(1, CommitReference("c", "0")))
DUPLICATE, POSTPONED = ArrivalOutcome.DUPLICATE, ArrivalOutcome.POSTPONED


def row_of(file: ObjectVersion, manifest: str | None = "m") -> ArrivalRow:
    return ArrivalRow(file, manifest, PARTITION, Lane.BATCH, "first", RECORDED_AT)


def put_again(file: ObjectVersion, manifest: str | None = "m") -> ReturnedFile:
    arrival = RoutedArrival(replace(file, arrived_at=AFTER), TODAY, Lane.STREAM, "by a rule", urgent=True)
    return arrival, row_of(file, manifest)


@pytest.mark.parametrize(
    ("arrived_at", "recorded_event", "manifest", "version", "again"),
    [
        (AFTER, BEFORE, "m", None, True),
        # Redelivered, or put before its owner could read it.
        (RECORDED_AT, BEFORE, "m", None, False),
        (BEFORE, BEFORE, "m", None, False),
        # The clock of the recording process was behind that of S3.
        (AFTER, AFTER, "m", None, False),
        # Another version is another arrival, and an IGNORED one has no owner.
        (AFTER, BEFORE, "m", "v2", False),
        (AFTER, BEFORE, None, None, False),
    ],
)
def test_a_file_was_put_again_if_it_is_younger_than_the_row_of_its_owner(
    arrived_at: str, recorded_event: str, manifest: str | None, version: str | None, again: bool
) -> None:
    file = replace(LOST, version_id=version)
    arrival = RoutedArrival(replace(file, arrived_at=arrived_at), TODAY, Lane.BATCH, "by a rule")
    assert was_put_again(arrival, row_of(replace(file, arrived_at=recorded_event), manifest)) == again


def test_files_are_grouped_by_the_manifest_of_their_rows() -> None:
    first, second, third = put_again(LOST), put_again(READ, "n"), put_again(ALSO_LOST)
    assert by_owner([first, second, third]) == {"m": [first, third], "n": [second]}


@dataclass
class FakeLedger:
    """Manifest rows by id; whether one relinquishes files, and what it was asked for."""

    rows: Mapping[str, ManifestRow | Exception | None] = field(default_factory=dict)
    accepts: bool = True
    relinquished: list[tuple[str, str]] = field(default_factory=list)

    def get(self, manifest: str) -> ManifestRow | None:
        row = self.rows[manifest]
        if isinstance(row, Exception):
            raise row
        return row

    def relinquish(self, row: ManifestRow, key: str) -> bool:
        self.relinquished.append((row.id, key))
        return self.accepts


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Each published generation has read one file and not the others; the lists of relinquished files, by key."""
    sources = tuple(
        SourceCount(file.uri, file.version, 100, 0, 0, 0, {}, None, failed)
        for file, failed in ((LOST, "it is gone"), (ALSO_LOST, "it is gone"), (READ, None))
    )
    document = CommitDocument("m", 1, 1, PARTITION, "jr_1", "", (), (), sources, (), 1)
    lists: dict[str, Any] = {"before": {ALSO_LOST: "earlier"}}
    monkeypatch.setattr(returned, "read_commit", lambda *_: document)
    monkeypatch.setattr(returned, "read_manifest", lambda *_: None)
    monkeypatch.setattr(returned, "read_exclusions", lambda _, __, key, ___: lists[key])
    monkeypatch.setattr(returned, "write_exclusions", lambda _, __, row, files: lists.update({row.id: files}) or row.id)
    return lists


def taken(
    ledger: FakeLedger, owner: ManifestRow, *files: ReturnedFile
) -> tuple[list[RoutedArrival], dict[Identity, ArrivalOutcome]]:
    ownership = Ownership()
    resources = SimpleNamespace(control_bucket="control", file_buckets=("input",))
    services: Any = SimpleNamespace(ledger=SimpleNamespace(manifests=ledger), s3=None, resources=resources)
    return take_back(services, owner, files, ownership), ownership.outcomes


def adopted(file: ReturnedFile, owner: str = "m") -> RoutedArrival:
    arrival, row = file
    reason = f"by a rule (put again after manifest {owner} could not read it)"
    return RoutedArrival(arrival.file, PARTITION, Lane.STREAM, reason, row, urgent=True)


@pytest.mark.parametrize(
    ("state", "exclusions", "outcome"),
    [
        # Its next attempt reads the file.
        (State.QUEUED, None, DUPLICATE),
        (State.QUEUED, "exclusions/m.json", POSTPONED),
        (State.RUNNING, None, POSTPONED),
        (State.RUNNING, "exclusions/m.json", POSTPONED),
        (State.PUBLISHING, None, POSTPONED),
        # It is reprocessed as a whole.
        (State.FAILED, None, DUPLICATE),
        (State.FAILED, "exclusions/m.json", DUPLICATE),
    ],
)
def test_a_manifest_that_has_not_published_keeps_its_files(
    state: State, exclusions: str | None, outcome: ArrivalOutcome
) -> None:
    ledger = FakeLedger()
    arrivals, outcomes = taken(ledger, replace(OWNER, state=state, exclusions=exclusions), put_again(LOST))
    assert (arrivals, outcomes, ledger.relinquished) == ([], {Identity.of(LOST): outcome}, [])


def test_a_published_manifest_relinquishes_what_it_could_not_read_and_keeps_the_rest(documents: dict[str, Any]) -> None:
    ledger = FakeLedger()
    arrivals, outcomes = taken(ledger, OWNER, put_again(LOST), put_again(READ))
    assert arrivals == [adopted(put_again(LOST))]
    assert outcomes == {Identity.of(READ): DUPLICATE}
    assert ledger.relinquished == [("m", "m")]
    assert documents["m"] == {LOST: RELINQUISHED}


def test_a_published_manifest_that_has_read_everything_relinquishes_nothing() -> None:
    ledger = FakeLedger()
    assert taken(ledger, OWNER, put_again(READ)) == ([], {Identity.of(READ): DUPLICATE})
    assert ledger.relinquished == []


def test_a_row_without_a_partition_leaves_that_of_the_arrival() -> None:
    arrival, row = put_again(LOST)
    arrivals, _ = taken(FakeLedger(), OWNER, (arrival, replace(row, partition=None)))
    assert [item.partition for item in arrivals] == [TODAY]


def test_what_was_relinquished_before_is_kept_and_not_written_again(documents: dict[str, Any]) -> None:
    owner, ledger = replace(OWNER, relinquished="before"), FakeLedger()
    # Given a file that it has relinquished for an adopter that died
    assert taken(ledger, owner, put_again(ALSO_LOST)) == ([adopted(put_again(ALSO_LOST))], {})
    assert ledger.relinquished == []
    # When another one follows
    assert taken(ledger, owner, put_again(LOST)) == ([adopted(put_again(LOST))], {})
    assert documents["m"] == {ALSO_LOST: "earlier", LOST: RELINQUISHED}


def test_a_file_is_not_adopted_from_a_manifest_whose_row_has_changed() -> None:
    assert taken(FakeLedger(accepts=False), OWNER, put_again(LOST)) == ([], {})


@pytest.mark.parametrize("missing", [None, TransientError("later")])
def test_the_manifests_at_the_end_of_the_chain_give_the_files_back(
    monkeypatch: pytest.MonkeyPatch, missing: Exception | None
) -> None:
    # Given a manifest that was divided, one part of which was merged again
    ends = {"left": replace(OWNER, id="left"), "end": replace(OWNER, id="end")}
    rows = {**ends, "right": replace(OWNER, id="right", state=State.SUPERSEDED)}
    held = {"m": {"left": {LOST}, "right": {ALSO_LOST, READ}}, "right": {"end": {ALSO_LOST, READ}}}
    monkeypatch.setattr(returned, "files_by_successor", lambda _, __, ___, row, files: held[row.id])
    superseded = replace(OWNER, state=State.SUPERSEDED)
    files = [put_again(LOST), put_again(ALSO_LOST), put_again(READ)]
    # When, Then
    arrivals, outcomes = taken(FakeLedger(rows), superseded, *files)
    assert sorted(arrivals, key=lambda arrival: arrival.file) == [adopted(files[0], "left"), adopted(files[1], "end")]
    assert outcomes == {Identity.of(READ): DUPLICATE}
    # A successor without a row, or without an answer, decides nothing.
    assert taken(FakeLedger({**rows, "left": missing}), superseded, *files) == ([], {})
