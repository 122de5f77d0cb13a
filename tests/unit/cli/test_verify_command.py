"""How ``verify`` ends if its target does not exist; tests/integration/test_verify.py covers what it proves."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode, errors_on_stderr, exit_code_of
from cli.inspect.verify import verify_command
from lake.errors import HybridRouterError, UnusableDocumentError
from lake.ledger import ResubmissionRow
from lake.manifest import ObjectVersion
from lake.time import iso_utc
from tests.unit.cli.conftest import Printed
from tests.unit.cli.stack_world import FakeServices, stack_of
from tests.unit.lake.world import PARTITION, World


@pytest.fixture
def stack(world: World) -> DeployedStack:
    """A stack with default settings and one dataset."""
    world.ledger.datasets.admit({"orders": ""}, 0)
    world.raw_s3.put_object(Bucket="control", Key="settings.json", Body=b'{"stage": "dev"}')
    job = {"Job": {"DefaultArguments": {"--settings": "s3://control/settings.json"}}}
    glue: Any = SimpleNamespace(get_job=lambda **_: job)
    return replace(stack_of(world, FakeServices()), glue=glue)


@pytest.mark.parametrize(
    ("dataset", "day", "code", "message"),
    [
        ("nowhere", "2026-11-20", ExitCode.NEGATIVE, "dataset = 'nowhere' is unknown"),
        ("orders", "2126-11-20", ExitCode.USAGE_ERROR, "the hour 2126-11-20T00"),
    ],
)
def test_an_unknown_dataset_is_distinguished_from_a_wrong_option(
    stack: DeployedStack, dataset: str, day: str, code: ExitCode, message: str
) -> None:
    with pytest.raises(HybridRouterError, match=f"^{message}") as caught:
        verify_command(stack, dataset, day, day)
    assert exit_code_of(caught.value) == code


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ClientError({"Error": {"Code": "ExpiredToken"}}, "GetJob"), "sign in again"),
        (UnusableDocumentError("the settings cannot be read"), "verify could not read everything: the settings cannot"),
    ],
)
def test_unreadable_content_has_a_reason_and_is_not_a_difference(
    stack: DeployedStack, capsys: pytest.CaptureFixture[str], error: Exception, message: str
) -> None:
    refused = replace(stack, glue=Mock(get_job=Mock(side_effect=error)))
    with pytest.raises(SystemExit) as ended, errors_on_stderr(debug=False):
        verify_command(refused, "orders", "2026-11-20", "2026-11-20")
    assert ended.value.code == ExitCode.NOT_REACHABLE
    printed = capsys.readouterr().err
    assert message in printed
    assert "read access" not in printed


def test_files_of_a_dataset_without_a_ledger_row_are_found(
    world: World, stack: DeployedStack, printed: Printed
) -> None:
    # Given a folder of the input whose events never arrived
    world.raw_s3.put_object(Bucket="input", Key="fresh/a.json", Body=b"{}")
    # When, Then
    text = printed(verify_command, stack, "fresh", "2026-11-20", "2026-11-20", code=ExitCode.NEGATIVE)
    assert "s3://input/fresh/a.json (version " in text
    assert "is in the input bucket, but not in the ledger: run a backfill of this hour" in text


def test_hours_that_have_not_begun_are_left_out(
    stack: DeployedStack, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 11, 20, 1, 59, tzinfo=UTC)
    monkeypatch.setattr("cli.inspect.verify.datetime", SimpleNamespace(now=lambda _: now))
    text = printed(verify_command, stack, "orders", "2026-11-20", "2026-11-20", code=ExitCode.OK)
    proven = [f"2026-11-20T0{hour}  proven: 0 files, 0 rows, 0 rejected lines" for hour in (0, 1)]
    assert text.splitlines() == proven


def test_an_hour_that_cannot_be_read_hides_none_before_it(
    stack: DeployedStack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Mock(side_effect=[None, ClientError({"Error": {"Code": "ExpiredToken"}}, "ListObjectsV2")])
    monkeypatch.setattr("verify.hours.HoursCheck._add_resubmitted", read)
    with pytest.raises(ClientError, match="ExpiredToken"):
        verify_command(stack, "orders", "2026-11-20", "2026-11-20")
    assert "2026-11-20T00  proven" in capsys.readouterr().out


@pytest.mark.parametrize("as_json", [False, True])
def test_the_commands_of_what_is_not_proven_name_the_stage(
    world: World, stack: DeployedStack, printed: Printed, as_json: bool
) -> None:
    # Given a manifest of the hour that has published nothing, with a reason that ends with a command, and a
    # resubmission without a manifest
    reason, command = "it is archived: restore it, then run: ", "hybrid-router reprocess s3://input/orders/a.json"
    row = world.queued("a.json")
    world.ledger.partitions.list_manifest(PARTITION, row.id, world.now)
    world.ledger.datasets.admit({PARTITION.dataset: ""}, 0)
    assert world.ledger.manifests.fail(row, reason + command, world.now)
    lines = ObjectVersion("control", "resubmissions/a.ndjson", "e", 3, iso_utc(world.now), None)
    resubmission = ResubmissionRow("a", PARTITION, lines, "", 1, iso_utc(world.now))
    assert world.ledger.resubmissions.record(resubmission, 0)
    # When
    hour = (PARTITION.dataset, PARTITION.stamp, PARTITION.stamp)
    text = printed(verify_command, stack, *hour, as_json=as_json, code=ExitCode.NEGATIVE)
    # Then
    assert f"{reason}{command} --stage dev" in text
    assert "run 'hybrid-router quarantine retry <file> --stage dev' again" in text
