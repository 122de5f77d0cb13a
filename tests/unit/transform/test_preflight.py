"""Before a run claims anything: one file that can be read is enough, whatever the others are."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lake.manifest import ObjectVersion
from lake.settings import Settings
from tests.unit.lake.world import World
from transform import preflight
from transform.preflight import check_environment
from transform.source import DeniedFileError, UnreadableFileError
from transform.task_model import ConversionContext, JobServices


def fetch(file: ObjectVersion, _start: int, _end: int) -> bytes:
    if file.key.endswith("denied"):
        raise DeniedFileError(file.key) from ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")
    if file.key.endswith("gone"):
        raise UnreadableFileError(file.key)
    return b"{"


@pytest.mark.parametrize("manifests", [[["denied", "gone", "readable"]], [["denied"], ["gone"], ["readable"]]])
def test_a_file_that_can_be_read_lets_a_run_begin(
    world: World, monkeypatch: pytest.MonkeyPatch, manifests: list[list[str]]
) -> None:
    # Given one manifest, or others that are not in the sample
    monkeypatch.setattr(preflight, "MAX_SAMPLED", 0)
    monkeypatch.setattr(preflight, "Source", lambda *_: SimpleNamespace(fetch=fetch))
    monkeypatch.setattr(preflight, "_draw", lambda items, number: items[:number])
    services = JobServices(world.raw_s3, world.ledger, world.resources, Settings("test"), "eu-central-1")
    spark: Any = None
    context = ConversionContext(spark, services, "jr_1", world.clock, bool, print)
    # When, Then the run is not blocked
    check_environment(context, [world.queued(*names).id for names in manifests], every=True)
