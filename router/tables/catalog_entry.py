"""The catalog entry of an Iceberg table: a pointer to its metadata document, which Glue swaps conditionally."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake.documents import get_document
from lake.layout import table_location
from lake.s3_uri import parse_s3_uri
from router.iceberg.metadata import BATCH, batch_of, current_schema, following

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.iceberg.metadata import Metadata
    from router.services import Services

POINTER = "metadata_location"
"""Parameter of the catalog entry that Iceberg's clients read (GlueTableOperations)."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What Glue says of a table, and the document to which it points."""

    version: str
    """Compared by the swap."""
    location: str
    """URI of the document."""
    parameters: Mapping[str, str]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class TableCatalog:
    """The entry of one table in the database of the stage's Iceberg tables, and the files of its metadata."""

    services: Services
    dataset: str

    def load(self) -> CatalogEntry | None:
        """The current entry; None: there is no table of this name.

        Raises ``ValueError`` for one that is not an Iceberg table.
        """
        glue = self.services.glue
        try:
            table: Any = glue.get_table(DatabaseName=self._database, Name=self.dataset)["Table"]
        except glue.exceptions.EntityNotFoundException:
            return None
        location = table.get("Parameters", {}).get(POINTER)
        if location is None:
            raise ValueError(f"the table {self.dataset} of the database {self._database} is not an Iceberg table")
        return CatalogEntry(table["VersionId"], location, table["Parameters"], json.loads(self.read(location)))

    def create(self, metadata: Metadata) -> bool:
        """Create the entry; False: there is one of this name."""
        glue, location = self.services.glue, self._write_document(metadata, 0)
        try:
            glue.create_table(DatabaseName=self._database, TableInput=self._input(metadata, location, {}))
        except glue.exceptions.AlreadyExistsException:
            return False
        return True

    def replace(self, metadata: Metadata) -> None:
        """Point to the document of another table, whatever the entry was; creates one where there is none.

        Raises botocore's error for another writer that has changed the entry meanwhile.
        """
        glue = self.services.glue
        if self.create(metadata):
            return
        version = glue.get_table(DatabaseName=self._database, Name=self.dataset)["Table"]["VersionId"]
        glue.update_table(
            DatabaseName=self._database,
            TableInput=self._input(metadata, self._write_document(metadata, 0), {}),
            SkipArchive=True,
            VersionId=version,
        )

    def swap(self, entry: CatalogEntry, metadata: Metadata) -> bool:
        """Point to another document; False: another writer has changed the entry since ``entry`` was read.

        Raises botocore's errors: then it is not known whether the pointer was swapped.
        """
        glue = self.services.glue
        number = int(entry.location.rsplit("/", 1)[-1].partition("-")[0]) + 1
        location = self._write_document(following(metadata, entry.location), number)
        parameters = {**entry.parameters, "previous_metadata_location": entry.location}
        try:
            glue.update_table(
                DatabaseName=self._database,
                TableInput=self._input(metadata, location, parameters),
                SkipArchive=True,
                VersionId=entry.version,
            )
        except glue.exceptions.ConcurrentModificationException:
            return False
        return True

    def read(self, path: str) -> bytes:
        """A file of the metadata."""
        place = parse_s3_uri(path)
        return get_document(self.services.s3, place.bucket, place.key)

    def write(self, path: str, body: bytes) -> None:
        """Write a file of the metadata; its name was never used before."""
        place = parse_s3_uri(path)
        self.services.s3.put_object(Bucket=place.bucket, Key=place.key, Body=body)

    @property
    def location(self) -> str:
        """URI under which the metadata is; no object of a conversion is there, because other writers may clean it."""
        return table_location(self.services.resources.lake_bucket, self.dataset)

    @property
    def _database(self) -> str:
        return self.services.resources.tables_database

    def _write_document(self, metadata: Metadata, number: int) -> str:
        path = f"{self.location}/metadata/{number:05d}-{uuid.uuid4()}.metadata.json"
        self.write(path, json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode())
        return path

    def _input(self, metadata: Metadata, location: str, parameters: Mapping[str, str]) -> Any:  # noqa: ANN401
        columns = [
            {
                "Name": field["name"],
                "Type": field["type"],
                "Parameters": {
                    "iceberg.field.id": str(field["id"]),
                    "iceberg.field.optional": "true",
                    "iceberg.field.current": "true",
                },
            }
            for field in current_schema(metadata)["fields"]
        ]
        return {
            "Name": self.dataset,
            "TableType": "EXTERNAL_TABLE",
            "StorageDescriptor": {"Location": self.location, "Columns": columns},
            "Parameters": {
                **parameters,
                "EXTERNAL": "TRUE",
                "table_type": "ICEBERG",
                POINTER: location,
                BATCH: str(batch_of(metadata)),
            },
        }
