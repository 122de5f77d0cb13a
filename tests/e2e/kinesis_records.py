"""Records that are put into a Kinesis stream, and what they have to become: one object of Firehose, rows, a reject."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import ObjectVersion
from tests.e2e.waiting import wait_for
from tests.records import KINESIS_STREAM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.scenario import Scenario

DATASET = "clicks"
FOLDER = f"{DATASET}/records/{DATASET}/"


def put_records(scenario: Scenario) -> ObjectVersion:
    """Put three records, one with a newline of its own and one that is not JSON; returns Firehose's object of them."""
    kinesis = scenario.cloud.client("kinesis")
    kinesis.create_stream(StreamName=KINESIS_STREAM, ShardCount=1)
    bodies = [b'{"page": "/", "n": 1}', b'{"page": "/cart", "n": 2}\n', b"not JSON"]
    records = [{"Data": body, "PartitionKey": "p"} for body in bodies]
    assert kinesis.put_records(StreamName=KINESIS_STREAM, Records=records)["FailedRecordCount"] == 0
    (file,) = wait_for("the object of Firehose", lambda: _objects(scenario))
    body = scenario.deployment.s3.get_object(Bucket=file.bucket, Key=file.key)["Body"].read()
    assert gzip.decompress(body) == b"".join(record + b"\n" for record in bodies)
    return file


def check_rows(scenario: Scenario, file: ObjectVersion, folder: Path) -> None:
    """Check that the records went through the stream lane and are in the lake, and that nothing is lost."""
    manifest = scenario.wait_state(file, State.DONE)
    assert (manifest.lane, manifest.partition.dataset) == ("stream", DATASET)
    rows = [{"page": "/", "n": "1"}, {"page": "/cart", "n": "2"}]
    assert scenario.lake_rows(DATASET, folder) == Counter(json.dumps(row, sort_keys=True) for row in rows)
    assert manifest.published is not None
    assert manifest.published.totals is not None
    assert (manifest.published.totals.rows, sum(manifest.published.totals.rejects.values())) == (2, 1)


def _objects(scenario: Scenario) -> list[ObjectVersion]:
    bucket = scenario.deployment.resources.input_bucket
    found = scenario.deployment.s3.list_object_versions(Bucket=bucket, Prefix=FOLDER).get("Versions", [])
    return [
        ObjectVersion(bucket, item["Key"], item["ETag"].strip('"'), item["Size"], "", item["VersionId"])
        for item in found
    ]
