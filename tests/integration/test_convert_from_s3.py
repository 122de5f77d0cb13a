"""`hybrid-router convert s3://...`: objects of S3, read over HTTP, to a folder of this machine."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING

import boto3
import pytest
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from local.isolation import BUCKET_PLACE

if TYPE_CHECKING:
    from pathlib import Path

    from local.cloud import LocalCloud

pytestmark = pytest.mark.usefixtures("cloud")


def converted(output: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    found = CliRunner().invoke(app, ["convert", *arguments, "-o", str(output), "--json", "--cores", "1"])
    return found.exit_code, json.loads(found.stdout)


def test_a_folder_of_a_bucket_is_converted_once(cloud: LocalCloud, tmp_path: Path) -> None:
    # Given objects of two datasets below a prefix, one beside it, and one that is not NDJSON
    s3, bucket = boto3.client("s3"), f"convert-{secrets.token_hex(4)}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    for key in ("orders/a b+%.ndjson", "orders/deep/b.ndjson", "orders2/c.ndjson", "orders/notes.txt"):
        s3.put_object(Bucket=bucket, Key=key, Body=b'{"a": 1}\n{"a": 2}\n')
    # When the folder is named without its slash, and then an object
    code, told = converted(tmp_path / "out", f"s3://{bucket}/orders", "--region", os.environ["AWS_REGION"])
    # Then
    assert (code, told["files"], told["rows"]) == (ExitCode.FINE, 2, 4)
    _, again = converted(tmp_path / "out", f"s3://{bucket}/orders/", f"s3://{bucket}/orders2/c.ndjson")
    assert (again["files"], again["skipped"], again["rows"]) == (1, 2, 2)
    assert len(list((tmp_path / "out" / "lake" / "orders").rglob("*.parquet"))) == 1
    # And an object that is put again is another version, which replaces the earlier one only where that is asked
    s3.put_object(Bucket=bucket, Key="orders2/c.ndjson", Body=b'{"a": 3}\n')
    code, changed = converted(tmp_path / "out", f"s3://{bucket}/orders2")
    assert (code, changed["files"]) == (ExitCode.NOT_SO, 0)
    _, replaced = converted(tmp_path / "out", f"s3://{bucket}/orders2", "--replace")
    assert (replaced["files"], replaced["rows"]) == (1, 1)
    # And `try` reads the object as well
    tried = CliRunner().invoke(
        app, ["try", f"s3://{bucket}/orders2/c.ndjson", "--settings", "settings/dev.toml", "--json"]
    )
    assert (tried.exit_code, json.loads(tried.stdout)["rows"]) == (ExitCode.FINE, 1), tried.output
