"""plan: the account's quotas less the stream's reserve, a verification, and the runs that are alive."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.stub import Stubber

from router.plan.glue_room import DPU_QUOTA, RUN_QUOTA, read_glue_room
from router.plan.handler import plan
from tests.unit.router.conftest import Deployment


def quotas(dpus: float, runs: float) -> Any:
    """A client of Service Quotas that answers once for each quota; a negative number: only a default is known."""
    client = boto3.client("service-quotas", region_name="eu-central-1")
    stubber = Stubber(client)
    for code, value in ((DPU_QUOTA, dpus), (RUN_QUOTA, runs)):
        asked, answer = {"ServiceCode": "glue", "QuotaCode": code}, {"Quota": {"Value": abs(value)}}
        if value < 0:
            stubber.add_client_error("get_service_quota", "NoSuchResourceException", expected_params=asked)
            stubber.add_response("get_aws_default_service_quota", answer, asked)
        else:
            stubber.add_response("get_service_quota", answer, asked)
    stubber.activate()
    return client


def with_runs(deployment: Deployment, *states: str, workers: int = 10) -> Any:
    size = {"WorkerType": "G.1X", "NumberOfWorkers": workers}
    runs = [{"Id": f"jr_{number}", "JobRunState": state, **size} for number, state in enumerate(states)]
    return replace(deployment.services, glue=Mock(**{"get_job_runs.return_value": {"JobRuns": runs}}))


@pytest.mark.parametrize(
    ("others", "account", "states", "workers", "expected", "source"),
    [
        # Of 500 DPU and 50 runs in the settings, and 10 DPU for the stream
        ({}, (300, -20), (), 0, (290, 19), "300 DPU, 20 job runs"),
        ({"stream": {"jobs": 3}}, (300, 20), (), 0, (270, 17), "300 DPU, 20 job runs"),
        ({"stream": {"engine": "emr-serverless", "jobs": 3}}, (300, 20), (), 0, (300, 20), "300 DPU, 20 job runs"),
        ({"verify": {"share": 0.1}}, (300, 20), (), 0, (280, 18), "300 DPU, 20 job runs"),
        ({}, (5000, 1000), (), 0, (490, 49), "the smaller ones"),
        ({}, (500, 50), ("RUNNING", "SUCCEEDED", "WAITING", "FAILED"), 10, (470, 47), "2 runs of the batch job are"),
        ({}, (500, 50), ("RUNNING",) * 60, 10, (10, 1), "60 runs of the batch job are alive"),
        ({}, (500, 50), ("RUNNING",) * 3, 40, (370, 46), "3 runs of the batch job are alive"),
    ],
    ids=[
        "reserve",
        "each stream",
        "on EMR",
        "verification",
        "more than the settings",
        "alive",
        "full",
        "alive and large",
    ],
)
def test_a_night_has_what_the_stream_a_verification_and_live_runs_leave(
    deployment: Deployment,
    others: dict[str, Any],
    account: tuple[float, float],
    states: tuple[str, ...],
    workers: int,
    expected: tuple[int, int],
    source: str,
) -> None:
    deployment.configure(**others)
    room = read_glue_room(with_runs(deployment, *states, workers=workers), quotas(*account), at_once=True)
    assert (room.dpus, room.runs) == expected
    assert source in room.source


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("AccessDeniedException", "quota.* of the settings; the account's could not be read"),
        ("NoSuchResourceException", "quota.* of the settings; Service Quotas lists no such quotas of Glue here"),
    ],
)
def test_without_the_quotas_of_the_account_those_of_the_settings_hold(
    deployment: Deployment, code: str, source: str
) -> None:
    client = boto3.client("service-quotas", region_name="eu-central-1")
    stubber = Stubber(client)
    for operation in ("get_service_quota", "get_aws_default_service_quota") * 2:
        stubber.add_client_error(operation, code)
    stubber.activate()
    room = read_glue_room(with_runs(deployment), client, at_once=True)
    assert (room.dpus, room.runs) == (490, 49)
    assert room.source.startswith(source)


@pytest.mark.parametrize(
    ("schedule", "source"),
    [
        ("cron(0 22 * * ? *)", "the smaller ones"),
        ("rate(1 day)", "the smaller ones; 49 runs of the batch job are alive"),
    ],
)
def test_a_plan_for_a_later_night_has_the_room_of_runs_that_are_alive_now(
    deployment: Deployment, schedule: str, source: str
) -> None:
    # Given a night that uses all of its room, and the hourly dry run for the next one, if it is known when that begins
    deployment.configure(schedule={"overnight": schedule})
    services = with_runs(deployment, *("RUNNING",) * 49)
    answer = plan({"execution": "ahead", "dryRun": True}, services, quotas(500, 50))
    assert answer["quotas"].endswith(source)
