"""The deployed stack as the end-to-end tests use it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from cli.deployed_stack import DeployedStack
from cli.inspect.trace import trace_arrival
from cli.local_clouds import local_config, local_state
from infra.synth import synth
from lake.ledger import CostRow, ManifestRow, State
from lake.ledger.manifest_row import manifest_row_key
from lake.manifest import ObjectVersion
from lake.settings import Settings
from lake.time import iso_utc
from local import isolation
from local.cloud import LocalCloud
from local.duckdb_iceberg import duckdb_with_iceberg
from local.limits import Limits
from router.services import Services
from tests.e2e.waiting import PATIENCE_SECONDS, wait_for
from tests.unit.router.events import s3_record


@dataclass(frozen=True, slots=True)
class Scenario:
    """A stack that is deployed on a local cloud."""

    cloud: LocalCloud
    deployment: DeployedStack

    @classmethod
    def deploy(cls, cloud: LocalCloud, settings: Settings, folder: Path) -> "Scenario":
        """Deploy the stack of these settings, unchanged; its template is written to the folder."""
        outputs = cloud.deploy(synth(settings, folder))
        session, logs = isolation.session(cloud.access_key), str(cloud.logs_dir)
        return cls(cloud, DeployedStack.connect(outputs, session, cloud.endpoint, isolation.client_config(), logs))

    def leave_local_state(self, stage: str) -> None:
        """Write the file by which ``--local`` finds the stack of a stage on this cloud."""
        local_state().mkdir(parents=True, exist_ok=True)
        config = local_config(self.cloud.endpoint, self.cloud.access_key, self.cloud.logs_dir)
        (local_state() / f"{stage}.aws").write_text(config)

    @contextmanager
    def limited(self, limits: Limits) -> Iterator[None]:
        """Set these limits of the cloud inside the block."""
        self.cloud.limit(limits)
        try:
            yield
        finally:
            self.cloud.limit(Limits())

    def put(self, key: str, lines: list[str], **options: Any) -> ObjectVersion:
        """Put an NDJSON file into the input bucket, with options of PutObject."""
        bucket = self.deployment.resources.input_bucket
        body = "".join(f"{line}\n" for line in lines).encode()
        answer = self.deployment.s3.put_object(Bucket=bucket, Key=key, Body=body, **options)
        return ObjectVersion(bucket, key, answer["ETag"].strip('"'), len(body), "", answer.get("VersionId"))

    def queued(self, key: str, lines: list[str]) -> ObjectVersion:
        """Put a file that waits for the night."""
        file = self.put(key, lines)
        self.wait_state(file, State.QUEUED)
        return file

    @contextmanager
    def started_soon(self, part: str) -> Iterator[datetime]:
        """Let the schedule with this part in its name start its target once, in two seconds; return the time before."""
        scheduler = self.cloud.client("scheduler")
        pages = scheduler.get_paginator("list_schedules").paginate()
        names = [item["Name"] for page in pages for item in page["Schedules"]]
        (name,) = [name for name in names if f"e2e-Schedules{part}" in name]
        before, now = scheduler.get_schedule(Name=name), datetime.now(UTC)
        own = {key: before[key] for key in ("ScheduleExpression", "ScheduleExpressionTimezone", "State")}
        once = f"at({now + timedelta(seconds=2):%Y-%m-%dT%H:%M:%S})"
        soon = {"ScheduleExpression": once, "ScheduleExpressionTimezone": "UTC", "State": "ENABLED"}
        kept = {key: before[key] for key in ("FlexibleTimeWindow", "Target")}
        scheduler.update_schedule(Name=name, **soon, **kept)
        try:
            yield now
        finally:
            scheduler.update_schedule(Name=name, **own, **kept)

    def services(self, settings: Settings, clock: Callable[[], datetime]) -> Services:
        """The services of a function of the stack, for a call in the process of the tests."""
        stack = self.deployment
        return Services(settings, stack.resources, stack.ledger, stack.s3, stack.glue, clock)

    def start_stream(self) -> None:
        """Start the stream as a person does, with its window over, so that it ends when it is idle."""
        self.deployment.control_stream("start")
        self.deployment.ledger.stream.open_window(iso_utc(datetime.now(UTC)))

    def wait_in_index(self, row: ManifestRow, state: State) -> None:
        """Wait until the index, which lags, has the manifest in this state."""
        manifests = self.deployment.ledger.manifests
        wait_for(f"{row.id} in the index", lambda: row.id in {item.id for item in manifests.open(row.lane, state)})

    def make_older(self, row: ManifestRow, age: timedelta) -> None:
        """Let the last transition of the manifest be this long ago."""
        key, then = manifest_row_key(row.id), iso_utc(datetime.now(UTC) - age)
        self.cloud.client("dynamodb").update_item(
            TableName=self.deployment.resources.ledger_table,
            Key={"pk": {"S": key.pk}, "sk": {"S": key.sk}},
            UpdateExpression="SET changed_at = :then",
            ExpressionAttributeValues={":then": {"S": then}},
        )

    def manifest_of(self, file: ObjectVersion) -> ManifestRow | None:
        """The first manifest of the file, or its part; None before it is recorded. Successors are not considered."""
        stack = self.deployment
        arrival = stack.ledger.arrivals.get(file)
        manifests = () if arrival is None else trace_arrival(stack.s3, stack.ledger, stack.resources, arrival).manifests
        return manifests[0] if manifests else None

    def wait_state(self, file: ObjectVersion, state: State) -> ManifestRow:
        """Wait until the manifest of the file is in ``state``; a file in a collection counts as QUEUED."""
        states = (state, State.COLLECTED) if state == State.QUEUED else (state,)

        def manifest_in_state() -> ManifestRow | None:
            row = self.manifest_of(file)
            assert row is None or row.state != State.FAILED or state == State.FAILED, row.reason
            return row if row is not None and row.state in states else None

        return wait_for(f"{file.key} to be {state}", manifest_in_state)

    def costs(self) -> list[CostRow]:
        """The costs of today and yesterday."""
        today = datetime.now(UTC).date()
        return list(self.deployment.ledger.costs.of_days(today - timedelta(days=1), today))

    def execute(self, machine: str, request: dict[str, Any]) -> dict[str, Any]:
        """Start an execution and wait for its end; return its description."""
        return self.ended(self.start(machine, request))

    def start(self, machine: str, request: dict[str, Any]) -> str:
        """Start an execution; return its ARN."""
        answer = self.deployment.sfn.start_execution(stateMachineArn=machine, input=json.dumps(request))
        return str(answer["executionArn"])

    def ended(self, arn: str, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Wait for the end of an execution; return its description."""
        sfn = self.deployment.sfn

        def ended() -> dict[str, Any] | None:
            execution: dict[str, Any] = sfn.describe_execution(executionArn=arn)
            return execution if execution["status"] != "RUNNING" else None

        return wait_for(f"the end of {arn}", ended, seconds)

    def lake_rows(self, dataset: str, folder: Path) -> Counter[str]:
        """All rows of a dataset as JSON strings without NULLs, read by DuckDB from the files alone."""
        bucket = self.deployment.resources.lake_bucket
        pages = self.deployment.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{dataset}/")
        for item in (item for page in pages for item in page.get("Contents", [])):
            path = folder / item["Key"]
            path.parent.mkdir(parents=True, exist_ok=True)
            self.deployment.s3.download_file(bucket, item["Key"], str(path))
        pattern = f"{folder}/{dataset}/*/*/*.parquet"
        with duckdb.connect() as connection:
            relation = connection.sql(
                f"SELECT * FROM read_parquet('{pattern}', union_by_name=true, hive_partitioning=false)"
            )
            return rows_of(relation)

    def table_rows(self, dataset: str, snapshot: int | None = None) -> Counter[str]:
        """Rows as in ``lake_rows``, of a snapshot of the Iceberg table; None means the current snapshot."""
        database = self.deployment.resources.tables_database
        table: Any = self.deployment.glue.get_table(DatabaseName=database, Name=dataset)["Table"]
        location = table["Parameters"]["metadata_location"]
        with duckdb_with_iceberg(self.cloud.endpoint, self.cloud.access_key) as connection:
            version = f", snapshot_from_id={snapshot}" if snapshot else ""
            return rows_of(connection.sql(f"SELECT * EXCLUDE (date, hour) FROM iceberg_scan('{location}'{version})"))


def event_body(file: ObjectVersion) -> str:
    """The body of the message by which S3 announces a put."""
    members = {"bucket": file.bucket, "size": file.size, "eTag": file.etag, "versionId": file.version_id}
    return json.dumps({"Records": [s3_record(file.key, time=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}", **members)]})


def rows_of(relation: duckdb.DuckDBPyRelation) -> Counter[str]:
    """Rows as JSON strings without NULLs."""
    names = relation.columns
    rows = (
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in relation.fetchall()
    )
    return Counter(json.dumps(row, sort_keys=True) for row in rows)
