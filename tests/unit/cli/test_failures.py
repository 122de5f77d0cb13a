"""failures: what was not converted, why, since when, and the command to run."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect import failures
from cli.inspect.failures import failures_command, failures_document
from cli.inspect.status import status_document
from lake.commit import SourceCount
from lake.layout import result_key
from lake.ledger import ArrivalRow, ManifestRow
from lake.ledger.collections import CollectionId, Part
from lake.manifest import Lane, ObjectVersion, Partition
from tests.unit.cli.conftest import Printed, valid_json
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import PARTITION, TOTALS, World, done, put_result

NO_RULE = "no rule of [[datasets]] matches the key"


@pytest.fixture
def stack(world: World) -> DeployedStack:
    """A stack with two ``[[records]]``."""
    return stack_of(world, FakeServices(), {"clicks": "web", "payments": "shop"})


def listed(world: World, *, dataset: str | None = None, limit: int = 10) -> list[dict[str, Any]]:
    stack = stack_of(world, FakeServices())
    found: list[dict[str, Any]] = valid_json("failures", failures_document(stack, dataset, limit))["failures"]
    return found


def unreadable(world: World, row: ManifestRow, *keys: str, version: str = "v1") -> None:
    """Publish the manifest without these of its files."""
    done(world, row, replace(TOTALS, failed_files=len(keys)))
    failed = [SourceCount(f"s3://input/{key}", version, 100, 0, 0, 0, {}, None, "it was deleted") for key in keys]
    put_result(world, row, [*failed, SourceCount("s3://input/good", "v1", 100, 3, 3, 0, {}, None, None)])


def test_only_the_shown_files_of_a_manifest_without_readable_files_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        names = [f"{number}-{part}" for part in range(9)]
        unreadable(world, world.queued(*names), *(f"orders/{name}" for name in names))
    looked_at: list[str] = []

    def versions(_arrivals: object, _bucket: str, key: str) -> list[ArrivalRow]:
        looked_at.append(key)
        return []

    monkeypatch.setattr(type(world.ledger.arrivals), "versions", versions)
    document = failures_document(stack_of(world, FakeServices()), None, 2)
    assert (len(document.failures), document.complete) == (2, False)
    assert len(looked_at) == 2 * 3


@pytest.mark.parametrize("body", [b'{"sources": [', b"{}"])
def test_a_damaged_result_document_hides_no_other_failure(world: World, body: bytes) -> None:
    damaged, row = world.queued("a"), world.queued("b")
    unreadable(world, damaged, "orders/a")
    unreadable(world, row, "orders/b")
    world.raw_s3.put_object(Bucket="control", Key=result_key(damaged.id, 1), Body=body)
    found = {item["manifest"]: item for item in listed(world)}
    assert found[row.id]["uri"] == "s3://input/orders/b"
    assert "is damaged" in found[damaged.id]["reason"]
    assert found[damaged.id]["command"] == f"hybrid-router reprocess --manifest {damaged.id} --stage dev"


def test_a_damaged_result_of_a_later_version_hides_no_file(world: World) -> None:
    # Given two unreadable files of a manifest, and a later version of the first, whose result document is damaged
    row, after = world.queued("a", "b"), world.queued("a")
    unreadable(world, row, "orders/a", "orders/b")
    record(world, row.id, "v1", "2026-11-20T09:00:00.000+00:00")
    record(world, after.id, "v2", "2026-11-20T10:00:00.000+00:00")
    done(world, after, replace(TOTALS, failed_files=0))
    world.raw_s3.put_object(Bucket="control", Key=result_key(after.id, 1), Body=b"{}")
    command = f"hybrid-router reprocess --manifest {row.id} --stage dev"
    assert [(item["kind"], item["uri"], item["command"]) for item in listed(world)] == [
        ("UNREADABLE", "s3://input/orders/a", command),
        ("UNREADABLE", "s3://input/orders/b", command),
    ]


def test_a_file_that_is_put_again_after_a_later_one_was_converted_is_a_failure(world: World) -> None:
    # Given a missing file without a version, and another file under its key that was converted
    row, after = world.queued("a"), world.queued("b")
    etag = put(world, b"first")
    file = ObjectVersion("input", "orders/a", etag, 5, "2026-11-20T09:00:00.000+00:00")
    world.ledger.arrivals.put(ArrivalRow(file, row.id, PARTITION, Lane.BATCH, "by default", file.arrived_at))
    unreadable(world, row, "orders/a", version=file.version)
    put(world, b"other")
    record(world, after.id, "v2", "2026-11-20T10:00:00.000+00:00")
    converted(world, after, "v2")
    assert [item["kind"] for item in listed(world)] == ["REPLACED"]
    # When the first bytes are put again / Then they are the same arrival, which only a reprocess reads
    put(world, b"first")
    (found,) = listed(world)
    assert (found["kind"], found["command"]) == (
        "UNREADABLE",
        f"hybrid-router reprocess --manifest {row.id} --stage dev",
    )
    # When they are put after the bucket got versions / Then they are another file
    world.raw_s3.put_bucket_versioning(Bucket="input", VersioningConfiguration={"Status": "Enabled"})
    put(world, b"first")
    assert [item["kind"] for item in listed(world)] == ["REPLACED"]


def put(world: World, body: bytes) -> str:
    """Put s3://input/orders/a; return its ETag."""
    return world.raw_s3.put_object(Bucket="input", Key="orders/a", Body=body)["ETag"].strip('"')


