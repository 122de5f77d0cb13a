"""The verification proves what was published and finds one change of any kind; the scheduled one raises an alarm."""

import bz2
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from batch_job.main import run
from lake.layout import result_key, verification_key
from lake.ledger import ArrivalRow
from lake.manifest import Lane, Partition
from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE
from tests.integration.conversion_world import NOON, ConversionWorld
from tests.modified_at import ModifiedAt
from verify.hours import Effort, HoursCheck
from verify.report import HourOutcome, HourReport
from verify.stack import Hours, Stack

HOUR = "2026-03-04T12"
ROWS = b"".join(b'{"id":%d,"Name":"n\\u00e4me %d","x":{"y" : [1.10, null]},"z":null}\n' % (n, n) for n in range(50))
BODIES = {
    "orders/a.json": ROWS + b"broken\n\n[1]\n",
    "orders/b.json.gz": gzip.compress(b'\xef\xbb\xbf{"id":"1"}\r\n' * 3 + b'{"id":1,"id":2}\n' * 1200),
    "orders/c.json.bz2": bz2.compress(b'{"date":1,"_rescued":"r"}\n{"a":"\xff"}'),
    "orders/d.json.gz": gzip.compress(ROWS)[:-9],
    "orders/e.json": b"",
}


class VerifiedHour:
    """Converted files of one hour, and how a test changes what is published of them."""

    def __init__(
        self, world: ConversionWorld, spark: SparkSession, bodies: Mapping[str, bytes] = BODIES, gone: str = ""
    ) -> None:
        """``gone``: the key of a file that is deleted before it is converted."""
        self.world = world
        files = [world.put(key, body) for key, body in bodies.items()]
        if gone:
            world.s3.delete_object(Bucket=world.resources.input_bucket, Key=gone)
        self.files = {file.key: file for file in files}
        self.manifest = world.enqueue(files)
        for file in files:
            self.record(file, self.manifest)
        (outcome,) = world.convert([self.manifest], spark)
        assert outcome.state == "DONE", outcome.reason

    def record(self, file: Any, manifest: str | None) -> None:
        row = ArrivalRow(file, manifest, Partition.of("orders", NOON), Lane.BATCH, "test", NOON.isoformat())
        self.world.ledger.arrivals.put(row)

    def verify(self, share: float = 1.0) -> HourReport:
        """The report of the hour of all files that a test puts."""
        s3: Any = ModifiedAt(self.world.s3, NOON)
        rules = (("orders/",), lambda _: True)
        stack = Stack(s3, self.world.ledger, self.world.resources, *rules, self.world.clock)
        (report,) = HoursCheck(stack, Hours("orders", HOUR, HOUR), Effort(share), lambda _: None).run()
        return report

    def change(self, kind: str, change: Callable[[bytes], bytes]) -> bytes:
        """Change the first object of a bucket; return its earlier content."""
        key, body = self.world.keys(kind)[0], self.world.bodies(kind)[0]
        self.world.s3.put_object(Bucket=self.world.bucket(kind), Key=key, Body=change(body))
        return body


def rewrite(change: Callable[[pa.Table], pa.Table]) -> Callable[[bytes], bytes]:
    def rewritten(body: bytes) -> bytes:
        target = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(body))), target)
        return target.getvalue()

    return rewritten


def with_value(table: pa.Table, name: str, row: int, value: str | None) -> pa.Table:
    index, values = table.schema.get_field_index(name), table.column(name).to_pylist()
    values[row] = value
    return table.set_column(index, table.schema.field(index), pa.array(values, pa.string()))


def with_numbers(table: pa.Table) -> pa.Table:
    index = table.schema.get_field_index("id")
    return table.set_column(index, "id", table.column(index).cast(pa.int64()))


def without_first(reason: str) -> Callable[[bytes], bytes]:
    """The records without the first one of a reason."""

    def drop(body: bytes) -> bytes:
        lines = body.splitlines(keepends=True)
        found = next(line for line in lines if json.loads(line)["reason"] == reason)
        return b"".join(line for line in lines if line is not found)

    return drop


change_row = rewrite(lambda table: with_value(table, "__name", 31, "n\u00e4me 3l"))
LINE, OBJECT = "the lake does not have this row", "has a row without an input line in its manifest, or has it twice"
OTHER_BYTES = "has other bytes than were published"


