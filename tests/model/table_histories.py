"""Histories of a committer of Iceberg tables: one fault at one of its writes, or other processes between writes.

The product's functions run against fakes. After each swap every retained snapshot must show each manifest at most
once, in one complete generation, and no deleted object; finally the table must match the ledger.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError

from lake.commit import read_commit
from lake.errors import HybridRouterError, InvalidDocumentError, TableStoppedError
from lake.layout import lake_key
from lake.ledger import Ledger, ManifestRow, State
from lake.publish import complete_all, roll_back
from lake.settings import parse_settings
from router.iceberg.commit import live_entries, manifests_of
from router.services import Services
from router.sweep.leftovers import delete_replaced, delete_table_files
from router.sweep.repair import Repair
from router.tables import committer
from router.tables.batch import TableCatalog
from router.tables.handler import rebuild_table, restore_table
from tests.model.fake_dynamodb import FakeDynamoDB
from tests.model.fake_s3 import FakeS3
from tests.unit.lake.faults import Crash, Faults
from tests.unit.lake.world import MORNING, PARTITION, RESOURCES
from tests.unit.router.conftest import Deployment
from tests.unit.router.glue import FakeGlue
from tests.unit.router.sweep.sweeping import committed, listed
from tests.unit.router.tables.tabling import COMPACTED, TABLES, compacted, forced, publish, swapped, table

SETTINGS = parse_settings({"stage": "model", "datasets": TABLES, "tables": {"keep_hours": 120}})
DATASET = "orders"
MIDNIGHT = replace(PARTITION, hour=0)
MAX_ROUNDS = 12
FAULTS = ("crash_before", "lose_answer_of", "drop", "delay", "repeat", "pause", "sweep")
"""``sweep``: a pause in which another process sweeps, and nothing else happens."""
FILES = 2
"""Number of files of each publish."""


class BrokenPromiseError(AssertionError):
    """A reader of the table would have seen wrong data."""


@dataclass
class TableWorld:
    """A stage with one table, a process that meets faults, and other processes without faults."""

    faulty: Deployment = field(init=False)
    """The committer under test."""
    world: Deployment = field(init=False)
    """All other processes."""
    seen: dict[str, int] = field(default_factory=dict)
    """The generation of each manifest that readers saw last."""
    files: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    """The identity of a file's rows: manifest, generation and number of the file."""
    restored: bool = False
    """Whether the table may show an earlier batch's rows, until a person decides."""

    def __post_init__(self) -> None:
        s3, dynamodb, glue = FakeS3(MORNING), FakeDynamoDB(), FakeGlue()
        for bucket in ("input", "lake", "quarantine", "control"):
            s3.create_bucket(Bucket=bucket)
        self.world = _deployment(s3, dynamodb, glue, Faults(), wrapped=False)
        self.faulty = _deployment(s3, dynamodb, glue, Faults(), wrapped=True)
        self.world.ledger.datasets.admit({DATASET: ""}, 0)
        # After each swap: before the next one, and at the end.
        glue.before_update = self.check

    # What the processes do

    def publish(self, row: ManifestRow) -> ManifestRow:
        """DONE with ``FILES`` files."""
        # Known before readers can see them.
        for number in range(FILES):
            key = lake_key(row.partition, row.id, row.generation, number)
            self.files[f"s3://lake/{key}"] = [(row.id, row.generation, number)]
        return publish(self.world, row, files=FILES)

    def commit(self) -> None:
        """Rounds of a committer without faults, until no work is left."""
        for _ in range(MAX_ROUNDS):
            if committer.commit_round(self.world.services, DATASET) is None:
                return
        raise BrokenPromiseError("the committer finds no end")

    def wait(self, hours: float) -> None:
        for deployment in (self.world, self.faulty):
            deployment.wait(timedelta(hours=hours))
        self.world.raw_s3.now = self.world.now

    def sweep(self) -> None:
        repair = Repair(self.world.services, self.world.now + timedelta(minutes=1))
        delete_replaced(repair)
        delete_table_files(repair)
        assert repair.errors == []
        self.check()

    def compact(self) -> None:
        """Another writer rewrites all files into one."""
        rows = [item for path in self.paths() for item in self.files[path]]
        self.files[f"s3://lake/{COMPACTED}"] = rows
        compacted(self.world)

    # The readers' view

    @property
    def catalog(self) -> TableCatalog:
        return TableCatalog(self.world.services, DATASET)

    def metadata(self) -> dict[str, Any]:
        return table(self.world)

    def paths(self, snapshot: Any = None) -> list[str]:
        manifests = manifests_of(self.metadata(), self.catalog, snapshot)
        return [entry["data_file"]["file_path"] for item in manifests for entry in live_entries(item, self.catalog)]

    def metadata_files(self) -> set[str]:
        """The documents that the current one names, and the files of its snapshots."""
        entry = self.catalog.load()
        assert entry is not None
        files = {entry.location} | {item["metadata-file"] for item in entry.metadata["metadata-log"]}
        for item in entry.metadata["snapshots"]:
            files |= {item["manifest-list"]}
            files |= {manifest["manifest_path"] for manifest in manifests_of(entry.metadata, self.catalog, item)}
        return {file.removeprefix("s3://lake/") for file in files}

    def check(self) -> None:
        """Compare the promises with the readers' view of each retained snapshot."""
        for snapshot in self.metadata()["snapshots"]:
            try:
                paths = self.paths(snapshot)
            except InvalidDocumentError as error:
                raise BrokenPromiseError(f"metadata of a retained snapshot is gone: {error}") from error
            if gone := [path for path in paths if path.removeprefix("s3://lake/") not in self._objects]:
                raise BrokenPromiseError(f"a retained snapshot shows objects that are gone: {gone}")
            self._check_rows(paths)
        shown = {manifest: generation for path in self.paths() for manifest, generation, _ in self.files[path]}
        for manifest, generation in self.seen.items():
            if not self.restored and shown.get(manifest, 0) < generation:
                raise BrokenPromiseError(f"{manifest}: generation {generation} was shown, now {shown.get(manifest)}")
        self.seen |= shown

    @property
    def _objects(self) -> dict[str, Any]:
        return self.world.raw_s3.buckets["lake"]  # type: ignore[no-any-return]

    def _check_rows(self, paths: list[str]) -> None:
        rows = Counter(rows for path in paths for rows in self.files[path])
        if doubled := [item for item, number in rows.items() if number > 1]:
            raise BrokenPromiseError(f"a snapshot has rows twice: {doubled}")
        parts = Counter((manifest, generation) for manifest, generation, _ in rows)
        if len(parts) > len({manifest for manifest, _ in parts}):
            raise BrokenPromiseError(f"a snapshot has two generations of a manifest: {sorted(parts)}")
        if set(parts.values()) - {FILES}:
            raise BrokenPromiseError(f"a snapshot has a part of a publish: {parts}")

    def check_end(self, rows: list[ManifestRow]) -> None:
        """The table matches the ledger, and no work is left."""
        expected = set()
        for row in (self.world.row(item.id) for item in rows):
            if row.published is not None:
                expected.add((row.id, row.published.generation))
                if not row.is_tabled:
                    raise BrokenPromiseError(f"the ledger says that the table lacks {row.id}")
        shown = {(manifest, generation) for path in self.paths() for manifest, generation, _ in self.files[path]}
        if shown != expected:
            raise BrokenPromiseError(f"the table shows {sorted(shown)}, the ledger {sorted(expected)}")
        if list(self.world.ledger.tables.outbox(DATASET)):
            raise BrokenPromiseError("entries are left in the outbox")


