"""plan: collections to manifests, and the backlog to runs; every file is in one manifest; the capacity of a night."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock, patch

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from lake.ledger import CommitReference, DatasetMeasurement, SpeedSample
from lake.manifest import Partition
from lake.speed import FILES_PER_SECOND
from router import divide
from router.plan.glue_room import DPU_QUOTA, RUN_QUOTA, read_glue_room
from router.plan.handler import plan
from tests.load.request_counts import counted_requests
from tests.unit.lake.world import LEASE
from tests.unit.router.conftest import Deployment
from tests.unit.router.planning import HOURS, collected, document, files, plan_overnight, planned


def test_a_plan_divides_the_collections_of_its_hours(deployment: Deployment) -> None:
    # Given: two parts of one hour, and a manifest of another
    for name in ("a.json", "b.json"):
        collected(deployment, name)
    other = deployment.queued("c.json", partition=HOURS[0])
    # When
    answer = plan_overnight(deployment)
    # Then
    manifests = planned(deployment, answer)
    assert len(manifests) == 2
    assert other.id in manifests
    assert files(deployment, manifests) == Counter(["orders/a.json", "orders/b.json", "clicks/c.json"])
    assert (answer["runs"], answer["manifests"], answer["files"], answer["bytes"]) == (1, 2, 3, 300)
    summary = document(deployment, answer["summary"])
    assert sorted(summary["manifestIds"]) == sorted(manifests)


def test_a_plan_knows_which_bytes_are_compressed(deployment: Deployment) -> None:
    # Given a small file of each kind, 100 bytes, and a dataset with measured plain files
    for name in ("a.json", "b.json.gz"):
        collected(deployment, name)
    deployment.ledger.datasets.add_measurement("orders", DatasetMeasurement(10**8, SpeedSample(10**9, 20_000)))
    # When they are divided and planned
    answer = plan_overnight(deployment)
    # Then
    (manifest,) = planned(deployment, answer)
    assert (deployment.row(manifest).bytes, deployment.row(manifest).compressed_bytes) == (200, 100)
    (dataset,) = document(deployment, answer["summary"])["datasets"]
    assert (dataset["compressedBytes"], dataset["speedIs"]) == (100, "assumed")
    # And files as small as these take the time of their requests
    assert dataset["coreSeconds"] == pytest.approx(2 / FILES_PER_SECOND)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"dataset": "orders"}, ["orders/8", "orders/9"]),
        ({"to": "2026-11-20T08"}, ["clicks/8", "orders/8"]),
        ({"dataset": None, "from": None}, ["clicks/8", "clicks/9", "orders/8", "orders/9"]),
    ],
)
def test_a_plan_can_be_of_a_selection(deployment: Deployment, fields: dict[str, Any], found: list[str]) -> None:
    for hour in HOURS:
        deployment.queued(str(hour.hour), partition=hour)
    answer = plan_overnight(deployment, **fields)
    assert sorted(files(deployment, planned(deployment, answer))) == found


def test_manifests_of_ended_runs_are_released_and_manifests_of_live_runs_are_not(deployment: Deployment) -> None:
    # Given: a run that ended, one that is stopped with its execution, a live one, one whose lease has expired, one that
    # Glue does not know
    deployment.glue.runs["batch-job"] = {"jr_dead": "FAILED", "jr_stopped": "STOPPING", "jr_live": "RUNNING"}
    owners = ("jr_old", "jr_dead", "jr_stopped", "jr_live", "elsewhere")
    held = {owner: deployment.queued(f"{owner}.json") for owner in owners}
    deployment.claimed(held.pop("jr_old"), "jr_old")
    deployment.wait(LEASE)
    for owner, row in held.items():
        deployment.claimed(row, owner)
    # Then a dry run includes what a plan would release
    assert plan_overnight(deployment, execution="ahead", dryRun=True)["files"] == 3
    # When
    with patch.object(deployment.glue, "get_job_run", wraps=deployment.glue.get_job_run) as lookups:
        counts, answer = counted_plan(deployment)
    # Then all rows are read at once, before and after their release, and so are the speeds of all datasets
    assert (counts["BatchGetItem"], counts["GetItem"]) == (3, 0)
    # And each run is looked up once: otherwise the bill of a run that ends between two look-ups would be missed
    assert Counter(call.kwargs["RunId"] for call in lookups.call_args_list) == Counter(owners[1:])
    assert files(deployment, planned(deployment, answer)) == Counter(f"orders/{owner}.json" for owner in owners[:3])
    assert deployment.row(held["jr_dead"].id).reason == "run jr_dead has ended without finishing it"


def test_only_a_publish_that_takes_too_long_is_planned(deployment: Deployment) -> None:
    row = deployment.queued("a.json")
    deployment.ledger.manifests.commit(deployment.claimed(row), CommitReference("commits/x", "0"), deployment.now)
    assert planned(deployment, plan_overnight(deployment)) == []
    deployment.wait(timedelta(minutes=5))
    assert planned(deployment, plan_overnight(deployment, execution="next")) == [row.id]


@pytest.mark.parametrize(("recorded", "manifests"), [(10, 3), (1, 1)])
def test_a_dry_run_plans_collections_and_what_a_backfill_has_found(
    deployment: Deployment, recorded: int, manifests: int
) -> None:
    for name in ("a.json", "b.json"):
        collected(deployment, name)
    collected(deployment, "c.json", partition=HOURS[0])
    # And a backfill has found compressed files of two manifests and a half that have no owner, or one that is as large
    size = 5 * deployment.services.settings.batch.manifest_bytes // 2
    deployment.faults.writes.clear()
    found = {"recorded": recorded, "bytes": size, "compressed": size}
    answer = plan_overnight(deployment, execution="dry-run-a", dryRun=True, found=found)
    assert (answer["manifests"], answer["files"], answer["bytes"]) == (2 + manifests, 3 + recorded, size + 300)
    assert answer["datasets"][0]["compressedBytes"] == size
    assert deployment.faults.writes == ["put_object"]


@pytest.mark.parametrize("code", ["SlowDown", "AccessDenied"])
def test_an_hour_that_cannot_be_divided_keeps_no_other_from_being_planned(deployment: Deployment, code: str) -> None:
    # Given files that an earlier plan has divided, and files of the last hour, which cannot be divided now
    collected(deployment, "early", HOURS[0])
    plan_overnight(deployment, execution="earlier")
    collected(deployment, "late", HOURS[3])
    error = ClientError({"Error": {"Code": code, "Message": ""}}, "PutObject")
    with patch.object(divide, "write_division", Mock(side_effect=error)), patch("time.sleep"):
        # When, then
        assert files(deployment, planned(deployment, plan_overnight(deployment))) == {"clicks/early": 1}
        # Without others, an empty plan would be a success
        with pytest.raises(ClientError):
            plan_overnight(deployment, **{"from": "2026-11-20T09"})
        # ... except for a dataset that has no file in the hour
        fields = {"execution": "next", "dataset": "clicks", "from": "2026-11-20T09"}
        assert plan_overnight(deployment, **fields)["manifests"] == 0


def test_a_damaged_row_keeps_no_other_manifest_from_being_planned(deployment: Deployment) -> None:
    damaged, intact = (deployment.queued(name) for name in ("a.json", "b.json"))
    deployment.damage(damaged)
    assert planned(deployment, plan_overnight(deployment)) == [intact.id]


def test_a_plan_takes_the_oldest_manifests_and_reports_the_rest(deployment: Deployment) -> None:
    # Given one manifest more than a plan has room for
    deployment.patch.setattr("router.plan.handler.MAX_MANIFESTS", 2)
    created = []
    for hour in range(3):
        row = deployment.queued(f"{hour}.json", partition=Partition("orders", "2026-11-20", 9 - hour))
        created.append(row.created_at)
        deployment.wait(timedelta(minutes=1))
    # When, Then
    for dry_run in (True, False):
        answer = plan_overnight(deployment, dryRun=dry_run)
        assert (answer["manifests"], answer["leftFrom"]) == (2, created[2])
    assert files(deployment, planned(deployment, answer)) == Counter(["orders/0.json", "orders/1.json"])
    assert document(deployment, answer["summary"])["leftFrom"] == created[2]


def counted_plan(deployment: Deployment, execution: str = "overnight") -> tuple[Counter[str], dict[str, Any]]:
    with counted_requests() as counts:
        answer = plan_overnight(deployment, execution=execution)
    return counts, answer


def test_two_invocations_for_one_execution_answer_with_the_plan_that_was_written_first(deployment: Deployment) -> None:
    # Given: a plan that is overtaken by another one before it writes its index, and one more manifest
    deployment.queued("a.json")
    others: list[dict[str, Any]] = []

    def overtake() -> None:
        deployment.queued("b.json")
        others.append(plan_overnight(deployment))

    deployment.faults.reset()
    deployment.faults.pause = (2, overtake)
    # When
    answers = [plan_overnight(deployment), plan_overnight(deployment), *others]
    # Then: the runs, the summary and the ledger contain the same plan
    assert len({json.dumps(answer) for answer in answers}) == 1
    manifests = planned(deployment, answers[0])
    assert len(manifests) == answers[0]["manifests"] == 2
    assert sorted(document(deployment, answers[0]["summary"])["manifestIds"]) == sorted(manifests)
    assert deployment.ledger.executions.facts("overnight")["manifests"] == 2


@pytest.mark.parametrize(("dry_run", "later"), [(True, timedelta()), (False, timedelta(days=90))])
def test_a_dry_run_and_an_earlier_execution_of_the_name_are_not_its_plan(
    deployment: Deployment, dry_run: bool, later: timedelta
) -> None:
    plan_overnight(deployment, dryRun=dry_run)
    deployment.wait(later)
    deployment.queued("a.json")
    answer = plan_overnight(deployment)
    assert len(planned(deployment, answer)) == len(document(deployment, answer["summary"])["manifestIds"]) == 1


def test_a_queued_manifest_costs_no_request(deployment: Deployment) -> None:
    deployment.queued("first.json")
    one, _ = counted_plan(deployment)
    for number in range(8):
        deployment.queued(f"{number}.json")
    # When
    nine, answer = counted_plan(deployment, "next")
    # Then
    assert nine == one
    assert (answer["runs"], answer["manifests"]) == (1, 9)


def quotas(*answers: float | str) -> Any:
    """A client of Service Quotas that answers once for each quota; a negative number means a known default only."""
    client = boto3.client("service-quotas", region_name="eu-central-1")
    stubber = Stubber(client)
    for code, answer in zip((DPU_QUOTA, RUN_QUOTA), answers, strict=True):
        parameters = {"ServiceCode": "glue", "QuotaCode": code}
        if isinstance(answer, str):
            stubber.add_client_error("get_service_quota", answer, expected_params=parameters)
            stubber.add_client_error("get_aws_default_service_quota", answer)
            continue
        found = {"Quota": {"Value": abs(answer)}}
        if answer < 0:
            stubber.add_client_error("get_service_quota", "NoSuchResourceException", expected_params=parameters)
            stubber.add_response("get_aws_default_service_quota", found, parameters)
        else:
            stubber.add_response("get_service_quota", found, parameters)
    stubber.activate()
    return client


def with_runs(deployment: Deployment, states: Sequence[str], workers: int = 10) -> Any:
    size = {"WorkerType": "G.1X", "NumberOfWorkers": workers}
    runs = [{"Id": f"jr_{number}", "JobRunState": state, **size} for number, state in enumerate(states)]
    return replace(deployment.services, glue=Mock(**{"get_job_runs.return_value": {"JobRuns": runs}}))


MIXED = ("RUNNING", "SUCCEEDED", "WAITING", "FAILED")


@pytest.mark.parametrize(
    ("others", "account", "states", "workers", "expected", "source"),
    [
        # Of 500 DPU and 50 runs in the settings, and 10 DPU for the stream
        ({}, (300, -20), (), 0, (290, 19), "300 DPU, 20 job runs"),
        ({"stream": {"jobs": 3}}, (300, 20), (), 0, (270, 17), "300 DPU, 20 job runs"),
        ({"stream": {"engine": "emr-serverless", "jobs": 3}}, (300, 20), (), 0, (300, 20), "300 DPU, 20 job runs"),
        ({"verify": {"share": 0.1}}, (300, 20), (), 0, (280, 18), "300 DPU, 20 job runs"),
        ({}, (5000, 1000), (), 0, (490, 49), "whichever is smaller"),
        ({}, (500, 50), MIXED, 10, (470, 47), "2 runs of the batch job are"),
        ({}, (500, 50), ("RUNNING",) * 60, 10, (10, 1), "60 runs of the batch job are alive"),
        ({}, (500, 50), ("RUNNING",) * 3, 40, (370, 46), "3 runs of the batch job are alive"),
        ({"quota": {"dpus": 5000, "job_runs": 1000}}, (5000, 1000), MIXED * 20, 10, (4590, 10), "40 runs of the batch"),
        ({}, ("AccessDeniedException",) * 2, (), 0, (490, 49), "the settings; the account's could not be read"),
        ({}, ("NoSuchResourceException",) * 2, (), 0, (490, 49), "the settings; Service Quotas lists no such quotas"),
    ],
    ids=["reserve", "each stream", "EMR", "verify", "more", "alive", "full", "large", "the job", "denied", "unknown"],
)
def test_a_night_has_what_the_stream_a_verification_and_live_runs_leave(
    deployment: Deployment,
    others: dict[str, Any],
    account: tuple[Any, Any],
    states: tuple[str, ...],
    workers: int,
    expected: tuple[int, int],
    source: str,
) -> None:
    deployment.configure(**others)
    room = read_glue_room(with_runs(deployment, states, workers), quotas(*account), at_once=True)
    assert (room.dpus, room.runs) == expected
    assert source in room.source


@pytest.mark.parametrize(
    ("schedule", "source"),
    [
        ("cron(0 22 * * ? *)", "whichever is smaller"),
        ("rate(1 day)", "whichever is smaller; 49 runs of the batch job are alive"),
    ],
)
def test_a_plan_for_a_later_night_has_the_room_of_runs_that_are_alive_now(
    deployment: Deployment, schedule: str, source: str
) -> None:
    # Given a night that uses all of its capacity, and the hourly dry run for the next one, if its start is known
    deployment.configure(schedule={"overnight": schedule})
    services = with_runs(deployment, ("RUNNING",) * 49)
    answer = plan({"execution": "ahead", "dryRun": True}, services, quotas(500, 50))
    assert answer["quotas"].endswith(source)
