"""Coverage counts code that runs as it is deployed, from copies of the packages, for the checkout's files."""

from __future__ import annotations

import tomllib

from infra.job_asset import JOB_PACKAGES
from infra.lambda_asset import OWN_PACKAGES
from infra.synth import CHECKOUT


def test_every_deployed_package_is_mapped_to_the_checkout() -> None:
    coverage = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert coverage["paths"] == {name: [name, f"*/{name}"] for name in {*JOB_PACKAGES, *OWN_PACKAGES}}
