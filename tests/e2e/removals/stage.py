"""A deployed stack of which one role lacks one action, and ledger rows in any state to play with."""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cli.demo.stages import NotificationsPaused
from lake.commit import CommitDocument, SourceCount, write_commit
from lake.layout import commit_key, lake_key, lake_prefix, run_key
from lake.manifest import Lane, Manifest, ObjectVersion, new_manifest_id, write_manifest
from lake.partition import Partition
from lake.publish import abort_under_prefix
from lake.time import iso_utc
from tests.e2e.removed_permission import logs, role_name, sentences, without
from tests.e2e.waiting import wait_for
from tests.unit.lake.transitions import TOTALS
from tests.unit.lake.uploads import upload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lake.ledger import Claim, ManifestRow
    from tests.e2e.scenario import Scenario

LOG_SECONDS = 180.0
"""Far more than a refusal takes to reach a log."""
LONG_AGO = timedelta(days=3)
"""Older than every age at which the sweep repairs or reports something."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The stack, the role, and the action that is taken away inside ``lacking``."""

    scenario: Scenario
    role: str
    """Part of the role's name, without the hash."""
    action: str

    @contextmanager
    def lacking(self) -> Iterator[None]:
        """The role lacks the action until the block is left."""
        with without(self.iam, self.role_name, self.action):
            yield

    @property
    def iam(self) -> Any:
        return self.scenario.cloud.client("iam")

    @property
    def role_name(self) -> str:
        return role_name(self.iam, f"-{self.role}")

    def told(self, text: str) -> list[str]:
        """The lines of the text that name role and action: AWS's sentence, or the record of the local cloud."""
        lines, role = text.replace("\\n", "\n"), self.role_name
        recorded = [
            line
            for line in lines.splitlines()
            if line.startswith("refused: ") and f"/{role}/" in line and f": {self.action} on " in line
        ]
        return sentences(lines, role, self.action) + recorded

    def wait_until_logged(self, pattern: str) -> str:
        """Wait until a log file that matches the pattern names role and action; returns these lines."""
        folder = self.scenario.cloud.logs_dir
        found = wait_for(f"{pattern} to name the permission", lambda: self.told(logs(folder, pattern)), LOG_SECONDS)
        return "\n".join(found)

    def invoke(self, function: str, payload: dict[str, Any]) -> str:
        """Invoke a deployed function; returns its answer, or its error, as text."""
        functions = self.scenario.deployment.functions
        names = [item["FunctionName"] for item in functions.list_functions()["Functions"]]
        (name,) = (name for name in names if f"-Router{function.replace('_', '')}Function" in name)
        return str(functions.invoke(FunctionName=name, Payload=json.dumps(payload))["Payload"].read().decode())

    def new_file(self, folder: str = "", version: str | None = "v1") -> ObjectVersion:
        """A file of a dataset of its own; the object does not exist."""
        name = f"r{secrets.token_hex(4)}"
        key = "/".join(part for part in (name, folder, "a.ndjson") if part)
        bucket = self.scenario.deployment.resources.input_bucket
        return ObjectVersion(bucket, key, "0" * 32, 9, iso_utc(datetime.now(UTC)), version)

    def put_silently(self, name: str = "a") -> ObjectVersion:
        """An object of a dataset of its own, without an event."""
        with NotificationsPaused(self.scenario.deployment):
            file = self.scenario.put(f"r{secrets.token_hex(4)}/{name}.ndjson", ['{"n": 1}'])
        return replace(file, arrived_at=iso_utc(datetime.now(UTC)))

    def sibling(self, file: ObjectVersion) -> ObjectVersion:
        """Another file of the same dataset; the object does not exist."""
        return ObjectVersion(file.bucket, f"{file.key}.json", file.etag, 9, file.arrived_at, "v1")

    def manifest(self, *files: ObjectVersion, lane: Lane = Lane.BATCH) -> ManifestRow:
        """A QUEUED manifest, document and row, of files without arrival rows."""
        manifest = self._document(files or (self.new_file(),), lane)
        self.scenario.deployment.ledger.datasets.register(manifest.partition.dataset)
        self.scenario.deployment.ledger.manifests.enqueue(manifest)
        return self.listed(self.row(manifest.id))

    def superseded(self, row: ManifestRow, file: ObjectVersion) -> None:
        """The manifest is superseded by one that lists the file."""
        manifest = self._document((file,), Lane.BATCH)
        assert self.scenario.deployment.ledger.manifests.supersede([row], [manifest], "removal", datetime.now(UTC))

    def _document(self, files: tuple[ObjectVersion, ...], lane: Lane) -> Manifest:
        now, deployment = datetime.now(UTC), self.scenario.deployment
        partition = Partition.of(files[0].key.partition("/")[0], now)
        manifest = Manifest(new_manifest_id(now), lane, partition, iso_utc(now), files)
        write_manifest(deployment.s3, deployment.resources.control_bucket, manifest)
        return manifest

    def listed(self, row: ManifestRow) -> ManifestRow:
        """Wait until the index of open manifests, which lags, has the row in its state."""
        manifests = self.scenario.deployment.ledger.manifests
        wait_for(
            f"{row.id} to be listed as {row.state}",
            lambda: row.id in {item.id for item in manifests.open(row.lane, row.state)},
        )
        return row

    def row(self, manifest: str) -> ManifestRow:
        row = self.scenario.deployment.ledger.manifests.get(manifest)
        assert row is not None
        return row

    def claimed(self, row: ManifestRow, lease: timedelta = timedelta(hours=1), run: str = "jr_unknown") -> Claim:
        """The manifest is RUNNING, held by a run that its service does not know."""
        claim = self.scenario.deployment.ledger.manifests.claim(row, run, datetime.now(UTC), lease)
        assert claim is not None
        self.listed(claim.row)
        return claim

    def publishing(self, row: ManifestRow, unreadable: ObjectVersion | None = None) -> ManifestRow:
        """The manifest is PUBLISHING an object whose upload was changed, or nothing of a file that was unreadable."""
        deployment, claim = self.scenario.deployment, self.claimed(row)
        objects = () if unreadable else (self._changed_upload(claim),)
        sources: tuple[SourceCount, ...] = ()
        if unreadable:
            sources = (SourceCount(unreadable.uri, unreadable.version, 9, 0, 0, 0, {}, None, "it was gone"),)
        document = CommitDocument(
            *(row.id, row.generation, claim.row.attempt, row.partition, "jr_unknown", iso_utc(datetime.now(UTC))),
            *(objects, (), sources, (), 1),
        )
        key = commit_key(row.id, row.generation, claim.row.attempt, secrets.token_hex(4))
        reference = write_commit(deployment.s3, deployment.resources.control_bucket, key, document)
        deployment.ledger.manifests.commit(claim, reference, datetime.now(UTC))
        return self.listed(self.row(row.id))

    def abort_uploads(self, row: ManifestRow) -> None:
        """Abort what the manifest's generation has uploaded to the lake and not completed."""
        prefix = lake_prefix(row.partition, row.id, row.generation)
        abort_under_prefix(self.scenario.deployment.s3, self.scenario.deployment.resources.lake_bucket, prefix)

    def done_without(self, file: ObjectVersion, manifest: str) -> ManifestRow:
        """The manifest is DONE and has not read the file."""
        row = self.publishing(self.row(manifest), file)
        assert self.scenario.deployment.ledger.manifests.finish(row, TOTALS, datetime.now(UTC))
        return self.row(manifest)

    def age(self, row: ManifestRow) -> None:
        """Its last transition was long ago."""
        self.set_attributes(f"manifest#{row.id}", "manifest", changed_at=iso_utc(datetime.now(UTC) - LONG_AGO))

    def set_attributes(self, pk: str, sk: str, **attributes: str | int) -> None:
        """Write attributes of a ledger row past all rules."""
        table = self.scenario.deployment.resources.ledger_table
        names = {f"#{name}": name for name in attributes}
        typed = {
            f":{name}": {"S": value} if isinstance(value, str) else {"N": str(value)}
            for name, value in attributes.items()
        }
        self.scenario.cloud.client("dynamodb").update_item(
            TableName=table,
            Key={"pk": {"S": pk}, "sk": {"S": sk}},
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=typed,
        )

    def delete_row(self, pk: str, sk: str) -> None:
        table = self.scenario.deployment.resources.ledger_table
        self.scenario.cloud.client("dynamodb").delete_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}})

    def run_document(self, *manifests: str) -> str:
        """The URI of a run document of these manifests."""
        bucket, key = self.scenario.deployment.resources.control_bucket, run_key(f"removal-{secrets.token_hex(4)}", 0)
        body = {"execution": "removal", "number": 0, "manifests": manifests, "bytes": 0, "files": 0}
        self.scenario.deployment.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(body).encode())
        return f"s3://{bucket}/{key}"

    def delete_control(self, prefix: str) -> None:
        """Delete the documents of the control bucket under a prefix."""
        s3, bucket = self.scenario.deployment.s3, self.scenario.deployment.resources.control_bucket
        for item in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", []):
            s3.delete_object(Bucket=bucket, Key=item["Key"])

    def _changed_upload(self, claim: Claim) -> Any:
        """An upload whose part was sent again with other content: it has another ETag than the document says."""
        s3, bucket = self.scenario.deployment.s3, self.scenario.deployment.resources.lake_bucket
        key = lake_key(claim.row.partition, claim.row.id, claim.row.generation, 0)
        pending = upload(s3, bucket, key, b"first")
        s3.upload_part(Bucket=bucket, Key=key, UploadId=pending.upload_id, PartNumber=1, Body=b"other")
        return pending