def record(world: World, manifest: str | None, version: str, arrived_at: str) -> None:
    file = ObjectVersion("input", "orders/a", "e", 100, arrived_at, version)
    world.ledger.arrivals.put(ArrivalRow(file, manifest, PARTITION, Lane.BATCH, "by default", arrived_at))


def test_an_unreadable_file_is_no_longer_a_failure_once_a_later_version_was_converted(
    world: World, stack: DeployedStack
) -> None:
    # Given an unreadable file, and an earlier version of it that was readable
    row, before, after = (world.queued("a") for _ in range(3))
    unreadable(world, row, "orders/a")
    converted(world, before, "v0")
    record(world, before.id, "v0", "2026-11-20T08:00:00.000+00:00")
    record(world, row.id, "v1", "2026-11-20T09:00:00.000+00:00")
    assert [item["kind"] for item in listed(world)] == ["UNREADABLE"]
    # When a repaired file is put under its key
    record(world, after.id, "v2", "2026-11-20T10:00:00.000+00:00")
    assert [item["kind"] for item in listed(world)] == ["UNREADABLE"]
    converted(world, after, "v2")
    # Then the unreadable file is still listed, because the lines can differ, but it is not a failure
    (found,) = listed(world)
    assert (found["kind"], found["uri"], found["manifest"]) == ("REPLACED", "s3://input/orders/a", row.id)
    assert after.id in found["advice"]
    assert found["command"] == "hybrid-router explain s3://input/orders/a --stage dev"
    assert failures_command(stack, None, 10).code == ExitCode.OK
    # And an entry that the limit cuts off may be one
    files = (f"s3://input/orders/{name}" for name in "ab")
    put_result(world, row, [SourceCount(uri, "v1", 100, 0, 0, 0, {}, None, "it was deleted") for uri in files])
    assert failures_command(stack, None, 1).code == ExitCode.NEGATIVE


def converted(world: World, row: ManifestRow, version: str) -> None:
    """Publish the manifest with this version of s3://input/orders/a."""
    done(world, row)
    put_result(world, row, [SourceCount("s3://input/orders/a", version, 100, 3, 3, 0, {}, None, None)])


