"""The verification proves what the conversion has published, and finds one change of any kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.integration.verified_hour import BODIES, ROWS, VerifiedHour, change_row, rewrite
from verify.report import HourOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld


@pytest.fixture
def lake(world: ConversionWorld, spark: SparkSession) -> VerifiedHour:
    return VerifiedHour(world, spark)


def test_an_hour_is_proven(lake: VerifiedHour) -> None:
    report = lake.verify()
    assert report.outcome == HourOutcome.PROVEN, [*map(str, report.differences), *report.unproven]
    assert (report.files, report.rows, report.rejects, report.whole_files, report.manifests) == (5, 52, 1205, 1, 1)


@pytest.mark.parametrize("section", [{"provenance": True}, {"column_limit": 2}, {"split_bytes": 100}])
def test_an_hour_is_proven_with_other_settings(
    world: ConversionWorld, spark: SparkSession, section: dict[str, Any]
) -> None:
    world.configure("convert", **section)
    report = VerifiedHour(world, spark).verify()
    assert report.outcome == HourOutcome.PROVEN, [*map(str, report.differences), *report.unproven]


def test_one_changed_value_is_found_with_its_place(lake: VerifiedHour) -> None:
    lake.change(lake.lake_bucket, change_row)
    report = lake.verify()
    (difference,) = report.differences
    assert report.outcome == HourOutcome.DIFFERS
    assert difference.uri.endswith("orders/a.json")
    assert (difference.line, difference.columns) == (32, ("__name",))
    assert BODIES["orders/a.json"][difference.offset :].startswith(b'{"id":31,')


def test_a_lost_and_a_doubled_row_are_found(lake: VerifiedHour) -> None:
    lake.change(lake.lake_bucket, rewrite(lambda t: pa.concat_tables([t.slice(0, 5), t.slice(4, 1), t.slice(6)])))
    (difference,) = lake.verify().differences
    assert (difference.line, difference.columns) == (6, ("__name", "id"))


def test_a_column_of_another_type_is_found(lake: VerifiedHour) -> None:
    def numbers(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index("id")
        return table.set_column(index, "id", table.column(index).cast(pa.int64()))

    lake.change(lake.lake_bucket, rewrite(numbers))
    (difference,) = lake.verify().differences
    assert difference.problem == "its column id is of type int64 and not a string"


def test_a_missing_object_is_found(lake: VerifiedHour) -> None:
    key = lake.world.keys(lake.lake_bucket)[0]
    lake.world.services.s3.delete_object(Bucket=lake.lake_bucket, Key=key)
    report = lake.verify()
    assert report.outcome == HourOutcome.DIFFERS
    assert [difference.uri for difference in report.differences] == [f"s3://{lake.lake_bucket}/{key}"]


@pytest.mark.parametrize(
    ("reason", "problem"),
    [("trailing", None), ("not an object", "1 rejected line (not an object)"), ("duplicate key", "(duplicate key)")],
)
def test_one_missing_quarantine_record_is_found(lake: VerifiedHour, reason: str, problem: str | None) -> None:
    # Given a quarantine without the first record of a reason
    def drop(body: bytes) -> bytes:
        lines = body.splitlines(keepends=True)
        found = next((line for line in lines if json.loads(line)["reason"] == reason), None)
        return b"".join(line for line in lines if line is not found)

    lake.change(lake.quarantine_bucket, drop)

    # When
    report = lake.verify()

    # Then
    assert (report.outcome == HourOutcome.PROVEN) == (problem is None)
    assert all(problem and problem in difference.problem for difference in report.differences)


def test_another_line_in_the_quarantine_is_found(lake: VerifiedHour) -> None:
    lake.change(lake.quarantine_bucket, lambda body: body.replace(b'"line":"broken"', b'"line":"Broken"'))
    (difference,) = lake.verify().differences
    assert (difference.line, difference.problem) == (51, "is in the quarantine with other bytes")


def test_a_foreign_object_is_found(lake: VerifiedHour) -> None:
    key = lake.world.keys(lake.lake_bucket)[0]
    copies = [key.replace("-g1-", "-g1-9"), key.replace("-g1-", "-g7-"), key.rpartition("/")[0] + "/copy.parquet"]
    for name in copies:
        lake.world.services.s3.copy_object(
            Bucket=lake.lake_bucket, Key=name, CopySource={"Bucket": lake.lake_bucket, "Key": key}
        )
    assert len(lake.verify().differences) == 3


def test_a_deleted_input_cannot_be_proven(lake: VerifiedHour) -> None:
    # Given one of the input's versions is gone
    bucket = lake.world.services.resources.input_bucket
    version = lake.files["orders/a.json"].version_id
    assert version
    lake.world.services.s3.delete_object(Bucket=bucket, Key="orders/a.json", VersionId=version)

    # When
    report = lake.verify()

    # Then
    assert report.outcome == HourOutcome.UNPROVEN
    assert "orders/a.json" in report.unproven[0]
    assert "is gone" in report.unproven[0]


@pytest.mark.parametrize(("age", "outcome"), [(40, HourOutcome.DIFFERS), (20, HourOutcome.UNPROVEN)])
def test_a_file_that_the_ledger_does_not_know_is_found(lake: VerifiedHour, age: int, outcome: HourOutcome) -> None:
    lake.world.put("orders/unknown.json", ROWS)
    lake.world.clock.advance(minutes=age)
    report = lake.verify()
    assert report.outcome == outcome
    assert "the ledger does not know it" in "".join([*map(str, report.differences), *report.unproven])


@pytest.mark.parametrize("is_abandoned", [False, True])
def test_a_file_whose_owner_never_became_a_manifest_is_found(lake: VerifiedHour, is_abandoned: bool) -> None:
    # Given an arrival row that no function has completed
    lake.record(lake.world.put("orders/orphan.json", ROWS), "20260304T120000nobody")
    if is_abandoned:
        lake.world.services.ledger.manifests.abandon("20260304T120000nobody", lake.world.clock())

    # When
    lake.world.clock.advance(minutes=20)
    early = lake.verify()
    lake.world.clock.advance(minutes=20)
    report = lake.verify()

    # Then
    assert (early.outcome, report.outcome) == (HourOutcome.UNPROVEN, HourOutcome.DIFFERS)
    (difference,) = report.differences
    assert difference.uri.endswith("orders/orphan.json")
    assert "20260304T120000nobody" in difference.problem


def test_a_file_in_two_manifests_is_found(lake: VerifiedHour, spark: SparkSession) -> None:
    lake.world.convert([lake.world.enqueue([lake.files["orders/a.json"]])], spark)
    (difference,) = lake.verify().differences
    assert "was published twice" in difference.problem


def test_only_the_share_is_compared(lake: VerifiedHour) -> None:
    lake.change(lake.lake_bucket, change_row)
    report = lake.verify(share=1e-9)
    assert (report.outcome, report.manifests, report.compared) == (HourOutcome.NOT_COMPARED, 1, 0)
