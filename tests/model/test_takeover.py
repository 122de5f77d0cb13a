"""A batch run meets a manifest that another run has claimed."""

import pytest

from tests.model.actors import fake_runtime, worker
from tests.model.world import LEASE, World


@pytest.mark.parametrize(("owner", "state"), [("a run that has ended", "DONE"), ("next run", "RUNNING")])
def test_a_live_lease_is_taken_over_at_once_only_from_a_run_that_has_ended(owner: str, state: str) -> None:
    world = World()
    with fake_runtime(world):
        # Given: a live lease of a run that Glue reports as ended, or of another call in the same run
        manifest, manifests = world.queued("a"), world.router(None).ledger.manifests
        row = manifests.get(manifest)
        assert row is not None
        assert manifests.claim(row, owner, world.now, LEASE)
        # When, Then
        worker(world, None, "next run", [manifest])
        assert world.rows()[manifest]["state"] == state
