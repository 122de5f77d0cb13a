"""Each service of the stack may make the requests that the template has it make, and for no other account."""

from dataclasses import replace
from pathlib import Path

import pytest

from infra.synth import synth
from lake.settings import Settings, StreamSettings
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ACCOUNT, ResolvedTemplate
from tests.unit.infra.service_edges import DELIVERY_STREAM, Edge, Policies, edges

OTHER_ACCOUNT = "444455556666"


@pytest.fixture(scope="module", params=["assembly", "other_assembly"])
def template(request: pytest.FixtureRequest) -> ResolvedTemplate:
    synthesized: Assembly = request.getfixturevalue(request.param)
    return ResolvedTemplate(synthesized.template)


def test_every_edge_is_allowed(template: ResolvedTemplate) -> None:
    policies = Policies.of(template)
    walked = list(edges(template))
    # Given alarms to the topic, the bucket to its queue, schedules, the queue to route, machines, jobs' code.
    services = {edge.service.partition(".")[0] for edge in walked}
    emr = {"emr-serverless"} if template.of_kind("AWS::EMRServerless::Application") else set()
    firehose = {"firehose"} if template.of_kind(DELIVERY_STREAM) else set()
    assert services == {"cloudwatch", "s3", "scheduler", "lambda", "states", "glue"} | emr | firehose
    # Then the policies of the template allow each of them.
    refused = [f"{edge.source}: {edge.action} on {edge.resource}" for edge in walked if not policies.allow(edge)]
    assert not refused


def test_no_service_acts_for_another_account(template: ResolvedTemplate) -> None:
    # Given the requests of services in their own name: a bucket's name, once free, can belong to another account. Of
    # those that assume a role, Lambda and Glue document no condition for it.
    services = {f"{name}.amazonaws.com" for name in ("cloudwatch", "s3", "scheduler", "states")}
    walked = [edge for edge in edges(template) if not edge.role or edge.service in services]
    assert {edge.service for edge in walked} == services
    # Then none is allowed for a resource of another account, in whose ARN the account is, unless it is a bucket
    policies = Policies.of(template)
    elsewhere = [replace(edge, source_arn=edge.source_arn.replace(ACCOUNT, OTHER_ACCOUNT)) for edge in walked]
    assert not [edge for edge in elsewhere if policies.allow(edge, OTHER_ACCOUNT)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("versions")


def deployed(folder: Path, settings: Settings) -> ResolvedTemplate:
    return ResolvedTemplate(Assembly(synth(settings, folder), settings).template)


def files_of_jobs(template: ResolvedTemplate) -> list[Edge]:
    """The reads of script, code and settings of both jobs."""
    return [edge for edge in edges(template) if edge.service == "glue.amazonaws.com" and edge.action == "s3:GetObject"]


def test_a_deployment_leaves_running_jobs_their_files(folder: Path) -> None:
    # Given two versions of a stage whose settings differ, and a stage next to it.
    old = deployed(folder / "old", Settings(stage="prod"))
    new = deployed(folder / "new", Settings(stage="prod", stream=StreamSettings(trigger_seconds=31)))
    other = deployed(folder / "other", Settings(stage="prod2"))
    asked = {edge.resource for edge in files_of_jobs(old)}
    assert asked != {edge.resource for edge in files_of_jobs(new)}
    assert len(asked) == 4
    # When the new version is deployed, its role may read every file of the old one's arguments.
    assert all(Policies.of(new).allow(edge) for edge in files_of_jobs(old))
    # And the same after a rollback.
    assert all(Policies.of(old).allow(edge) for edge in files_of_jobs(new))
    # But it may read no file of another stage.
    assert not any(Policies.of(new).allow(edge) for edge in files_of_jobs(other))
