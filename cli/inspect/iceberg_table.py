"""Files and columns that an Iceberg table shows, read by pyiceberg: it shares no code with the table's writer."""

import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, ancestors_of

from lake.aws_types import GlueClient, S3Client
from lake.documents import read_uri
from lake.errors import InvalidDocumentError
from lake.ledger.datasets import field_id
from lake.manifest import Partition
from router.iceberg.metadata import BATCH_SNAPSHOT
from verify.stack import Hours
from verify.table_check import Column, ShownFile

EPOCH = date(1970, 1, 1).toordinal()
Shown = dict[tuple[Any, ...], dict[str, ShownFile]]


class IcebergTable:
    """The table of a dataset in the catalog; memory holds the files of some hours."""

    def __init__(self, s3: S3Client, glue: GlueClient, database: str, hours: Hours) -> None:
        self._s3, self._glue, self._database, self._hours = s3, glue, database, hours
        self._at = lru_cache(1)(self._read_table)
        """The object at a location, or why it cannot be read, cached because each manifest needs it."""

    def files(self, partition: Partition) -> Mapping[str, ShownFile]:
        """Return the files that the current snapshot shows in the hour, by URI; empty if there is no table.

        Raises ``InvalidDocumentError`` if a metadata file is gone or damaged.
        """
        _, shown = self._current()
        return shown.get((partition.date, partition.hour), {})

    def has_foreign_rows(self) -> bool:
        """Whether another writer has changed or rolled back rows since the last batch; a compaction does not count."""
        metadata, _ = self._current()
        if metadata is None:
            return False
        mine = metadata.properties.get(BATCH_SNAPSHOT)
        for item in ancestors_of(metadata.current_snapshot(), metadata):
            if str(item.snapshot_id) == mine:
                return False
            if item.summary is None or item.summary.operation != Operation.REPLACE:
                break
        return True

    def hidden(self, columns: Iterable[Column]) -> list[Column]:
        """Return the files' columns that the table does not show, by field id, or by name mapping without an id.

        None if there is no table, or it cannot be read: then no file is shown.
        """
        try:
            metadata, _ = self._current()
        except InvalidDocumentError:
            return []
        if metadata is None:
            return []
        ids = {item.field_id for item in metadata.schema().fields}
        names = {item.field_id: item.names for item in metadata.name_mapping() or () if item.field_id in ids}
        mapped = {name for several in names.values() for name in several}

        def another_has(name: str, number: int) -> bool:
            """Whether the column has another name with the same id, and was not renamed."""
            known = names.get(number, ())
            return name not in known and any(field_id(other) == number for other in known)

        return [
            (name, number)
            for name, number in columns
            if (name not in mapped if number is None else number not in ids or another_has(name, number))
        ]

    def _current(self) -> tuple[TableMetadata | None, Shown]:
        try:
            table: Any = self._glue.get_table(DatabaseName=self._database, Name=self._hours.dataset)["Table"]
        except self._glue.exceptions.EntityNotFoundException:
            return None, {}
        found = self._at(table.get("Parameters", {}).get("metadata_location", ""))
        if isinstance(found, InvalidDocumentError):
            raise found
        return found

    def _read_table(self, location: str) -> tuple[TableMetadata, Shown] | InvalidDocumentError:
        files = _file_io(self._s3)
        try:
            metadata = FromInputFile.table_metadata(files.new_input(location))
            return metadata, self._shown(metadata, files)
        except self._s3.exceptions.NoSuchKey:
            reason = "a file that it names is gone"
        except (ClientError, BotoCoreError, MemoryError):
            raise
        except Exception as error:  # Its decoders have no common error for damage.
            reason = f"{type(error).__name__}: {error}"
        command = f"hybrid-router tables rebuild {self._hours.dataset}"
        return InvalidDocumentError(f"it cannot be read from '{location}' ({reason}): run '{command}'")

    def _shown(self, metadata: TableMetadata, files: FileIO) -> Shown:
        snapshot = metadata.current_snapshot()
        found: Shown = defaultdict(dict)
        for manifest in snapshot.manifests(files) if snapshot else ():
            for entry in manifest.fetch_manifest_entry(files):
                file = entry.data_file
                days, hour = file.partition[0], file.partition[1]
                if days is None or hour is None:
                    # The committer stops at rows of another writer.
                    continue
                day = date.fromordinal(EPOCH + days).isoformat()
                if self._hours.first <= f"{day}T{hour:02d}" <= self._hours.last:
                    found[day, hour][file.file_path] = ShownFile(file.file_size_in_bytes, file.record_count)
        return found


def _file_io(s3: S3Client) -> Any:  # noqa: ANN401
    """The part of pyiceberg's ``FileIO`` that reads metadata, by the client that reads all other objects."""

    def new_input(location: str) -> Any:  # noqa: ANN401
        return SimpleNamespace(location=location, open=lambda: io.BytesIO(read_uri(s3, location)))

    return SimpleNamespace(new_input=new_input)
