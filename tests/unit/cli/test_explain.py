"""explain: every manifest that held a file, with its lane, its attempts and the reason for its end."""

from dataclasses import replace

import pytest

from cli.errors import NotFoundError
from cli.inspect.explain import print_explanation
from lake.errors import InvalidInputError
from lake.ledger import ArrivalRow
from lake.manifest import Lane, Manifest, new_manifest_id
from lake.manifest_documents import write_manifest
from lake.shards import Shards
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import LEASE, PARTITION, World


def arrived(world: World, manifest: Manifest) -> None:
    """Write arrival rows, the manifest document and its row, as route does."""
    for file in manifest.files:
        row = ArrivalRow(file, manifest.id, PARTITION, manifest.lane, "by default", "2026-11-20T09:30:00.000+00:00")
        world.ledger.arrivals.put(row)
    write_manifest(world.raw_s3, "control", manifest)
    world.ledger.manifests.enqueue(manifest)


def explained(world: World, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_explanation(stack_of(world, FakeServices()), "s3://input/orders/a", 10, as_json=False)
    return capsys.readouterr().out.splitlines()


def test_earlier_owners_are_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given: the third attempt, after two runs that ended without a result
    manifest = world.manifest("a")
    arrived(world, manifest)
    for owner in ("jr_1", "jr_2", "jr_3"):
        world.claimed(world.row(manifest.id), owner)
        world.wait(LEASE)
    # When
    lines = explained(world, capsys)
    # Then
    (line,) = [line for line in lines if line.startswith("  manifest ")]
    assert line.endswith("attempt 3")
    logs = [line.split()[2] for line in lines if line.startswith("             log of ")]
    assert logs == ["jr_1:", "jr_2:", "jr_3:"]


def test_the_first_attempt_has_no_earlier_owner(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = world.manifest("a")
    arrived(world, manifest)
    world.claimed(world.row(manifest.id))
    (line,) = [line for line in explained(world, capsys) if "log of " in line]
    assert line.endswith("log of jr_1: hybrid-router logs batch --run jr_1 --since 30d --stage dev")


def test_a_promoted_file_shows_both_lanes_and_the_reason(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given: a manifest of two files, one of which was promoted to the stream lane
    source = world.manifest("a", "b")
    arrived(world, source)
    successors = [
        Manifest(new_manifest_id(world.now), lane, PARTITION, world.now.isoformat(), (file,))
        for lane, file in zip((Lane.STREAM, Lane.BATCH), source.files, strict=True)
    ]
    for successor in successors:
        write_manifest(world.raw_s3, "control", successor)
    assert world.ledger.manifests.supersede(world.row(source.id), successors, "made urgent", world.now)
    # When
    lines = explained(world, capsys)
    # Then the reason of the first decision is not that of the lane it is in now
    (lane,) = [line for line in lines if line.startswith("  lane ")]
    assert lane.endswith(": moved from the batch lane, as the manifest that was superseded says")
    first, second = (number for number, line in enumerate(lines) if line.startswith("  manifest "))
    assert lines[first].startswith(f"  manifest   {source.id}  SUPERSEDED  batch lane  ")
    assert lines[first + 1] == "             made urgent"
    assert lines[second].startswith(f"  manifest   {successors[0].id}  QUEUED  stream lane  ")


def test_an_unknown_file_or_an_invalid_uri_is_one_sentence(world: World) -> None:
    stack = stack_of(world, FakeServices())
    for uri, sentence in (
        ("s3://input/orders/b", "the ledger has never seen s3://input/orders/b: "),
        (
            "s3://inptu/orders/b",
            "inptu is not the input bucket of the stack hybrid-router-dev: files arrive in s3://input/",
        ),
        ("s3://lake/orders/b", "s3://lake/orders/b is not an object that a manifest of this stack has published: "),
    ):
        with pytest.raises(NotFoundError, match=f"^{sentence}"):
            print_explanation(stack, uri, 10, as_json=False)
    with pytest.raises(InvalidInputError, match="'b' is not a valid S3 URI"):
        print_explanation(stack, "b", 10, as_json=False)


def test_a_manifest_of_a_divided_stream_lane_names_its_shard(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    # Given a stage with several streaming jobs
    manifest = world.manifest("a", lane=Lane.STREAM)
    arrived(world, manifest)
    world.claimed(world.row(manifest.id))
    shard = Shards(9).of(manifest.id)
    stack = stack_of(world, FakeServices())
    stack = replace(stack, outputs=replace(stack.outputs, shards=Shards(9)))
    # When
    print_explanation(stack, "s3://input/orders/a", 10, as_json=False)
    # Then
    told = capsys.readouterr().out
    assert f"{manifest.id}  RUNNING  stream lane, shard {shard}  orders" in told
    assert "log of jr_1: hybrid-router logs stream --run jr_1 " in told
