"""`hybrid-router convert s3://...`: objects of S3, read over HTTP, to a local folder."""

import json
import os
import secrets
from pathlib import Path
from typing import Any, Literal

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ReadTimeoutError
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE

pytestmark = pytest.mark.usefixtures("cloud")


def converted(output: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    found = CliRunner().invoke(app, ["convert", *arguments, "-o", str(output), "--json", "--cores", "1"])
    return found.exit_code, json.loads(found.stdout)


@pytest.mark.parametrize("status", ["Suspended", "Enabled"])
def test_a_folder_of_a_bucket_is_converted_once(
    cloud: LocalCloud, tmp_path: Path, status: Literal["Suspended", "Enabled"]
) -> None:
    # Given objects of two datasets under a prefix, one outside it, and one that is not NDJSON
    s3, bucket = boto3.client("s3"), f"convert-{secrets.token_hex(4)}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
    for key in ("orders/a b+%.ndjson", "orders/deep/b.ndjson", "orders2/c.ndjson", "orders/notes.txt"):
        s3.put_object(Bucket=bucket, Key=key, Body=b'{"a": 1}\n{"a": 2}\n')
    # When the folder is named without its slash, and then an object
    code, summary = converted(tmp_path / "out", f"s3://{bucket}/orders", "--region", os.environ["AWS_REGION"])
    # Then
    assert (code, summary["files"], summary["rows"]) == (ExitCode.OK, 2, 4)
    _, again = converted(tmp_path / "out", f"s3://{bucket}/orders/", f"s3://{bucket}/orders2/c.ndjson")
    assert (again["files"], again["skipped"], again["rows"]) == (1, 2, 2)
    assert len(list((tmp_path / "out" / "lake" / "orders").rglob("*.parquet"))) == 1
    # And an object that is put again is another version, which replaces the earlier one only on request
    s3.put_object(Bucket=bucket, Key="orders2/c.ndjson", Body=b'{"a": 3}\n')
    code, changed = converted(tmp_path / "out", f"s3://{bucket}/orders2")
    assert (code, changed["files"]) == (ExitCode.NEGATIVE, 0)
    _, replaced = converted(tmp_path / "out", f"s3://{bucket}/orders2", "--replace")
    assert (replaced["files"], replaced["rows"]) == (1, 1)
    # And a name that no object has is an error, and not an empty folder
    missing = CliRunner().invoke(app, ["convert", f"s3://{bucket}/order", "-o", str(tmp_path / "out")])
    assert f"s3://{bucket}/order does not exist" in str(missing.exception)
    # And `try` reads the object as well
    tried = CliRunner().invoke(
        app, ["try", f"s3://{bucket}/orders2/c.ndjson", "--settings", "settings/dev.toml", "--json"]
    )
    assert (tried.exit_code, json.loads(tried.stdout)["rows"]) == (ExitCode.OK, 1), tried.output


@pytest.mark.parametrize("operation", ["GetObject", "ListObjectsV2"])
def test_s3_that_does_not_answer_ends_the_call_with_advice_and_the_next_call_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    s3, bucket = boto3.client("s3"), f"convert-{secrets.token_hex(4)}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    # A key that only boto3 can read.
    s3.put_object(Bucket=bucket, Key="orders//a.ndjson", Body=b'{"a": 1}\n')
    source = (f"s3://{bucket}", "--region", os.environ["AWS_REGION"])
    # Given
    request = BaseClient._make_api_call  # type: ignore[attr-defined]

    def fail(client: BaseClient, name: str, arguments: Any) -> Any:
        if name == operation:
            raise ReadTimeoutError(endpoint_url="https://s3")
        return request(client, name, arguments)

    with monkeypatch.context() as failing:
        failing.setattr(BaseClient, "_make_api_call", fail)
        code, summary = converted(tmp_path / "out", *source)
    # Then
    assert (code, summary["files"], summary["refused"]) == (ExitCode.NOT_REACHABLE, 0, {})
    assert "check the network" in str(summary["stopped"])
    assert "retried" not in str(summary["stopped"])
    code, summary = converted(tmp_path / "out", *source)
    assert (code, summary["rows"], summary["stopped"]) == (ExitCode.OK, 1, None)