def test_a_blocked_manifest_is_tried_again_by_itself(world: World, stack: DeployedStack) -> None:
    for name, lane in (("a", Lane.BATCH), ("b", Lane.STREAM)):
        claim = world.claimed(world.queued(name, lane=lane))
        world.ledger.manifests.release(claim, "s3:GetObject is denied", world.now)
    # And: a manifest whose publishing met a fault; a failure of an attempt before the commit no longer counts
    tried = world.claimed(world.queued("p"))
    world.ledger.manifests.release(tried, "worker lost", world.now)
    row = world.committed(world.claimed(world.row(tried.id)))
    assert row.id not in [item["manifest"] for item in listed(world)]
    world.ledger.manifests.record_reason(row, "the credentials have expired")
    # And: more manifests than the limit that only wait for their turn
    world.queued("c")
    world.queued("d")
    assert failures_document(stack, None, 1).complete
    found = listed(world)
    assert [(item["kind"], item["command"]) for item in found] == [("BLOCKED", None)] * 3
    advised = {(item["lane"], item["reason"]): item["advice"] for item in found}
    assert "next night" in advised["batch", "s3:GetObject is denied"]
    assert "stream lane" in advised["stream", "s3:GetObject is denied"]
    assert "sweep publishes it" in advised["batch", "the credentials have expired"]
    assert sum(item.blocked for item in status_document(stack, 10, world.now).backlog) == 3


def test_a_part_without_its_document_is_a_failure_of_its_datasets(world: World) -> None:
    # Given a part whose document was found to be damaged
    part = Part("p1", "2026-11-20T09", world.now.isoformat(), 2, 10, "sha", ("clicks", "orders"))
    assert world.ledger.collections.add(CollectionId.numbered(part.hour, 1), part)
    world.ledger.collections.set_apart(part.hour, part, world.now)
    # When, Then
    (failure,) = listed(world, dataset="orders")
    assert (failure["kind"], failure["uri"], failure["files"]) == ("BLOCKED", "s3://control/parts/p1/p1.json", 2)
    assert "or set input.bucket back" in failure["advice"]
    assert (listed(world), listed(world, dataset="payments")) == ([failure], [])


def test_one_dataset_can_be_chosen_and_long_lists_are_cut(world: World, stack: DeployedStack) -> None:
    for name, dataset in (("a", "orders"), ("b", "events"), ("c", "events")):
        row = world.queued(name, partition=Partition(dataset, "2026-11-20", 9))
        world.ledger.manifests.fail(row, "because", world.now)
    assert [item["dataset"] for item in listed(world, dataset="events")] == ["events", "events"]
    assert failures_document(stack, "events", 2).complete
    cut = failures_document(stack, "events", 1)
    assert (cut.complete, len(cut.failures)) == (False, 1)


def test_the_page_gives_the_reason_and_what_to_do(world: World, printed: Printed) -> None:
    # Given
    row = world.queued("a")
    world.ledger.manifests.fail(row, "bad\nline", world.now)
    files = [ObjectVersion("input", f"{name}.json", "e", 5, "2000-01-01T00:00:00.000+00:00") for name in "ab"]
    world.ledger.ignored.add(NO_RULE, files, world.now)
    # Then
    stack = stack_of(world, FakeServices(dead_letters=3))
    lines = printed(failures_command, stack, code=ExitCode.NEGATIVE).splitlines()
    assert lines[0].startswith(
        f"FAILED manifest {row.id} of orders#2026-11-20T09, batch lane (1 file, 100 B) since 2026"
    )
    assert lines[1:8] == [
        "  why   bad\\nline",
        "  do    remove the cause, then have the manifest converted again",
        f"  run   hybrid-router reprocess --manifest {row.id} --stage dev",
        "DEAD_LETTERS 3 messages",
        "  why   events or starts of schedules failed in every attempt",
        "  do    read them, remove the cause, and redrive them",
        "  run   hybrid-router dead-letters ls --stage dev",
    ]
    assert lines[8].startswith("IGNORED 2 files, 10 B, such as s3://input/b.json since 20")
    assert (lines[9], lines[-1]) == (f"  why   {NO_RULE}", "3 in all; times in Europe/Berlin")
    # And when a rule has taken the files
    for file in files:
        world.ledger.ignored.subtract(NO_RULE, file)
    assert [item["kind"] for item in listed(world)] == ["FAILED"]


