"""A batch: the generations that it brings into a table, and its document.

The catalog entry of a table points to its metadata document; Glue swaps the pointer conditionally.
"""

import gzip
import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lake.commit import put_bound_document, read_commit
from lake.documents import decode_body, get_bound_document, get_document, parse_document
from lake.errors import InvalidDocumentError, TransientError, UnusableDocumentError
from lake.layout import batch_key, parse_s3_uri, table_location
from lake.ledger import ManifestRow, OutboxEntry, State, TableRow
from lake.ledger.manifest_row import CommitReference
from lake.ledger.table import batches_of
from lake.ledger.tables import EXPIRY_ENTRY
from lake.manifest import Partition
from lake.successors import follow
from router.catalog.handler import TABLE_INPUT_FIELDS
from router.iceberg.commit import write_document
from router.iceberg.metadata import BATCH, DataFile, Metadata, batch_of, current_schema, following, hour_of
from router.services import PARALLEL_REQUESTS, Services, in_parallel
from router.telemetry import logger

PARALLEL_TABLES = 4
"""Tables that share the threads, memory and processor of an invocation. A commit document of 10,000 files takes 12 MB,
and a quarter of the time of a small batch is processor time."""
TABLE_REQUESTS = PARALLEL_REQUESTS // PARALLEL_TABLES
MAX_MANIFESTS = 1000 // PARALLEL_TABLES
"""Maximum number of manifests plus whole hours in a batch; one hour may exceed it. Some have published nothing."""
MAX_FILES = 200_000 // PARALLEL_TABLES
"""Number of files after which a batch gets no further manifest or hour: each file takes 1 KiB of memory, and a
manifest of a terabyte has thousands."""


@dataclass(frozen=True, slots=True)
class BatchItem:
    """A manifest whose published generation is brought into the table."""

    manifest: str
    hour: str
    generation: int
    document: CommitReference
    files: tuple[DataFile, ...]
    before: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The content of a batch document."""

    dataset: str
    number: int
    expires: bool
    """Whether the batch is needed to expire snapshots."""
    hours: dict[str, str]
    """Hours that lose all their files in the table and get the files of all their manifests, with the time at which
    each was listed."""
    items: tuple[BatchItem, ...]


def plan_batch(services: Services, row: TableRow) -> PlannedBatch | None:
    """The next batch, by rows that are read after ``row``, which has nothing pending. None if there is nothing to do.

    It deletes entries whose generation is in the table or can never be published. A manifest whose commit document
    cannot be used waits, and so does an hour of the outbox with such a manifest. Raises ``UnusableDocumentError`` if
    nothing else is left.
    """
    expires = False
    hours: dict[str, str] = {}
    waiting: set[str] = set()
    items: dict[str, BatchItem] = {}
    errors: list[UnusableDocumentError] = []

    def is_full() -> bool:
        return len(items) + len(hours) >= MAX_MANIFESTS or sum(len(item.files) for item in items.values()) >= MAX_FILES

    for entries in batches_of(services.ledger.tables.outbox(row.dataset)):
        for entry in entries:
            if not entry.is_hour:
                expires = expires or entry.name == EXPIRY_ENTRY
                continue
            if is_full():
                break
            published = (row for row in _rows_of_hour(services, entry.hour) if row.published is not None)
            found, unusable = _items(services, published)
            if unusable:
                errors += unusable
                waiting.add(entry.name)
            else:
                hours[entry.name] = entry.listed_at
                items |= found
        else:
            # Only after all hours: a replacement in an hour that is still listed would need the files of that hour.
            due = (row for row in _due(services, entries) if row.id not in items and row.partition.stamp not in waiting)
            for some in batches_of(due, TABLE_REQUESTS):
                if is_full():
                    break
                found, unusable = _items(services, some)
                errors += unusable
                items |= found
        if is_full():
            break
    if not items and not hours and not expires:
        if errors:
            raise errors[0]
        return None
    return PlannedBatch(row.dataset, row.applied + 1, expires, hours, tuple(items.values()))


def _items(services: Services, rows: Iterable[ManifestRow]) -> tuple[dict[str, BatchItem], list[UnusableDocumentError]]:
    """The manifests with their files, by id, and the errors of manifests whose commit document cannot be used."""

    def read(row: ManifestRow) -> BatchItem | UnusableDocumentError:
        assert row.published is not None
        reference = row.published.document
        try:
            files = _files(services, row, reference)
            before = _files(services, row, row.tabled.document) if row.tabled else ()
        except UnusableDocumentError as error:
            logger.error("a published manifest is not brought into the table", manifest_id=row.id, error=str(error))
            return error
        return BatchItem(row.id, row.partition.stamp, row.published.generation, reference, files, before)

    found = in_parallel(read, rows, TABLE_REQUESTS)
    items = {item.manifest: item for item in found if isinstance(item, BatchItem)}
    return items, [item for item in found if not isinstance(item, BatchItem)]


def _due(services: Services, entries: Sequence[OutboxEntry]) -> Iterable[ManifestRow]:
    """The entries' manifests that are published but not in the table; deletes entries that have ended, others wait."""
    generations = {entry: found for entry in entries if (found := entry.manifest) is not None}
    names = sorted({manifest for manifest, _ in generations.values()})
    current = dict(zip(names, services.ledger.manifests.get_many(names), strict=True)) if names else {}
    due: dict[str, ManifestRow] = {}
    ended: list[str] = []
    for entry, (manifest, generation) in generations.items():
        row = current[manifest]
        if row is not None and row.published is not None and not row.is_tabled:
            due[manifest] = row
            continue
        is_published = row is not None and row.published is not None and row.published.generation >= generation
        # It is published and in the table, or it can never be published.
        if row is None or is_published or row.generation > generation or row.state == State.FAILED:
            ended.append(entry.name)
    forget(services, entries[0].dataset, dict.fromkeys(ended))
    return due.values()


