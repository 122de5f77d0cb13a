"""Every transition of a manifest as a function of a row, and the states from which it is legal."""

from collections.abc import Callable, Iterable

from lake.commit import GenerationResult, ResultObject, SourceCount
from lake.documents import encode, encode_document
from lake.errors import InvalidInputError, LeaseLostError
from lake.layout import result_key
from lake.ledger import Claim, CollectionId, CommitReference, ManifestRow, PublishedTotals, State
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


def claim(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.claim(row, "jr_2", world.now, LEASE) is not None


def release(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.release(row, "because", world.now)


def commit(world: World, row: ManifestRow) -> bool:
    try:
        world.ledger.manifests.commit(Claim(row, "jr_1"), CommitReference("commits/other.json", "1" * 64), world.now)
    except LeaseLostError:
        return False
    return True


def renew(world: World, row: ManifestRow) -> bool:
    try:
        world.ledger.manifests.renew(Claim(row, "jr_1"), world.now, LEASE)
    except LeaseLostError:
        return False
    return True


def finish(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.finish(row, TOTALS, world.now)


def fail(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.fail(row, "because", world.now)


def force(world: World, row: ManifestRow) -> bool:
    try:
        return world.ledger.manifests.force(row, world.now)
    except InvalidInputError:
        return False


def supersede(world: World, row: ManifestRow) -> bool:
    return world.ledger.manifests.supersede(row, [world.manifest("a.json"), world.manifest("b.json")], "why", world.now)


Transition = Callable[[World, ManifestRow], bool]
LEGAL: dict[Transition, tuple[str, ...]] = {
    claim: ("QUEUED", "EXPIRED"),
    renew: ("RUNNING",),
    release: ("RUNNING", "EXPIRED"),
    commit: ("RUNNING",),
    finish: ("PUBLISHING",),
    fail: ("QUEUED", "RUNNING", "EXPIRED", "PUBLISHING"),
    force: ("DONE", "FAILED", "FAILED PUBLISH"),
    supersede: ("QUEUED", "RUNNING", "EXPIRED"),
}
AFTERWARDS: dict[Transition, State] = {
    claim: State.RUNNING,
    renew: State.RUNNING,
    release: State.QUEUED,
    commit: State.PUBLISHING,
    finish: State.DONE,
    fail: State.FAILED,
    force: State.QUEUED,
    supersede: State.SUPERSEDED,
}