FOLDER = "firehose-failed-records"
KIND = "processing-failed"


def deliver(world: World, *keys: str) -> None:
    for key in keys:
        world.raw_s3.put_object(Bucket="input", Key=f"{FOLDER}/{key}", Body=b"{}\n")


def not_delivered(stack: DeployedStack, **options: Any) -> tuple[list[Any], bool]:
    document = failures_document(stack, **{"dataset": None, "limit": 10, **options})
    valid_json("failures", document)
    return list(document.failures), document.complete


def test_records_that_were_not_delivered_are_one_entry_for_each_kind_of_error(
    world: World, stack: DeployedStack, printed: Printed
) -> None:
    # Given
    deliver(world, f"clicks/{KIND}/2026/11/20/09/a", f"clicks/{KIND}/2026/11/20/10/b", f"payments/{KIND}/c")
    # Then
    (first, other), complete = not_delivered(stack)
    uri = f"s3://input/{FOLDER}/clicks/{KIND}/"
    assert (first.kind, first.files, first.bytes, complete) == ("NOT_DELIVERED", 2, 6, True)
    assert (first.uri, first.dataset, other.dataset) == (uri, "web", "shop")
    lines = printed(failures_command, stack, None, 10, code=ExitCode.NEGATIVE).splitlines()
    assert lines[0].startswith(f"NOT_DELIVERED {uri} (2 files, 6 B) since 20")
    assert lines[1] == f"  why   Firehose could not deliver records of clicks: {KIND}"
    assert "docs/records.md" in lines[2]
    # And status counts the files
    assert status_document(stack, 10, world.now).failed_record_files == 3
    # And a dataset that the ledger does not know, because no record was delivered, has its own entry
    assert not_delivered(stack, dataset="shop")[0] == [other]
    assert failures_command(stack, "shop", 10).code == ExitCode.NEGATIVE
    # And they stay in the list when the settings no longer have [[records]]
    (orphan, _), _ = not_delivered(stack_of(world, FakeServices()))
    assert (orphan.uri, orphan.files, orphan.dataset) == (uri, 2, None)


def test_without_records_no_role_needs_the_right_to_list_the_input_bucket(world: World, stack: DeployedStack) -> None:
    def refused(code: str, stack: DeployedStack) -> DeployedStack:
        error = ClientError({"Error": {"Code": code, "Message": ""}}, "ListObjectsV2")
        listing = Mock(side_effect=error)
        return replace(stack, s3=Mock(wraps=stack.s3, exceptions=stack.s3.exceptions, list_objects_v2=listing))

    without = stack_of(world, FakeServices())
    denied = refused("AccessDenied", without)
    assert not_delivered(denied) == ([], True)
    assert status_document(denied, 10, world.now).failed_record_files == 0
    # And with [[records]], or for another reason, the output does not claim that all were delivered
    for unknown in (refused("AccessDenied", stack), refused("SlowDown", without)):
        with pytest.raises(ClientError):
            not_delivered(unknown)


def test_long_lists_of_records_are_cut(world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(world, f"clicks/{KIND}/a", f"clicks/{KIND}/b", f"clicks/other/{KIND}/c", f"payments/{KIND}/a")
    assert [len(not_delivered(stack, limit=2)[0]), not_delivered(stack, limit=2)[1]] == [2, False]
    monkeypatch.setattr(failures, "MAX_LISTED", 1)
    entries, complete = not_delivered(stack)
    assert ([item.files for item in entries], complete) == ([1], False)
