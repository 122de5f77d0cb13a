"""One probe for all tests of this folder."""

import pytest

from local.cloud import LocalCloud
from tests.e2e.local.local_probe import Probe


@pytest.fixture(scope="session")
def probe(cloud: LocalCloud) -> Probe:
    return Probe.create(cloud)
