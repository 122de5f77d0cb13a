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
from lake.engines.emr_serverless import run_id
from lake.errors import InvalidInputError
from lake.ledger import State
from lake.settings import BatchSettings, EmrSettings, Settings
from router.estimate.night import offers
from router.executions.run_status import release_unheld
from tests.unit.lake.world import LEASE
from tests.unit.router.planning import document, plan_overnight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.router.conftest import Deployment

APPLICATION, JOB_RUN = "00application", "00jobrun"
HOLDER = run_id(APPLICATION, JOB_RUN)


def allow(deployment: Deployment, *engines: str) -> None:
    """Glue standard costs more than EMR Serverless, as before version 6.0."""
    services = deployment.services
    settings = services.settings
    batch, price = replace(settings.batch, engines=engines), replace(settings.price, dpu_hour=0.44)
    deployment.services = replace(services, settings=replace(settings, batch=batch, price=price))


@pytest.fixture
def emr() -> Iterator[Any]:
    """A real client whose answers are given; it refuses parameters that the service does not have."""
    with Stubber(boto3.client("emr-serverless", region_name="eu-central-1")) as stubber:
        yield stubber


def set_state(emr: Any, state: str) -> None:
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
        (("glue", "emr-serverless"), {}, "emr-serverless"),
        (("glue", "emr-serverless"), {"engine": None}, "emr-serverless"),
        (("glue", "emr-serverless"), {"engine": "glue"}, "glue"),
        (("emr-serverless", "glue"), {"engine": "glue"}, "glue"),
    ],
)
def test_every_run_of_a_plan_names_its_engine(
    deployment: Deployment, allowed: tuple[str, ...], fields: dict[str, Any], engine: str
) -> None:
    # Given EMR Serverless, which is cheaper than Glue by the default prices
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


def test_each_engine_has_its_price() -> None:
    # Given workers with 8 vCPUs and 32 GB, which are 2 DPUs
    settings = Settings(stage="t", batch=BatchSettings(worker_type="G.2X"))
    # Then $0.203 or $0.308 per DPU; 8 vCPUs x $0.052624 + 32 GB x $0.0057785
    prices = {offer.engine.value: round(offer.dollars_per_hour, 4) for offer in offers(settings)}
    assert prices == {"glue-flex": 0.406, "glue": 0.616, "emr-serverless": 0.6059}
    # And on Arm 8 x $0.042094 + 32 x $0.004628
    on_arm = replace(settings, emr=EmrSettings(architecture="arm64"))
    (arm,) = (offer for offer in offers(on_arm) if offer.engine == Engine.EMR_SERVERLESS)
    assert arm.dollars_per_hour == pytest.approx(0.4848, abs=0.0001)


@pytest.mark.parametrize("state", ["SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", "CANCELLING"])
def test_a_live_run_on_emr_serverless_keeps_its_manifests(deployment: Deployment, emr: Any, state: str) -> None:
    deployment.services = replace(deployment.services, engines={"emr-serverless": emr.client})
    row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
    set_state(emr, state)
    assert release_unheld(deployment.services, [deployment.row(row.id)]) == []
    assert deployment.row(row.id).state == State.RUNNING


@pytest.mark.parametrize("state", ["SUCCESS", "FAILED", "CANCELLED"])
def test_manifests_of_an_ended_run_on_emr_serverless_are_released(deployment: Deployment, emr: Any, state: str) -> None:
    # Given: two manifests of one run, which is asked for once
    deployment.services = replace(deployment.services, engines={"emr-serverless": emr.client})
    rows = [deployment.claimed(deployment.queued(name), HOLDER).row for name in ("a.json", "b.json")]
    set_state(emr, state)
    # When
    released = release_unheld(deployment.services, [deployment.row(row.id) for row in rows])
    # Then
    assert [row.id for row in released] == [row.id for row in rows]
    assert {deployment.row(row.id).state for row in rows} == {"QUEUED"}
    emr.assert_no_pending_responses()


def test_a_run_that_emr_serverless_does_not_know_keeps_its_lease(deployment: Deployment, emr: Any) -> None:
    deployment.services = replace(deployment.services, engines={"emr-serverless": emr.client})
    row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
    emr.add_client_error("get_job_run", "ResourceNotFoundException", http_status_code=404)
    assert release_unheld(deployment.services, [deployment.row(row.id)]) == []


def test_where_emr_serverless_cannot_be_reached_the_lease_of_its_run_decides(deployment: Deployment) -> None:
    # Given: a port of this machine on which nothing listens
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place: dict[str, Any] = {
            "region_name": "eu-central-1",
            "endpoint_url": f"http://127.0.0.1:{unused.getsockname()[1]}",
        }
        emr = boto3.client("emr-serverless", config=Config(retries={"total_max_attempts": 1}), **place)
        deployment.services = replace(deployment.services, engines={"emr-serverless": emr})
        row = deployment.claimed(deployment.queued("a.json"), HOLDER).row
        assert release_unheld(deployment.services, [deployment.row(row.id)]) == []


def test_an_error_of_emr_serverless_is_not_taken_for_an_answer(deployment: Deployment, emr: Any) -> None:
    deployment.services = replace(deployment.services, engines={"emr-serverless": emr.client})
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