def _deployment(s3: Any, dynamodb: Any, glue: Any, faults: Faults, *, wrapped: bool) -> Deployment:
    def client(target: Any) -> Any:
        return faults.wrap(target) if wrapped else target

    ledger = Ledger.over(client(dynamodb), RESOURCES.ledger_table)
    deployment = Deployment(client(s3), s3, ledger, faults, dynamodb, glue=glue)
    deployment.services = Services(SETTINGS, RESOURCES, ledger, client(s3), client(glue), deployment.clock)
    return deployment


def play(scenario: str, fault: str, number: int) -> bool:
    """Play one history; False if the committer made fewer than ``number`` writes.

    Raises ``BrokenPromiseError``.
    """
    world = TableWorld()
    rows = [world.publish(listed(world.world, name)) for name in "ab"]
    world.commit()
    rows.append(world.publish(listed(world.world, "c", partition=MIDNIGHT)))
    rows[0] = world.publish(forced(world.world, rows[0]))
    failing = _publishing(world, rows[1])
    SCENARIOS[scenario](world, rows)
    is_stopped = scenario == STOPPED
    faults = world.faulty.faults
    if fault == "pause":
        faults.pause = (number, lambda: _meanwhile(world, rows, is_stopped=is_stopped))
    elif fault == "sweep":
        faults.pause = (number, world.sweep)
    else:
        setattr(faults, fault, number)
    try:
        for _ in range(MAX_ROUNDS):
            if committer.commit_round(world.faulty.services, DATASET) is None:
                break
        if is_stopped:
            raise BrokenPromiseError(f"the committer goes on: {scenario}")
    except (Crash, BotoCoreError, TableStoppedError, HybridRouterError) as error:
        if isinstance(error, TableStoppedError) and not is_stopped:
            raise BrokenPromiseError(f"the committer stops: {error}") from error
    reached = len(faults.writes) >= number
    faults.deliver()
    faults.reset()
    _end(world, rows, failing, scenario)
    return reached