@pytest.fixture(scope="module")
def shared_hour(cloud: LocalCloud, spark: SparkSession) -> VerifiedHour:
    """An hour for tests that leave it unchanged."""
    return VerifiedHour(ConversionWorld.create(cloud), spark)


@pytest.fixture
def hour(world: ConversionWorld, spark: SparkSession) -> VerifiedHour:
    return VerifiedHour(world, spark)


def test_an_hour_is_proven(shared_hour: VerifiedHour) -> None:
    report = shared_hour.verify()
    assert report.outcome == HourOutcome.PROVEN, [*map(str, report.differences), *report.unproven]
    assert (report.files, report.rows, report.rejects, report.whole_files, report.manifests) == (5, 52, 1205, 1, 1)
    # And a share without its manifest proves nothing
    report = shared_hour.verify(share=1e-9)
    assert (report.outcome, report.manifests, report.compared) == (HourOutcome.NOT_COMPARED, 1, 0)


@pytest.mark.parametrize(
    "section",
    [{"provenance": True}, {"column_limit": 2}, {"split_bytes": 100}, {"max_line_bytes": 1024}, {"concatenated": True}],
)
def test_an_hour_is_proven_with_other_settings_and_after_they_have_changed(
    world: ConversionWorld, spark: SparkSession, section: dict[str, Any]
) -> None:
    default = world.settings.convert
    world.configure("convert", **section)
    hour = VerifiedHour(world, spark, BODIES | {"orders/f.json": b'{"long":"%s"}\n' % (b"x" * 2000)})
    # Tables created after convert.provenance was switched off have its columns as well.
    dataset = world.ledger.datasets.get("orders")
    assert dataset is not None
    assert dataset.provenance == ("provenance" in section)
    for settings in (section, {name: getattr(default, name) for name in section}):
        world.configure("convert", **settings)
        report = hour.verify()
        assert report.outcome == HourOutcome.PROVEN, [*map(str, report.differences), *report.unproven]


