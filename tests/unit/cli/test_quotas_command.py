"""``quotas``: what a stage needs of the account, before it is deployed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from cli.cost.quotas import print_quotas
from infra.functions import SPECS
from infra.quotas import OTHER_FUNCTIONS, needed_quotas
from infra.synth import CHECKOUT
from lake.settings import BatchSettings, DatasetRule, Settings, StreamSettings, VerifySettings

SETTINGS = Settings(
    stage="prod",
    batch=BatchSettings(max_runs=20, workers=10, worker_type="G.2X"),
    stream=StreamSettings(max_workers=5, worker_type="G.1X"),
)


def new_client() -> Any:
    session = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="eu-central-1")
    return session.client("service-quotas")


def account(*values: float | None) -> Any:
    """A client of an account with these values, one for each needed quota; None: the service does not list it."""
    client = new_client()
    stubber = Stubber(client)
    for quota, value in zip(needed_quotas(SETTINGS), values, strict=True):
        asked = {"ServiceCode": quota.service, "QuotaCode": quota.code}
        if value is None:
            for request in ("get_service_quota", "get_aws_default_service_quota"):
                stubber.add_client_error(request, "NoSuchResourceException", expected_params=asked)
        else:
            stubber.add_response("get_service_quota", {"Quota": {"Value": value}}, asked)
    stubber.activate()
    return client


def test_the_needs_follow_the_settings() -> None:
    # Given 20 runs of 10 workers of 2 DPUs, and a streaming job of 5 workers of 1 DPU.
    assert [quota.needed for quota in needed_quotas(SETTINGS)] == [20, 21, 405]
    assert len(SPECS) - 1 == OTHER_FUNCTIONS + 1
    # A stage with an Iceberg table has one function more.
    with_table = replace(SETTINGS, datasets=(DatasetRule("{folder}", table="iceberg"),))
    assert [quota.needed for quota in needed_quotas(with_table)] == [21, 21, 405]
    # A scheduled verification is one more run of the batch job.
    verified = replace(SETTINGS, verify=VerifySettings(share=0.01))
    assert [quota.needed for quota in needed_quotas(verified)] == [20, 22, 425]
    # Each further streaming job is one more run of 5 workers.
    divided = replace(SETTINGS, stream=replace(SETTINGS.stream, jobs=3))
    assert [quota.needed for quota in needed_quotas(divided)] == [20, 23, 415]


def test_the_page_has_the_needs_of_the_default_settings() -> None:
    functions, _, units = (quota.needed for quota in needed_quotas(Settings(stage="prod")))
    page = (CHECKOUT / "docs" / "deploy.md").read_text()
    assert f"| Lambda `L-B99A9384`, concurrent executions | {functions}: " in page
    assert f"and so on: {units} by default |" in page
    assert all(f"`{quota.code}`" in page for quota in needed_quotas(SETTINGS))


def test_enough_is_said_and_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_quotas(SETTINGS, account(1000, 21, 500)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["enough"] * 3


def test_the_quota_of_a_new_account_is_too_low(capsys: pytest.CaptureFixture[str]) -> None:
    # Given an account whose functions may run 10 times at once, which is what route alone takes.
    code = print_quotas(SETTINGS, account(10, 50, 500))
    # Then it says by how much, what happens with less, and how to raise it.
    printed = capsys.readouterr().out
    assert code == 1
    assert "too low  10, needed 20: lambda L-B99A9384" in printed
    assert "Lambda throttles" in printed
    assert "--service-code lambda --quota-code L-B99A9384 --desired-value 20" in printed


def test_a_quota_that_the_region_does_not_list_is_not_called_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_quotas(SETTINGS, account(1000, 50, None)) == 1
    assert "unknown  needed 405: glue L-08F3B322" in capsys.readouterr().out


def test_a_default_counts_where_the_account_has_no_value_of_its_own() -> None:
    client = new_client()
    with Stubber(client) as stubber:
        for _ in needed_quotas(SETTINGS):
            stubber.add_client_error("get_service_quota", "NoSuchResourceException")
            stubber.add_response("get_aws_default_service_quota", {"Quota": {"Value": 1000.0}})
        assert print_quotas(SETTINGS, client) == 0


def test_a_refused_request_is_an_error() -> None:
    client = new_client()
    with Stubber(client) as stubber:
        stubber.add_client_error("get_service_quota", "AccessDeniedException")
        with pytest.raises(ClientError, match="AccessDenied"):
            print_quotas(SETTINGS, client)
