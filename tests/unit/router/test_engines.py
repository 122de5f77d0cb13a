"""The engine of a plan's job runs, its price, and take-over from job runs of every engine."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from lake.engines import Engine
from lake.errors import InvalidInputError
from lake.job_runs import emr_run_id
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings import BatchSettings, Settings, parse_settings
from router.job_runs import release_unheld
from router.plan.forecast import forecast, run_dollars_per_hour
from router.plan.pack import PlannedRun
from tests.unit.lake.world import LEASE, PARTITION
from tests.unit.router.planning import document, plan_overnight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.router.conftest import Deployment

APPLICATION, JOB_RUN = "00application", "00jobrun"
HOLDER = emr_run_id(APPLICATION, JOB_RUN)


def allow(deployment: Deployment, *engines: str) -> None:
    services = deployment.services
    batch = replace(services.settings.batch, engines=engines)
    deployment.services = replace(services, settings=replace(services.settings, batch=batch))


@pytest.fixture
def emr() -> Iterator[Stubber]:
    """A real client whose answers are given; it refuses parameters that the service does not have."""
    with Stubber(boto3.client("emr-serverless", region_name="eu-central-1")) as stubber:
        yield stubber


def set_state(emr: Stubber, state: str) -> None:
    request = {"applicationId": APPLICATION, "jobRunId": JOB_RUN}
    role = "arn:aws:iam::111122223333:role/emr"
    arn = f"arn:aws:emr-serverless:eu-central-1:111122223333:/applications/{APPLICATION}/jobruns/{JOB_RUN}"
    body: dict[str, Any] = {**request, "arn": arn, "createdBy": role, "executionRole": role, "state": state}
    body |= {"releaseLabel": "emr-spark-8.1.0", "stateDetails": "-", "createdAt": 0, "updatedAt": 0}
    body |= {"jobDriver": {"sparkSubmit": {"entryPoint": "s3://code/main.py"}}}
    emr.add_response("get_job_run", {"jobRun": body}, request)


@pytest.mark.parametrize(
    ("allowed", "fields", "engine"),
    [
        (("glue-flex",), {}, "glue-flex"),
        (("emr-serverless", "glue"), {}, "emr-serverless"),
        (("emr-serverless", "glue"), {"engine": None}, "emr-serverless"),
        (("emr-serverless", "glue"), {"engine": "glue"}, "glue"),
    ],
)
def test_every_run_of_a_plan_names_its_engine(
    deployment: Deployment, allowed: tuple[str, ...], fields: dict[str, Any], engine: str
) -> None:
    # Given
    allow(deployment, *allowed)
    deployment.queued("a.json")
    # When
    answer = plan_overnight(deployment, **fields)
    # Then the state machine finds it in the index, and people in the documents
    (item,) = document(deployment, "s3://{bucket}/{key}".format(**answer["index"]))
    assert item["engine"] == engine
    assert document(deployment, item["run"])["engine"] == engine
    assert document(deployment, answer["summary"])["engine"] == engine


@pytest.mark.parametrize("engine", ["emr-serverless", "spark", 1, ""])
def test_an_engine_that_the_settings_do_not_allow_is_refused(deployment: Deployment, engine: object) -> None:
    deployment.queued("a.json")
    with pytest.raises(InvalidInputError, match=r"engine = .* pass one of glue-flex, or add it to batch.engines"):
        plan_overnight(deployment, engine=engine)
    assert deployment.keys("control", "plans/") == []


@pytest.mark.parametrize(("engine", "dollars"), [("glue-flex", 5.8), ("glue", 8.8), ("emr-serverless", 6.059)])
def test_each_engine_has_its_price(engine: str, dollars: float) -> None:
    # Given 10 workers with 8 vCPUs and 32 GB, which are 2 DPUs
    settings = Settings(stage="t", batch=BatchSettings(worker_type="G.2X", engines=(engine,)))
    # Then $0.29 or $0.44 per DPU; 80 vCPUs x $0.052624 + 320 GB x $0.0057785
    assert run_dollars_per_hour(settings, Engine(engine)) == pytest.approx(dollars, abs=1e-4)


@pytest.mark.parametrize(("engine", "parallel", "minutes"), [("glue", 3, 61.0), ("emr-serverless", 1, 183.0)])
def test_no_more_runs_are_started_than_get_all_of_their_workers(
    deployment: Deployment, engine: str, parallel: int, minutes: float
) -> None:
    # Given: three runs at once, of which 79 vCPUs are enough for one: 10 workers with 4 each
    given = {"engines": ["glue", "emr-serverless"], "max_runs": 3}
    settings = parse_settings({"stage": "t", "batch": given, "emr": {"max_vcpus": 79}})
    deployment.services = replace(deployment.services, settings=settings)
    deployment.queued("a.json")
    # Then the state machine starts as many
    assert plan_overnight(deployment, engine=engine)["maxConcurrency"] == parallel
    # And the forecast counts with them: three runs of an hour, each after a minute
    hour = 40_000_000 * 36 * 3600
    runs = [PlannedRun((ManifestRow("m", State.QUEUED, Lane.BATCH, PARTITION, "", hour, 1),))] * 3
    assert forecast(runs, settings, {}, deployment.now, Engine(engine)).minutes == minutes


@pytest.mark.parametrize("state", ["SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", "CANCELLING"])
def test_a_live_run_on_emr_serverless_keeps_its_manifests(deployment: Deployment, emr: Stubber, state: str) -> None:
    deployment.services = replace(deployment.services, emr=emr.client)
    row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
    set_state(emr, state)
    assert release_unheld(deployment.services, [deployment.row(row.id)]) == []
    assert deployment.row(row.id).state == State.RUNNING


@pytest.mark.parametrize("state", ["SUCCESS", "FAILED", "CANCELLED"])
def test_manifests_of_an_ended_run_on_emr_serverless_are_released(
    deployment: Deployment, emr: Stubber, state: str
) -> None:
    # Given: two manifests of one run, which is asked for once
    deployment.services = replace(deployment.services, emr=emr.client)
    rows = [deployment.claimed(deployment.queued(name), HOLDER).row for name in ("a.json", "b.json")]
    set_state(emr, state)
    # When
    released = release_unheld(deployment.services, [deployment.row(row.id) for row in rows])
    # Then
    assert [row.id for row in released] == [row.id for row in rows]
    assert {deployment.row(row.id).state for row in rows} == {"QUEUED"}
    emr.assert_no_pending_responses()


def test_a_run_that_emr_serverless_does_not_know_keeps_its_lease(deployment: Deployment, emr: Stubber) -> None:
    deployment.services = replace(deployment.services, emr=emr.client)
    row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
    emr.add_client_error("get_job_run", "ResourceNotFoundException", http_status_code=404)
    assert release_unheld(deployment.services, [deployment.row(row.id)]) == []


def test_where_emr_serverless_cannot_be_reached_the_lease_of_its_run_decides(deployment: Deployment) -> None:
    # Given: a port of this machine on which nothing listens
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place = {"region_name": "eu-central-1", "endpoint_url": f"http://127.0.0.1:{unused.getsockname()[1]}"}
        emr = boto3.client("emr-serverless", config=Config(retries={"total_max_attempts": 1}), **place)
        deployment.services = replace(deployment.services, emr=emr)
        row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
        assert release_unheld(deployment.services, [deployment.row(row.id)]) == []


def test_an_error_of_emr_serverless_is_not_taken_for_an_answer(deployment: Deployment, emr: Stubber) -> None:
    deployment.services = replace(deployment.services, emr=emr.client)
    row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
    emr.add_client_error("get_job_run", "InternalServerException", http_status_code=500)
    with pytest.raises(ClientError):
        release_unheld(deployment.services, [deployment.row(row.id)])


def test_without_emr_serverless_the_lease_of_its_run_decides(deployment: Deployment) -> None:
    # Given: the engine was taken out of the settings while a run on it had a lease
    row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
    assert release_unheld(deployment.services, [deployment.row(row.id)]) == []
    # When the lease has expired, then the manifest is released
    deployment.wait(LEASE)
    assert [released.id for released in release_unheld(deployment.services, [deployment.row(row.id)])] == [row.id]
