"""An Iceberg table on the disk, over Parquet files of which each row is known."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.ledger.datasets import field_id
from lake.manifest import Partition
from router.iceberg.commit import Batch, commit_batch
from router.iceberg.metadata import DataFile, Metadata, hour_of, new_metadata, table_column

Row = Mapping[str, str]


@dataclass
class LocalTable:
    """A table, its files, and the rows that it has to show."""

    folder: Path
    metadata: Metadata = field(init=False)
    files: dict[str, tuple[DataFile, Sequence[Row], Partition]] = field(default_factory=dict)
    now: int = 1_800_000_000_000
    version: int = 0

    def __post_init__(self) -> None:
        (self.folder / "table/metadata").mkdir(parents=True)
        self.metadata = new_metadata(f"file://{self.folder}/table", "9c12d441-03fe-4693-9a96-a0705ddf69c1", 0, self.now)

    def read(self, path: str) -> bytes:
        return Path(path.removeprefix("file://")).read_bytes()

    def write(self, path: str, body: bytes) -> None:
        Path(path.removeprefix("file://")).write_bytes(body)

    def add(self, name: str, hour: str, rows: Sequence[Row], *, field_ids: bool = True) -> None:
        """Write a Parquet file of strings, which has the columns of its rows and no others."""
        partition = Partition.parse(f"orders#{hour}")
        folder = self.folder / "lake" / f"date={partition.date}" / f"hour={partition.hour:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.parquet"
        columns = dict.fromkeys(name for row in rows for name in row)
        ids = {name: {"PARQUET:field_id": str(field_id(name))} if field_ids else None for name in columns}
        schema = pa.schema([pa.field(name, pa.string(), metadata=ids[name]) for name in columns])
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema), path)
        file = DataFile(f"file://{path}", path.stat().st_size, len(rows), hour_of(partition))
        self.files[name] = (file, rows, partition)

    def commit(self, add: Iterable[str], remove: Iterable[str] = (), columns: Iterable[str] = (), **other: Any) -> None:
        """The next batch, with files that were written before."""
        self.now += 60_000
        added, removed = ([self.files[name][0] for name in names] for names in (add, remove))
        known = dict.fromkeys(name for _, rows, _ in self.files.values() for row in rows for name in row)
        number = int(self.metadata["properties"]["hybrid-router.batch"]) + 1
        batch = Batch(number, added, removed, columns=[*known, *columns], **other)
        self.metadata = commit_batch(self.metadata, self, batch, self.now, 0)

    def reload(self) -> None:
        """Take what another program has made of the table."""
        folder = self.folder / "table/metadata"
        self.version = int((folder / "version-hint.text").read_text())
        while (folder / f"v{self.version + 1}.metadata.json").exists():
            self.version += 1
        self.metadata = json.loads((folder / f"v{self.version}.metadata.json").read_text())

    @property
    def document(self) -> str:
        """Path of the metadata document, under the name that Hadoop's catalog looks for as well."""
        self.version += 1
        path = self.folder / f"table/metadata/v{self.version}.metadata.json"
        path.write_text(json.dumps(self.metadata))
        (path.parent / "version-hint.text").write_text(str(self.version))
        return str(path)

    def rows_of(self, *names: str) -> Counter[str]:
        """The rows of these files, as readers of the table show them."""
        found: Counter[str] = Counter()
        for name in names:
            _, rows, hour = self.files[name]
            for row in rows:
                shown = {table_column(column): value for column, value in row.items()}
                found[normal({**shown, "date": hour.date, "hour": hour.hour})] += 1
        return found


def normal(row: Mapping[str, Any]) -> str:
    """A row without its NULLs, as text."""
    return json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True, default=str)


def normal_rows(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """The multiset of the rows that a reader has found."""
    return Counter(map(normal, rows))
