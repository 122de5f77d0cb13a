"""A stack of its own: the manifests that these tests leave behind are in no state that other tests expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.deployed_stack import DeployedStack
from infra.synth import synth
from local import isolation
from local.cloud import LocalCloud
from tests.e2e import other_clouds
from tests.e2e.scenario import Scenario
from tests.e2e.stack_settings import e2e_settings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def deprived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """The stack from whose roles permissions are taken; what its roles have used counts for the report."""
    folder = tmp_path_factory.mktemp("removals")
    with LocalCloud.start(folder / "state") as cloud:
        outputs = cloud.deploy(synth(e2e_settings(), folder / "cdk.out"))
        session = isolation.session(cloud.access_key)
        yield Scenario(cloud, DeployedStack.connect(outputs, session, cloud.endpoint, isolation.client_config()))
        other_clouds.collect(cloud.logs_dir, "hybrid-router-e2e")