def forget(services: Services, dataset: str, entries: Mapping[str, str | None]) -> None:
    """Delete entries of the outbox; ``entries`` maps their names to the argument ``listed_at`` of ``Tables.forget``."""
    in_parallel(lambda entry: services.ledger.tables.forget(dataset, *entry), entries.items(), TABLE_REQUESTS)


def _rows_of_hour(services: Services, hour: Partition) -> Iterable[ManifestRow]:
    listed = services.ledger.partitions.manifests(hour)
    for page in follow(services.ledger, listed, parallel=1):
        yield from (row for _, row in page if row is not None and row.state != State.ABANDONED)


def tabled_of_hour(services: Services, hour: Partition) -> dict[str, tuple[DataFile, ...]]:
    """The manifests of an hour that the table shows, each with the files of the generation that it shows."""
    shown = [(row, row.tabled.document) for row in _rows_of_hour(services, hour) if row.tabled is not None]
    files = in_parallel(lambda item: _files(services, *item), shown, TABLE_REQUESTS)
    return {row.id: found for (row, _), found in zip(shown, files, strict=True)}


def _files(services: Services, row: ManifestRow, reference: CommitReference) -> tuple[DataFile, ...]:
    document = read_commit(services.s3, services.resources.control_bucket, reference)
    hour = hour_of(row.partition)
    return tuple(DataFile(f"s3://{item.bucket}/{item.key}", item.size, item.rows, hour) for item in document.objects)


def write_batch(services: Services, batch: PlannedBatch) -> CommitReference:
    """Put the document under a new key; returns the reference for the ledger."""
    key = batch_key(batch.dataset, batch.number, secrets.token_hex(8))
    return put_bound_document(services.s3, services.resources.control_bucket, key, batch)


def read_batch_document(services: Services, reference: CommitReference) -> PlannedBatch:
    """Get the document that the ledger names.

    Raises ``InvalidDocumentError`` if it does not exist or has another hash than in the ledger, and
    ``NewerDocumentError`` if another version wrote it: it must be applied before any other batch.
    """
    body = get_bound_document(services.s3, services.resources.control_bucket, reference.key, reference.sha256)
    return decode_body(PlannedBatch, body, f"batch document {reference.key}")


