"""The next job runs of a run document leave out the manifests that one job run was denied."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from batch_job import main
from lake.documents import encode_document
from lake.ledger import State
from tests.unit.lake.world import RESOURCES, World
from transform.give_up import EnvironmentFault
from transform.outcome import WAITING, ConversionOutcome

RUN = "s3://control/plans/night/runs/00002.json"
DENIED = EnvironmentFault("s3:GetObject is denied", "grant it", passing=False, denied=True)


def test_what_one_job_run_was_denied_the_next_ones_leave_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a run of three manifests, one of which is denied, and then another one
    world.raw_s3.put_object(Bucket="control", Key=RUN[13:], Body=encode_document({"manifests": list("abc")}))
    tried, lines, refusals = list[str](), list[str](), ["a", "b", "c", "", "", "a"]

    def convert(manifests: list[str], _: object) -> list[ConversionOutcome]:
        tried.append("".join(manifests))
        denied = refusals.pop(0)
        return [
            ConversionOutcome(name, WAITING, fault=DENIED) if name in denied else ConversionOutcome(name, State.DONE)
            for name in manifests
        ]

    monkeypatch.setattr(main, "convert", convert)
    monkeypatch.setattr(main, "check_environment", lambda *_, **__: None)
    context: Any = SimpleNamespace(s3=world.raw_s3, resources=RESOURCES, log=lines.append)
    # When job runs follow each other; a person starts the last ones when only denied manifests are left
    codes = [main.run(context, {"run": RUN}) for _ in range(5)]
    # Then
    assert tried == ["abc", "bc", "c", "abc", "abc"]
    assert codes == [1, 1, 1, 0, 0]
    # And a list that cannot be written does not end a job run
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": "denied"}}, "PutObject")
    monkeypatch.setattr(main, "write_denied", Mock(side_effect=refused))
    assert main.run(context, {"run": RUN}) == 1
    assert any("could not be recorded, the next run retries" in line for line in lines)
