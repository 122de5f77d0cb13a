"""Excluded files of a manifest: each version of a key is a file of its own."""

from lake.manifest import Lane, Manifest
from lake.manifest_documents import read_exclusions, write_exclusions
from tests.unit.lake.world import PARTITION, World, file_of


def test_another_version_of_an_excluded_file_is_not_excluded(world: World) -> None:
    # Given two versions of a key in one manifest
    first, second = (file_of("orders/a.json", version=version) for version in ("v1", "v2"))
    row = world.queued("a")
    manifest = Manifest(row.id, Lane.BATCH, PARTITION, row.created_at, (first, second))
    # When one of them cannot be read / Then the next attempt reads the other one
    key = write_exclusions(world.raw_s3, "control", row, {second: "it was deleted"})
    assert read_exclusions(world.raw_s3, "control", key, manifest) == {second: "it was deleted"}
