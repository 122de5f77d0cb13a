"""The outcomes of several steps of an invocation add up."""

from lake.manifest import Identity
from lake.shards import Shards
from router.ownership.outcome import ArrivalOutcome, Ownership
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment


def test_the_outcomes_of_other_arrivals_are_added(deployment: Deployment) -> None:
    # Given the outcome of one step, and of another one with a manifest and an arrival beyond the limit
    first, other = Ownership(), Ownership()
    first.add_manifest(deployment.manifest("a.json"), Shards())
    other.add_manifest(manifest := deployment.manifest("b.json"), Shards())
    other.set_outcome(files := [file_of("c.json")], ArrivalOutcome.IGNORED)
    other.add_waiting(files, "2")
    other.beyond_dataset_limit += 1
    # When
    first.include(other)
    first.include(Ownership())
    # Then
    assert len(first.manifests) == 2
    assert first.manifests[1] == manifest
    assert first.count(ArrivalOutcome.IGNORED) == 1
    assert first.waiting_in_stream["2"] == {Identity.of(files[0])}
    assert first.beyond_dataset_limit == 1
