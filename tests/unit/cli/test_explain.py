"""explain: the state of a file, its lane and attempts, and the source files of an object."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cli.documents import ObjectExplanation
from cli.errors import NotFoundError
from cli.inspect.explain import explain_command, explain_file, explain_object, print_file, print_object
from lake.commit import PendingObject, SourceCount
from lake.errors import InvalidDocumentError, InvalidInputError
from lake.layout import S3Uri, lake_key, parse_s3_uri, quarantine_key, result_key
from lake.ledger import ArrivalRow, CollectionId, CommitReference, Part, Tabled
from lake.manifest import Lane, Manifest, ObjectVersion
from tests.unit.cli.conftest import Printed, valid_json
from tests.unit.cli.stack_world import FakeServices, execution, put_summary, stack_of
from tests.unit.lake.world import DOCUMENT, LEASE, PARTITION, World, done, file_of, put_result

FILE = S3Uri("input", "orders/a")
OPTIONS = " --stage test"
READ_AGAIN = "hybrid-router reprocess 's3://input/orders/a b'"


def arrived(world: World, *names: str, lane: Lane = Lane.BATCH) -> Manifest:
    manifest = world.manifest(*names, lane=lane)
    world.arrived(manifest)
    return manifest


def published(world: World, manifest: Manifest, rejects: dict[str, int], unreadable: str | None = None) -> None:
    """Publish a manifest: its first file has these rejects, or could not be read; all others are rows."""
    done(world, world.row(manifest.id))
    sources = [SourceCount(file.uri, file.version, 100, 3, 3, 0, {}, None, None) for file in manifest.files]
    first = f"{next(iter(rejects))} at byte 16" if rejects else None
    sources[0] = replace(sources[0], rejects=rejects, first_reject=first, failed=unreadable)
    quarantine = quarantine_key(PARTITION, manifest.id, 1, 1)
    objects = [PendingObject("lake", lake_key(PARTITION, manifest.id, 1, 0), "", "", "", 621, 3)]
    rejected = [PendingObject("quarantine", quarantine, "", "", "", 300, 2)] if rejects else []
    put_result(world, manifest, sources, objects, rejected)
    line = {"kind": "line", "source": str(FILE), "version": "v1", "length": 8, "reason": "not JSON"}
    records = [{**line, "offset": 40, "line": "later"}, {**line, "offset": 16, "line": "not\njson"}]
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    world.raw_s3.put_object(Bucket="quarantine", Key=quarantine, Body=(lines + '{"cut').encode())


Explained = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def explained(world: World, printed: Printed) -> Explained:
    """Explain the only version of the file; return it, and the page."""

    def read(*executions: dict[str, Any]) -> tuple[dict[str, Any], str]:
        document = explain_file(stack_of(world, FakeServices([*executions])), FILE, 10, world.now)
        (version,) = valid_json("explain", document)["versions"]
        return version, printed(print_file, document, world.now, OPTIONS)

    return read


def test_a_file_whose_part_cannot_be_divided_is_blocked(world: World, explained: Explained) -> None:
    # Given a file that waits for the night
    file, hour = file_of(FILE.key), PARTITION.stamp
    part = Part("p1", hour, world.now.isoformat(), 1, file.size, "sha", (PARTITION.dataset,))
    assert world.ledger.collections.add(CollectionId.numbered(hour, 1), part)
    world.ledger.arrivals.put(ArrivalRow(file, "p1", PARTITION, Lane.BATCH, "by default", world.now.isoformat()))
    text = explained()[1]
    assert "  outcome    COLLECTED: will be converted" in text
    assert f"  hour       {PARTITION}, UTC\n" in text
    # When its part is found to be damaged
    world.ledger.collections.set_apart(hour, part, world.now)
    # Then no night is announced
    assert "BLOCKED: its part cannot be divided: 'hybrid-router sweep --stage test' names what to" in explained()[1]


def test_the_conversion_time_of_a_queued_file_is_shown(world: World, explained: Explained) -> None:
    arrived(world, "a")
    assert "  outcome    QUEUED: will be converted tonight 22:00\n" in explained()[1]
    put_summary(world, "plan-ahead")
    text = explained()[1]
    assert "  outcome    QUEUED: will be converted tonight 22:00, expected done tonight 23:10\n" in text
    assert "  lane       batch since today 10:30: by default\n" in text
    text = explained(execution("n2", "RUNNING"), execution("n1"))[1]
    assert "QUEUED: will be converted by n2, which runs now, if its plan has it, or tonight 22:00, expected" in text


def test_the_last_versions_are_shown_in_the_order_of_their_arrival(world: World, printed: Printed) -> None:
    # Given versions that route recorded at once, so that only their arrival times show which is older
    for number in (3, 1, 2):
        arrived_at = f"2026-11-20T08:00:0{number}.000+00:00"
        file = ObjectVersion("input", "orders/a", "e", number, arrived_at, f"v{9 - number}")
        world.ledger.arrivals.put(ArrivalRow(file, None, None, None, "no rule", "2026-11-20T09:00:00.000+00:00"))
    document = explain_file(stack_of(world, FakeServices()), FILE, 2, world.now)
    assert ([item.size for item in document.versions], document.omitted_versions) == ([2, 3], 1)
    text = printed(print_file, document, world.now, OPTIONS)
    assert text.startswith("s3://input/orders/a  1 older version: pass a larger --limit\n")
    # Rules that were added later do not change the reason.
    assert "IGNORED: not converted; the next line shows why. Once the settings accept it, the sweep takes it if" in text


@pytest.mark.parametrize("is_abandoned", [False, True])
def test_a_file_whose_manifest_is_not_written_is_not_ignored(
    world: World, explained: Explained, is_abandoned: bool
) -> None:
    # Given an owner that has recorded the arrival but no manifest
    manifest = world.manifest("a")
    row = ArrivalRow(manifest.files[0], manifest.id, PARTITION, Lane.BATCH, "by default", world.now.isoformat())
    world.ledger.arrivals.put(row)
    if is_abandoned:
        world.ledger.manifests.abandon(manifest.id, world.now)
    # When
    version, text = explained()
    # Then
    assert (version["outcome"], version["waitsFor"], version["manifests"]) == ("RECORDED", "sweep", [])
    assert "  outcome    RECORDED: it has no manifest yet" in text
    assert "  lane       batch since today 10:30: by default\n" in text


def test_a_blocked_file_is_not_promised_for_tonight(world: World, explained: Explained) -> None:
    # Given a manifest whose attempt ended without a result
    manifest = arrived(world, "a")
    world.claimed(world.row(manifest.id))
    advice = "remove the cause, then run 'hybrid-router overnight'"
    assert world.ledger.manifests.release(world.row(manifest.id), f"access denied; {advice}", world.now)
    # When
    _, text = explained()
    # Then the reason is below the manifest, with a command that can be run
    assert "  outcome    BLOCKED: an attempt ended without a result; remove the cause" in text
    assert "access denied; remove the cause, then run 'hybrid-router overnight --stage dev'" in text


def test_work_that_waits_for_no_night_names_what_it_waits_for(world: World, explained: Explained) -> None:
    manifest = arrived(world, "a", lane=Lane.STREAM)
    status = "'hybrid-router stream status --stage test' shows whether it runs"
    assert f"QUEUED: waits for the streaming job: {status}\n" in explained()[1]
    claim = world.claimed(world.row(manifest.id))
    assert "RUNNING: is being converted" in explained()[1]
    world.wait(LEASE + timedelta(seconds=1))
    assert "RUNNING: its job run is presumed dead" in explained()[1]
    world.now -= LEASE
    world.ledger.manifests.commit(claim, DOCUMENT, world.now)
    assert "PUBLISHING: is being published" in explained()[1]


def test_quarantined_lines_have_every_reason_and_the_first_line(world: World, explained: Explained) -> None:
    manifest = arrived(world, "a", "b")
    published(world, manifest, {"not JSON": 2, "too long": 793})
    version, text = explained()
    assert version["outcome"] == "QUARANTINED_LINES"
    assert "  reasons    793 too long, 2 not JSON\n" in text
    assert "  first      not JSON at byte 16: not\\njson\n" in text
    assert f"  parquet    s3://lake/orders/date=2026-11-20/hour=09/{manifest.id}-g1-00000.parquet  3 records" in text
    assert f"  quarantine s3://quarantine/orders/date=2026-11-20/hour=09/{manifest.id}-g1-00001.jsonl" in text
    # And if the object begins with a later line, or has a damaged record, reason and offset are shown alone
    name = {"Bucket": "quarantine", "Key": quarantine_key(PARTITION, manifest.id, 1, 1)}
    later = world.raw_s3.get_object(**name)["Body"].readline()
    for body in (later, b"{}\n", b"7\n"):
        world.raw_s3.put_object(**name, Body=body)
        assert "  first      not JSON at byte 16\n" in explained()[1]
    # And the same if the object cannot be read
    world.raw_s3.delete_object(**name)
    assert "  first      not JSON at byte 16\n" in explained()[1]


def test_a_failed_reprocess_has_not_undone_the_conversion(world: World, explained: Explained) -> None:
    manifest = arrived(world, "a")
    published(world, manifest, {})
    assert world.ledger.manifests.force(world.row(manifest.id), world.now, "request")
    assert "QUEUED: will be converted tonight 22:00; what was published stays until" in explained()[1]
    assert world.ledger.manifests.fail(world.row(manifest.id), "its input is gone", world.now)
    version, text = explained()
    assert (version["outcome"], version["result"]["source"]["rows"]) == ("FAILED", 3)
    assert "  outcome    FAILED: not converted again, and what was published stays" in text


def test_what_the_iceberg_table_shows_is_named(world: World, explained: Explained) -> None:
    manifest = arrived(world, "a")
    published(world, manifest, {})
    world.ledger.manifests.mark_tabled(
        world.row(manifest.id), Tabled(1, DOCUMENT, 1, 1 << 62, "2026-11-20T09:00:00.000+00:00")
    )
    version, text = explained()
    assert version["manifests"][0]["tabled"]["snapshot"] == str(1 << 62)
    assert f"generation 1 since today 10:00: batch 1, snapshot {1 << 62}\n" in text
    # And a rebuild that has begun with this batch does not show it yet
    row, batch = world.ledger.tables.create("orders", "old"), CommitReference("key", "hash")
    assert world.ledger.tables.intend(row, batch)
    assert world.ledger.tables.replace(replace(row, pending=batch), "new")
    assert explained()[0]["manifests"][0]["tabled"] is None


def test_an_unreadable_file_is_reported_as_such(world: World, explained: Explained) -> None:
    published(world, arrived(world, "a"), {}, unreadable=f"it is archived, then run: {READ_AGAIN}")
    version, text = explained()
    failed = f"it is archived, then run: {READ_AGAIN} --stage dev"
    assert version["result"]["source"]["failed"] == failed
    assert "  outcome    UNREADABLE: not converted, it is in the quarantine by reference\n" in text
    assert f"  unreadable {failed}\n" in text


def object_at(world: World, uri: str) -> ObjectExplanation:
    document = explain_object(stack_of(world, FakeServices()), parse_s3_uri(uri), 10)
    valid_json("explain", document)
    return document


def test_an_object_is_traced_to_its_files_and_a_quarantine_object_to_those_that_lost_lines(
    world: World, printed: Printed
) -> None:
    manifest = arrived(world, "a", "b")
    published(world, manifest, {"not JSON": 2})
    document = object_at(world, f"s3://lake/{lake_key(PARTITION, manifest.id, 1, 0)}")
    assert [item.uri for item in document.inputs] == ["s3://input/orders/a", "s3://input/orders/b"]
    text = printed(print_object, document)
    assert "  state      published, 3 records\n" in text
    assert "  input      s3://input/orders/a  version v1  3 rows, quarantined 2 not JSON\n" in text
    document = object_at(world, f"s3://quarantine/{quarantine_key(PARTITION, manifest.id, 1, 1)}")
    assert ([item.uri for item in document.inputs], document.kind) == (["s3://input/orders/a"], "quarantine")
    # And without its result document, the object is not reported as unpublished
    world.raw_s3.delete_object(Bucket="control", Key=result_key(manifest.id, 1))
    with pytest.raises(InvalidDocumentError, match="is gone"):
        object_at(world, document.uri)


def test_an_object_of_an_older_generation_is_shown_as_replaced(world: World, printed: Printed) -> None:
    # Given: a manifest that was converted twice
    manifest = arrived(world, "a")
    published(world, manifest, {})
    world.ledger.manifests.force(world.row(manifest.id), world.now, "request")
    done(world, world.row(manifest.id))
    # When
    key = lake_key(PARTITION, manifest.id, 1, 0)
    text = printed(print_object, object_at(world, f"s3://lake/{key}"))
    # Then
    assert "  state      replaced by generation 2: readers see that one\n" in text
    # But not if that generation keeps it
    put_result(world, manifest, [], [PendingObject("lake", key, "", "", "", 621, 3)], generation=2)
    assert object_at(world, f"s3://lake/{key}").is_current


def test_the_log_of_each_attempt_is_named(world: World, explained: Explained) -> None:
    # Given: the third attempt, after two runs that ended without a result
    manifest = arrived(world, "a")
    for owner in ("jr_1", "jr_2", "jr_3"):
        world.claimed(world.row(manifest.id), owner)
        world.wait(LEASE)
    # When
    lines = explained()[1].splitlines()
    # Then
    (line,) = [line for line in lines if line.startswith("  manifest ")]
    assert line.endswith("attempt 3")
    logs = [line.strip() for line in lines if "log of" in line]
    command = "hybrid-router logs batch --run {0} --since 30d --stage dev"
    assert logs == [f"log of {run}: {command.format(run)}" for run in ("jr_1", "jr_2", "jr_3")]


def test_a_promoted_file_shows_both_lanes_and_the_reason(world: World, explained: Explained) -> None:
    # Given: a manifest of two files, one of which was promoted to the stream lane
    source = arrived(world, "a", "b")
    successors = [world.manifest("a", lane=Lane.STREAM), world.manifest("b")]
    world.superseded(world.row(source.id), *successors, reason="made urgent")
    # When
    lines = explained()[1].splitlines()
    # Then the reason of the first decision is not shown as the reason of the current lane
    (lane,) = [line for line in lines if line.startswith("  lane ")]
    assert lane.endswith(": moved from the batch lane")
    first, second = (number for number, line in enumerate(lines) if line.startswith("  manifest "))
    assert lines[first].startswith(f"  manifest   {source.id}  SUPERSEDED  batch lane  ")
    assert lines[first + 1] == "             made urgent"
    assert lines[second].startswith(f"  manifest   {successors[0].id}  QUEUED  stream lane  ")


@pytest.mark.parametrize(
    ("lane", "since"),
    [(Lane.STREAM, "15:30: moved from the stream lane"), (Lane.BATCH, "10:30: by default")],
)
def test_a_reprocess_moves_a_file_of_the_stream_lane_without_superseding_its_manifest(
    world: World, explained: Explained, lane: Lane, since: str
) -> None:
    # Given
    manifest = arrived(world, "a", lane=lane)
    world.ledger.manifests.fail(world.row(manifest.id), "it is broken", world.now)
    world.wait(timedelta(hours=5))
    # When
    assert world.ledger.manifests.force(world.row(manifest.id), world.now, "request")
    # Then it is shown in the batch lane since that time, if it was not there before
    line = f"  lane       batch since today {since}\n"
    assert line in explained()[1]


def test_an_unknown_file_or_an_invalid_uri_is_one_sentence(world: World) -> None:
    stack = stack_of(world, FakeServices())
    for uri, sentence in (
        (
            "s3://input/orders/b",
            "the ledger has no row of s3://input/orders/b: check the spelling; .* 'hybrid-router backfill --",
        ),
        ("s3://input/orders/a?versionId=1", ".* and pass a value of _source without "),
        ("s3://input/firehose-failed-records/clicks/a", ".* hold records that Firehose could not deliver"),
        ("s3://inptu/orders/b", "s3://inptu/orders/b is not in the input bucket s3://input/: pass a file of it, or "),
        ("s3://lake/b", "s3://lake/b is not an object that a manifest of this stack has published: "),
        (f"s3://lake/{lake_key(PARTITION, 'ghost', 1, 0)}", "s3://lake/orders/date=.*ghost.* is not an object that a "),
    ):
        with pytest.raises(NotFoundError, match=f"^{sentence}"):
            explain_command(stack, uri, 10)
    with pytest.raises(InvalidInputError, match="'b' is not a valid S3 URI"):
        explain_command(stack, "b", 10)