def test_what_a_reprocess_keeps_is_compared_by_the_settings_that_it_was_converted_with(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given an hour with one missing file, and a line of the other file that was too long
    world = unversioned_world
    world.configure("convert", max_line_bytes=1024)
    bodies = {"orders/a.json": b'{"long":"%s"}\n{"id":1}\n' % (b"x" * 2000), "orders/b.json": b'{"id":2}\n'}
    hour = VerifiedHour(world, spark, bodies, gone="orders/b.json")
    # When other settings convert the file that returned, while the other file is missing
    world.put("orders/b.json", bodies["orders/b.json"])
    world.s3.delete_object(Bucket=world.resources.input_bucket, Key="orders/a.json")
    world.configure("convert", max_line_bytes=1 << 24, provenance=True)
    assert world.ledger.manifests.force(world.row(hour.manifest), world.clock(), "request")
    (outcome,) = world.convert([hour.manifest], spark)
    assert (outcome.state, outcome.rows) == ("DONE", 2), outcome.reason
    # Then
    world.put("orders/a.json", bodies["orders/a.json"])
    report = hour.verify()
    assert (report.files, [*map(str, report.differences)]) == (2, [])


def test_an_hour_is_proven_after_the_bucket_got_versions(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given files of a bucket without versions, one of which was replaced and one deleted after it got versions
    hour, s3 = VerifiedHour(unversioned_world, spark), unversioned_world.s3
    bucket = hour.files["orders/a.json"].bucket
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    hour.record(unversioned_world.put("orders/a.json", b'{"id":"newer"}\n'), None)
    s3.delete_object(Bucket=bucket, Key="orders/b.json.gz")
    # Then
    report = hour.verify()
    assert (report.rows, [*map(str, report.differences)]) == (52, [])
    assert not any("no longer be read" in reason for reason in report.unproven)


def test_an_hour_of_an_earlier_input_bucket_is_proven(hour: VerifiedHour) -> None:
    # Given a deployment that has changed input.bucket
    world = hour.world
    bucket = f"{world.resources.input_bucket}-2"
    world.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=BUCKET_PLACE)
    world.resources = replace(world.resources, input_bucket=bucket)
    # Then
    report = hour.verify()
    assert (report.outcome, report.files) == (HourOutcome.PROVEN, 5), [*map(str, report.differences), *report.unproven]


CHANGES: dict[str, tuple[str, Callable[[bytes], bytes], list[tuple[int | None, str]]]] = {
    "a value": ("lake", change_row, [(32, LINE), (None, OBJECT)]),
    "a row is lost and another one doubled": (
        "lake",
        rewrite(lambda table: pa.concat_tables([table.slice(0, 5), table.slice(4, 1), table.slice(6)])),
        [(6, LINE), (None, OBJECT)],
    ),
    "a value is with the rescued members": (
        "lake",
        rewrite(lambda table: with_value(with_value(table, "id", 3, None), "_rescued", 3, '{"id":3}')),
        [(4, LINE), (None, OBJECT)],
    ),
    "the type of a column": (
        "lake",
        rewrite(with_numbers),
        [(None, "its column id is of type int64 and not a string")],
    ),
    "a rejected line": (
        "quarantine",
        lambda body: body.replace(b'"line":"broken"', b'"line":"Broken"'),
        [(51, "is in the quarantine with other bytes")],
    ),
    "the record of a line is lost": (
        "quarantine",
        without_first("duplicate key"),
        [(None, "1 rejected line (duplicate key) is not in the quarantine")],
    ),
    "the record of a line lacks its bytes": ("quarantine", lambda body: body.replace(b',"line":"broken"', b""), []),
    "what only readers of a footer see": ("lake", rewrite(lambda table: table), []),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_one_change_is_found_with_its_place(shared_hour: VerifiedHour, kind: str) -> None:
    name, change, expected = CHANGES[kind]
    before = shared_hour.change(name, change)
    report = shared_hour.verify()
    shared_hour.change(name, lambda _: before)
    assert report.outcome == HourOutcome.DIFFERS
    found = [(difference.line, difference.problem) for difference in report.differences]
    assert found == [(None, OTHER_BYTES), *expected]


def edit_row(hour: VerifiedHour, place: str, name: str, value: str | int) -> None:
    boto3.resource("dynamodb").Table(hour.world.resources.ledger_table).update_item(
        Key={"pk": f"manifest#{hour.manifest}", "sk": "manifest"},
        UpdateExpression=f"SET {place}#name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value},
    )


def test_counts_of_the_ledger_that_differ_from_the_documents_are_found(hour: VerifiedHour) -> None:
    # Given a row whose counts a person has edited
    edit_row(hour, "published.totals.", "rows", 53)
    edit_row(hour, "", "bytes", 7)
    # When, Then
    (difference,) = hour.verify().differences
    assert "= (5, 7, 1, 53, " in difference.problem
    assert f", its documents (5, {sum(map(len, BODIES.values()))}, 1, 52, " in difference.problem


OTHER_COUNT = "differs from the commit document in its number of rows or records"


@pytest.mark.parametrize(
    ("documents", "kind", "changed", "rows", "problem"),
    [
        (2, "objects", {"rows": 53}, 53, OTHER_COUNT),
        (2, "quarantine", {"rows": 1}, 52, OTHER_COUNT),
        (2, "sources", {"version": "v0"}, 52, "counts other files, or a file twice"),
        (1, "sources", {"rows": 51}, 52, "differs from the commit document"),
        (1, "objects", {"rows": 51}, 52, "differs from the commit document"),
    ],
)
def test_counts_that_the_ledger_confirms_are_compared_with_files_and_objects(
    hour: VerifiedHour, documents: int, kind: str, changed: dict[str, Any], rows: int, problem: str
) -> None:
    # Given a change of the result document alone, or of both documents, with which the ledger agrees
    row, s3, control = hour.world.row(hour.manifest), hour.world.s3, hour.world.bucket("control")
    assert row.published is not None
    for key in (result_key(row.id, 1), row.published.document.key)[:documents]:
        document = json.loads(s3.get_object(Bucket=control, Key=key)["Body"].read())
        document[kind][0].update(changed)
        body = json.dumps(document).encode()
        s3.put_object(Bucket=control, Key=key, Body=body)
        if key == row.published.document.key:
            edit_row(hour, "published.document.", "sha256", hashlib.sha256(body).hexdigest())
    edit_row(hour, "published.totals.", "rows", rows)
    # When, Then
    assert problem in [difference.problem for difference in hour.verify().differences]


def test_a_manifest_without_its_result_document_is_still_compared(hour: VerifiedHour) -> None:
    # Given a result document that is gone, and a row that has changed
    bucket, key = hour.world.bucket("control"), result_key(hour.manifest, 1)
    hour.world.s3.delete_object(Bucket=bucket, Key=key)
    hour.change("lake", change_row)
    # When
    report = hour.verify()
    # Then
    problem, *others = [difference.problem for difference in report.differences]
    assert problem.startswith(f"s3://{bucket}/{key} is gone")
    assert (others, report.files) == ([OTHER_BYTES, LINE, OBJECT], 5)


def test_a_file_that_was_read_is_not_in_the_quarantine_as_a_whole(hour: VerifiedHour) -> None:
    # Given a quarantine that has the file as a whole, and a lake without its rows
    file = hour.files["orders/a.json"]
    names = {"source": file.uri, "version": file.version}
    whole = {"kind": "file", **names, "offset": 0, "length": file.size, "reason": "truncated"}

    def replace_lines(body: bytes) -> bytes:
        lines = [line for line in body.splitlines() if json.loads(line)["source"] != file.uri]
        return b"\n".join((*lines, json.dumps(whole).encode(), b""))

    hour.change("quarantine", replace_lines)
    hour.change("lake", rewrite(lambda table: table.slice(50)))

    # When
    (difference,) = (item for item in hour.verify().differences if item.problem != OTHER_BYTES)

    # Then
    assert difference.uri == file.uri
    assert (
        difference.problem == "is in the quarantine as a whole (truncated), and the commit document says: it was read"
    )


def test_a_foreign_object_is_found(hour: VerifiedHour) -> None:
    bucket, (key,) = hour.world.bucket("lake"), hour.world.keys("lake")
    for name in (key.replace("-g1-", "-g1-9"), key.replace("-g1-", "-g7-"), key.rpartition("/")[0] + "/copy.parquet"):
        source: Any = {"Bucket": bucket, "Key": key}
        hour.world.s3.copy_object(Bucket=bucket, Key=name, CopySource=source)
    assert len(hour.verify().differences) == 3


def test_a_deleted_input_cannot_be_proven(hour: VerifiedHour) -> None:
    file = hour.files["orders/a.json"]
    hour.world.s3.delete_object(Bucket=file.bucket, Key=file.key, VersionId=str(file.version_id))
    report = hour.verify()
    assert report.outcome == HourOutcome.UNPROVEN
    assert "orders/a.json" in report.unproven[0]
    assert "can no longer be read: S3 answers NoSuchVersion" in report.unproven[0]


def test_a_file_in_two_manifests_is_found(hour: VerifiedHour, spark: SparkSession) -> None:
    hour.world.convert([hour.world.enqueue([hour.files["orders/a.json"]])], spark)
    (difference,) = hour.verify().differences
    assert "was published twice" in difference.problem


@pytest.mark.parametrize("outcome", ["proven", "differs"])
def test_a_date_is_compared_once_and_only_a_difference_is_an_alarm_and_fails_the_run(
    world: ConversionWorld, spark: SparkSession, outcome: str
) -> None:
    # Given converted files of noon, perhaps with a planted difference; the run begins as soon as their date is due
    world.configure("verify", share=1.0)
    due_hour, is_planted = VerifiedHour(world, spark), outcome == "differs"
    if is_planted:
        due_hour.change("lake", change_row)
    world.log_lines.clear()
    world.now += timedelta(hours=12 + 36)
    s3: Any = ModifiedAt(world.s3, NOON)
    context = replace(world.context(spark, "run-verify"), s3=s3)
    # When
    assert run(context, {"verify": "due"}) == is_planted
    # Then
    (line,) = (line for line in world.log_lines if f"verify orders {HOUR}  {outcome}: 5 files, 52 rows" in line)
    assert [text for text in world.log_lines if text.startswith("ALARM ")] == [line] * is_planted
    assert (f"hybrid-router verify --dataset orders --from {HOUR} --to {HOUR}" in line) == is_planted
    key, bucket = verification_key("2026-03-04", early=False), world.resources.control_bucket
    body = json.loads(world.s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    (hour,) = body["datasets"]["orders"]
    assert (hour["hour"], hour["outcome"], hour["compared"]) == (HOUR, outcome, 1)
    rows = "its rows differ: 52 in the input files, 52 in the lake"
    assert [item["problem"] for item in hour["differences"]] == [OTHER_BYTES, rows] * is_planted
    # And the next run finds nothing due
    world.log_lines.clear()
    assert run(context, {"verify": "due"}) == 0
    assert world.log_lines == ["verify: dates: none is due"]
