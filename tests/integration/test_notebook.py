"""docs/notebooks/: every cell runs, on a file that is not in the repository."""

import json
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cli.local_clouds import local_config
from local.cloud import LocalCloud
from local.isolation import REGION

NOTEBOOKS = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
LINES = ['{"id": 1, "userId": "a", "tags": ["x"]}', "not a row", '{"id": 2.50, "note": null}', "", '{"id": 3}']


def run(notebook: Path) -> dict[str, Any]:
    """Run every cell; the names that they define."""
    names: dict[str, Any] = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    return names


def test_the_notebook_on_the_local_cloud_sees_all_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cloud: LocalCloud
) -> None:
    # Given the bucket that the notebook names, and a later hour with a further column
    monkeypatch.chdir(tmp_path)
    Path("dev.aws").write_text(local_config(cloud.endpoint, cloud.access_key))
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
    for hour, row in ((8, {"id": "1"}), (9, {"id": "2", "coupon": "x"})):
        pq.write_table(pa.Table.from_pylist([row]), "file.parquet")
        key = f"orders/date=2026-11-20/hour={hour:02}/m-g1-00000.parquet"
        s3.put_object(Bucket="lake", Key=key, Body=Path("file.parquet").read_bytes())
    # When
    names = run(NOTEBOOKS / "local_cloud.ipynb")
    # Then
    assert sorted(names["rows"].select("id", "coupon", "hour").rows()) == [("1", None, 8), ("2", "x", 9)]
    bucket = boto3.resource("s3").Bucket("lake")
    bucket.objects.delete()
    bucket.delete()


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    # Given
    monkeypatch.chdir(tmp_path)
    Path("events.ndjson").write_text("\n".join(LINES))
    # When
    names = run(NOTEBOOKS / "own_files.ipynb")
    # Then it used the session of the tests, and the columns are in order of their longest value
    assert names["spark"] is spark
    assert names["rows"]["id"].to_list() == ["1", "2.50", "3"]
    assert names["widest"]["column"].to_list()[:2] == ["tags", "id"]