GZIP = b"\x1f\x8b"
POINTER = "metadata_location"
"""Parameter of the catalog entry that Iceberg's clients read (GlueTableOperations)."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """Glue's entry of a table, and the document to which it points."""

    version: str
    """The version that a swap compares."""
    location: str
    """URI of the document."""
    table: Mapping[str, Any]
    """Glue's answer; a swap keeps what others have put there."""
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class TableCatalog:
    """The entry of one table in the database of the stage's Iceberg tables, and the files of its metadata."""

    services: Services
    dataset: str

    def load(self) -> CatalogEntry | None:
        """The current entry; None if no table has this name.

        Raises ``InvalidDocumentError`` if it is not an Iceberg table, or its document is gone or damaged.
        """
        table = self._table()
        if table is None:
            return None
        location = table.get("Parameters", {}).get(POINTER)
        if location is None:
            raise InvalidDocumentError(
                f"the table {self.dataset} of the database {self._database} is not an Iceberg table: delete it"
            )
        body = self.read(location)
        if body.startswith(GZIP):
            # By another writer, with write.metadata.compression-codec = gzip.
            with suppress(EOFError, OSError, zlib.error):
                body = gzip.decompress(body)
        return CatalogEntry(table["VersionId"], location, table, parse_document(body, location))

    def exists(self) -> bool:
        return self._table() is not None

    def names(self) -> dict[str, str]:
        """The parameters that name the table in Glue's requests for an optimizer."""
        return {"CatalogId": self._table()["CatalogId"], "DatabaseName": self._database, "TableName": self.dataset}

    def create(self, metadata: Metadata) -> bool:
        """Create the entry. False: an entry with this name exists."""
        glue, location = self.services.glue, write_document(metadata, self)
        try:
            glue.create_table(DatabaseName=self._database, TableInput=self._input(metadata, location, {}))
        except glue.exceptions.AlreadyExistsException:
            return False
        return True

    def replace(self, metadata: Metadata) -> None:
        """Point to the document of another table, whatever the entry was; create an entry if there is none.

        A person's description and owner of the table stay. Raises ``TransientError`` if the ledger has another table by
        now, or if another writer has changed the entry meanwhile.
        """
        glue = self.services.glue
        if self.create(metadata):
            return
        table = glue.get_table(DatabaseName=self._database, Name=self.dataset)["Table"]
        # Read after the entry, whose version is compared: another rebuild changes the ledger first.
        row = self.services.ledger.tables.get(self.dataset)
        kept = {name: value for name, value in table.items() if name in ("Description", "Owner")}
        if (
            row is None
            or row.uuid != metadata["table-uuid"]
            or not self._update(self._input(metadata, write_document(metadata, self), kept), table["VersionId"])
        ):
            raise TransientError(f"another process has changed the table {self.dataset}: run the command again")

    def swap(self, entry: CatalogEntry, metadata: Metadata) -> bool:
        """Point to another document. False: another writer has changed the entry since ``entry`` was read.

        Raises botocore's errors: it is then unknown whether the pointer was swapped.
        """
        location = write_document(following(metadata, entry.location), self)
        parameters = {**entry.table["Parameters"], "previous_metadata_location": entry.location}
        return self._update(self._input(metadata, location, {**entry.table, "Parameters": parameters}), entry.version)

    def _update(self, table: Any, version: str) -> bool:  # noqa: ANN401
        glue = self.services.glue
        try:
            glue.update_table(DatabaseName=self._database, TableInput=table, SkipArchive=True, VersionId=version)
        except glue.exceptions.ConcurrentModificationException:
            return False
        return True

    def read(self, path: str) -> bytes:
        place = parse_s3_uri(path)
        return get_document(self.services.s3, place.bucket, place.key)

    def write(self, path: str, body: bytes) -> None:
        place = parse_s3_uri(path)
        self.services.s3.put_object(Bucket=place.bucket, Key=place.key, Body=body)

    @property
    def location(self) -> str:
        """URI of the metadata's folder. It holds no object of a conversion, because other writers may clean it."""
        return table_location(self.services.resources.lake_bucket, self.dataset)

    @property
    def _database(self) -> str:
        return self.services.resources.tables_database

    def _table(self) -> Any:  # noqa: ANN401
        glue = self.services.glue
        try:
            return glue.get_table(DatabaseName=self._database, Name=self.dataset)["Table"]
        except glue.exceptions.EntityNotFoundException:
            return None

    def _input(self, metadata: Metadata, location: str, table: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """A ``TableInput`` of ``table`` for this document. Keeps comments, and the types of other writers' columns."""
        descriptor = table.get("StorageDescriptor", {})
        known = {column["Name"].lower(): column for column in descriptor.get("Columns", ())}
        columns = [
            {
                "Type": "string",
                **known.get(field["name"].lower(), {}),
                "Name": field["name"],
                # The product's own types have the same names in Iceberg and in the catalog.
                **({"Type": field["type"]} if field["type"] in ("date", "int", "string") else {}),
                "Parameters": {
                    "iceberg.field.id": str(field["id"]),
                    "iceberg.field.optional": "true",
                    "iceberg.field.current": "true",
                },
            }
            for field in current_schema(metadata)["fields"]
        ]
        return {
            **{name: table[name] for name in TABLE_INPUT_FIELDS if table.get(name, "") != ""},
            "Name": self.dataset,
            "TableType": "EXTERNAL_TABLE",
            "StorageDescriptor": {**descriptor, "Location": self.location, "Columns": columns},
            "Parameters": {
                **table.get("Parameters", {}),
                "EXTERNAL": "TRUE",
                "table_type": "ICEBERG",
                POINTER: location,
                BATCH: str(batch_of(metadata)),
            },
        }