def _publishing(world: TableWorld, row: ManifestRow) -> ManifestRow:
    """The next generation is PUBLISHING: its objects are there and its entry is listed, but it will fail."""
    publishing = committed(world.world, world.world.claimed(forced(world.world, row)))
    world.world.ledger.tables.list_generation(DATASET, row.id, publishing.generation, world.world.now)
    assert publishing.document is not None
    document = read_commit(world.world.s3, "control", publishing.document)
    complete_all(world.world.s3, document.objects)
    for number, item in enumerate(document.objects):
        world.files[f"s3://lake/{item.key}"] = [(row.id, publishing.generation, number)]
    return publishing


def _meanwhile(world: TableWorld, rows: list[ManifestRow], *, is_stopped: bool) -> None:
    """Another committer finishes the pending work, and adds later publishes."""
    with suppress(TableStoppedError):
        world.commit()
        rows[0] = world.publish(forced(world.world, rows[0]))
        rows.append(world.publish(listed(world.world, "d", partition=MIDNIGHT)))
        world.commit()
    assert is_stopped or world.world.row(rows[0].id).is_tabled


def _end(world: TableWorld, rows: list[ManifestRow], failing: ManifestRow, scenario: str) -> None:
    """The publish in progress fails, a person repairs what is stopped, and all work is completed."""
    assert failing.document is not None
    buckets = ("lake", "quarantine")
    roll_back(world.world.s3, world.world.ledger, failing, buckets, "an upload is gone", world.world.now)
    assert world.world.row(failing.id).state == State.FAILED
    world.check()
    if scenario == STOPPED:
        restore_table(world.world.services, DATASET)
    world.commit()
    world.restored = False
    world.check_end(rows)
    # The grace period is over, and the snapshots are kept for longer, so that their metadata is old enough to be
    # deleted; then they expire as well.
    for hours in (2, 96, 24, 1, 96, 24):
        world.wait(hours)
        world.sweep()
        world.commit()
    world.check_end(rows)
    kept = {path.removeprefix("s3://lake/") for path in world.paths()}
    if left := {key for key in world.world.keys("lake", f"{DATASET}/") if key.endswith(".parquet")} - kept:
        raise BrokenPromiseError(f"objects that nothing shows are left: {sorted(left)}")
    if left := set(world.world.keys("lake", f"_tables/{DATASET}/")) - world.metadata_files() - kept:
        raise BrokenPromiseError(f"files of the table that nothing needs are left: {sorted(left)}")


def _roll_back_main(world: TableWorld, rows: list[ManifestRow]) -> None:
    """Another writer moves the table back to its first snapshot."""
    world.commit()
    rows.append(world.publish(listed(world.world, "e")))
    world.restored = True
    metadata = world.metadata()
    first = metadata["snapshots"][0]["snapshot-id"]
    refs = {**metadata["refs"], "main": {"snapshot-id": first, "type": "branch"}}
    swapped(world.world, {**metadata, "refs": refs, "current-snapshot-id": first})


def _rebuilt(world: TableWorld, rows: list[ManifestRow]) -> None:
    """A person has created a new table, which has no hour yet."""
    del rows
    world.commit()
    world.restored = True
    rebuild_table(world.world.services, DATASET)


SCENARIOS: dict[str, Callable[[TableWorld, list[ManifestRow]], None]] = {
    "batches": lambda *_: None,
    "compacted": lambda world, _: world.compact(),
    "rebuilt": _rebuilt,
    "rolled back": _roll_back_main,
}
STOPPED = "rolled back"
"""The scenario in which the committer must stop until a person restores the table."""


def histories(scenario: str) -> Iterator[tuple[str, int]]:
    """Yield the faults at each write; a history is played when the caller asks for the next one."""
    for fault in FAULTS:
        number = 1
        while play(scenario, fault, number):
            yield fault, number
            number += 1
