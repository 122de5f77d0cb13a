"""Rows of manifests in each state, and results of published ones."""

from collections.abc import Iterable

from lake.commit import GenerationResult, ResultObject, SourceCount
from lake.documents import encode, encode_document
from lake.layout import result_key
from lake.ledger import CollectionId, CommitReference, ManifestRow, PublishedTotals
from lake.ledger.manifest_row import NO_OBJECTS, PublishedObjects
from lake.manifest import Manifest
from lake.manifest_documents import new_part
from tests.unit.lake.world import LEASE, PARTITION, World, file_of

DOCUMENT = CommitReference("commits/c.json", "0" * 64)
TOTALS = PublishedTotals(10, {"not JSON": 2}, 1, PublishedObjects(1, 100, "0" * 64), NO_OBJECTS, 1000)
STATES = (
    *("QUEUED", "RUNNING", "EXPIRED", "PUBLISHING", "DONE", "FAILED", "FAILED PUBLISH"),
    *("SUPERSEDED", "COLLECTED", "ABANDONED"),
)


def row_in_state(world: World, state: str) -> ManifestRow:
    """The row of a manifest that legal transitions have brought to ``state``."""
    manifests = world.ledger.manifests
    if state == "ABANDONED":
        return manifests.abandon("crashed", world.now)
    if state == "COLLECTED":
        part, _ = new_part("part", PARTITION.stamp, world.now.isoformat(), {"orders": [file_of("a.json")]})
        assert world.ledger.collections.add(CollectionId.numbered(PARTITION.stamp, 1), part, world.now)
        return world.row("part")
    row = world.queued("a.json", "b.json")
    if state == "SUPERSEDED":
        manifests.supersede(row, [world.manifest("a.json", "b.json")], "because", world.now)
    if state in ("RUNNING", "EXPIRED", "PUBLISHING", "DONE", "FAILED", "FAILED PUBLISH"):
        claim = world.claimed(row)
        if state == "EXPIRED":
            world.wait(LEASE)
        if state == "FAILED":
            manifests.fail(claim.row, "because", world.now)
        if state in ("PUBLISHING", "DONE", "FAILED PUBLISH"):
            manifests.commit(claim, DOCUMENT, world.now)
        if state == "DONE":
            manifests.finish(world.row(row.id), TOTALS, world.now)
        if state == "FAILED PUBLISH":
            manifests.fail(world.row(row.id), "because", world.now)
    return world.row(row.id)


def done(world: World, row: ManifestRow, totals: PublishedTotals = TOTALS) -> ManifestRow:
    """The QUEUED manifest, published by a document that is not there."""
    world.ledger.manifests.commit(world.claimed(row), DOCUMENT, world.now)
    assert world.ledger.manifests.finish(world.row(row.id), totals, world.now)
    return world.row(row.id)


def put_result(
    world: World,
    row: ManifestRow | Manifest,
    sources: Iterable[SourceCount],
    files: Iterable[ResultObject] = (),
    quarantine: Iterable[ResultObject] = (),
    generation: int = 1,
) -> None:
    """The result document of a published generation; only its lists, its generation and its time are of use."""
    lists = (tuple(sources), tuple(files), tuple(quarantine))
    at = world.now.isoformat()
    result = GenerationResult(row.id, generation, 1, "jr_1", row.partition, at, at, 0, 0, 0, 0, 0, 0, 0, *lists)
    key = result_key(row.id, generation)
    world.raw_s3.put_object(Bucket="control", Key=key, Body=encode_document(encode(result)))
