"""Reports of S3 Inventory, as AWS lays them out: each object once, deleted ones left out."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from cli.main import app
from lake.errors import InvalidInputError
from simulate.listing import ListedFile
from simulate.listing_files import read_inventory
from tests.unit.docs.pages import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

NINE = datetime(2026, 11, 18, 9, tzinfo=UTC)
SCHEMA = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate"
LINES = (
    '"input","orders/a+b%C3%A4.json","v1","true","false","100","2026-11-18T09:00:00.000Z"\n'
    '"input","orders/a+b%C3%A4.json","v0","false","false","90","2026-11-18T09:00:00.000Z"\n'
    '"input","orders/gone.json","v2","true","true","","2026-11-18T09:00:00.000Z"\n'
)
FOUND = [ListedFile("orders/a bä.json", size, NINE.timestamp()) for size in (100, 90)]
FOLDER = "inventory/input/daily"


def report(bucket: Path, kind: str, schema: str, *names: str) -> Path:
    """A manifest.json, at its place below the copy of a bucket."""
    manifest = bucket / FOLDER / "2026-11-19T01-00Z" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    files = [{"key": f"{FOLDER}/data/{name}", "size": 1, "MD5checksum": "0"} for name in names]
    manifest.write_text(json.dumps({"fileFormat": kind, "fileSchema": schema, "files": files}))
    (bucket / FOLDER / "data").mkdir()
    return manifest


def csv_report(bucket: Path, text: str = LINES, schema: str = SCHEMA) -> Path:
    manifest = report(bucket, "CSV", schema, "1.csv.gz")
    (bucket / FOLDER / "data" / "1.csv.gz").write_bytes(gzip.compress(text.encode()))
    return manifest


def test_a_csv_report_is_read_by_the_schema_of_its_manifest(tmp_path: Path) -> None:
    assert list(read_inventory(csv_report(tmp_path))) == FOUND


@pytest.mark.parametrize("place", ["{}/1.csv.gz", "copy/data/1.csv.gz"])
def test_its_files_may_lie_beside_the_manifest(tmp_path: Path, place: str) -> None:
    manifest = csv_report(tmp_path / "bucket")
    # Given a copy without the folders of the bucket
    copied = tmp_path / "copy" / "2026-11-19T01-00Z" / "manifest.json"
    data = tmp_path / place.format(copied.parent.relative_to(tmp_path))
    for path, source in ((copied, manifest), (data, tmp_path / "bucket" / FOLDER / "data" / "1.csv.gz")):
        path.parent.mkdir(parents=True, exist_ok=True)
        source.rename(path)
    # When, Then
    assert list(read_inventory(copied)) == FOUND


def test_a_parquet_report_is_read(tmp_path: Path) -> None:
    manifest = report(tmp_path, "Parquet", "message s3.inventory {}", "1.parquet")
    table = pa.table(
        {
            "bucket": ["input"] * 3,
            "key": ["orders/a bä.json", "orders/a bä.json", "orders/gone.json"],
            "is_delete_marker": [False, None, True],
            "size": [100, 90, None],
            "last_modified_date": pa.array([NINE] * 3, pa.timestamp("ms", "UTC")),
        }
    )
    parquet.write_table(table, tmp_path / FOLDER / "data" / "1.parquet")
    assert list(read_inventory(manifest)) == FOUND


@pytest.mark.parametrize(
    ("text", "schema", "message"),
    [
        (LINES, "Bucket, Key, Size", "has no column LastModifiedDate: add it to the configuration of the inventory"),
        ('"input","a.json"\n', SCHEMA, "line 1: it has 2 values, and the schema 7"),
        (LINES.replace('"90"', '"-1"'), SCHEMA, "line 2: size = '-1' is wrong"),
    ],
)
def test_a_wrong_report_is_refused(tmp_path: Path, text: str, schema: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        list(read_inventory(csv_report(tmp_path, text, schema)))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    manifest = csv_report(tmp_path)
    data = tmp_path / FOLDER / "data" / "1.csv.gz"
    data.write_bytes(data.read_bytes()[:-12])
    with pytest.raises(InvalidInputError, match=r"1\.csv\.gz cannot be read"):
        list(read_inventory(manifest))


def test_what_is_not_a_report_is_refused_with_what_to_do(tmp_path: Path) -> None:
    broken = tmp_path / "manifest.json"
    broken.write_text("[]")
    with pytest.raises(InvalidInputError, match=r"not a manifest\.json of S3 Inventory .*pass the manifest\.json of"):
        list(read_inventory(broken))
    with pytest.raises(InvalidInputError, match="of the format ORC: configure the inventory as CSV or Parquet"):
        list(read_inventory(report(tmp_path / "orc", "ORC", "struct<>", "1.orc")))
    with pytest.raises(InvalidInputError, match=r"names inventory/input/daily/data/1\.csv\.gz, which is not there"):
        list(read_inventory(report(tmp_path / "empty", "CSV", SCHEMA, "1.csv.gz")))


def test_the_command_simulates_a_report(tmp_path: Path) -> None:
    dev = CHECKOUT / "settings" / "dev.toml"
    options = ["--settings", str(dev), "--from-inventory", str(csv_report(tmp_path))]
    found = CliRunner().invoke(app, ["simulate", *options])
    assert found.exit_code == 0, found.output
    assert "2 files, 190 B a day" in found.output
